"""The commands that talk to a running node: `set`, `get`, `reset`, `fault`, `status`, and `ls` and `down` beside them.

Thin on purpose: words become one request, the answer becomes lines, and the agent judges. They must not cost more than
the interpreter's start, so neither asyncio nor msgspec nor a YAML library is imported on their way, and click neither.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from simnode.cli import FAILED, complain
from simnode.cli.shown import fault_line, print_json, values, whole_status
from simnode.control_client import Answer, ControlError, call
from simnode.sandbox.places import UnsafeDirectory
from simnode.sandbox.standing import DEFAULT_NAME, BadName, Node, NoSuchNode, StandingError, every, find, here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

HOST_SOCKET = "/var/lib/simnode/control/agent.sock"
MODES = ("lost", "fallen_off_bus", "ecc_uncorrectable")
_PATIENCE_OF_LISTS = 2.0
_WIDTH = 100

Words = argparse.Namespace


class Verb:
    """A command: what it is called, what it is for, what it takes, what it does."""

    def __init__(
        self,
        name: str,
        purpose: str,
        takes: Callable[[argparse.ArgumentParser], None],
        does: Callable[[Words], int],
    ) -> None:
        self.name = name
        self.help = purpose
        self.takes = takes
        self.does = does


def talks(words: Sequence[str]) -> bool:
    """True if these words of the command line are for this module."""
    return bool(words) and any(words[0] == verb.name for verb in VERBS)


def talk(words: Sequence[str]) -> int:
    """Carry them out; the exit code."""
    try:
        return _chosen(VERBS, "simnode", words)
    except ControlError as error:
        complain(list(error.faults))
        return error.code
    except BadName as error:
        return complain([str(error)])
    except (StandingError, UnsafeDirectory) as error:
        complain([str(error)])
        return FAILED


class _Parser(argparse.ArgumentParser):
    """One whose complaints are one line. Help is of a fixed width: asking the terminal for it costs a large import."""

    def __init__(self, name: str, purpose: str, epilog: str = "") -> None:
        super().__init__(
            prog=name,
            description=purpose,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.RawTextHelpFormatter(prog, width=_WIDTH),
        )

    def error(self, message: str) -> NoReturn:
        raise SystemExit(complain([message]))


def _chosen(verbs: Sequence[Verb], above: str, words: Sequence[str]) -> int:
    for verb in verbs:
        if words[:1] == [verb.name]:
            if verb.name == "fault":
                return _fault(words[1:])
            parser = _Parser(f"{above} {verb.name}", verb.help)
            verb.takes(parser)
            return verb.does(parser.parse_intermixed_args(list(words[1:])))
    known = ", ".join(verb.name for verb in verbs)
    return complain([f"{above} wants one of {known}, not {' '.join(words[:1]) or 'nothing'}"])


def _fault(words: Sequence[str]) -> int:
    verbs = "\n".join(f"{verb.name:<8}{verb.help}" for verb in _FAULT_VERBS)
    parser = _Parser("simnode fault", _FAULT_HELP, verbs)
    if words[:1] and words[0] in ("-h", "--help"):
        parser.print_help()
        return 0
    return _chosen(_FAULT_VERBS, "simnode fault", words)


def _takes_node(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", help="the node's name; default: the node one is in, else default, else the host's")
    parser.add_argument(
        "--socket", metavar="PATH", default=os.environ.get("SIMNODE_CONTROL"), help="its control socket"
    )


def _takes_assignments(parser: argparse.ArgumentParser) -> None:
    _takes_node(parser)
    parser.add_argument(
        "--gpu", metavar="N|UUID|all", help="without it KEY names a section, as system.num_devices does"
    )
    parser.add_argument("assignments", metavar="KEY=VALUE", nargs="+")


def _takes_keys(parser: argparse.ArgumentParser) -> None:
    _takes_node(parser)
    parser.add_argument("--gpu", metavar="N|UUID|all", help="default: everything")
    parser.add_argument("keys", metavar="KEY", nargs="*")


def _takes_keys_and_json(parser: argparse.ArgumentParser) -> None:
    _takes_keys(parser)
    _takes_form(parser)


def _takes_form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _takes_node_and_json(parser: argparse.ArgumentParser) -> None:
    _takes_node(parser)
    _takes_form(parser)


def _takes_failure(parser: argparse.ArgumentParser) -> None:
    _takes_node(parser)
    parser.add_argument("--gpu", metavar="N|UUID|all", required=True)
    parser.add_argument("--xid", metavar="N", type=int, help="the XID to raise; 0: none; default: the mode's own")
    parser.add_argument(
        "mode", metavar="MODE", nargs="?", choices=MODES, help=f"{', '.join(MODES)}; without one only an XID"
    )


def _takes_gpu(parser: argparse.ArgumentParser) -> None:
    _takes_node(parser)
    parser.add_argument("--gpu", metavar="N|UUID|all", default="all")


def _takes_names(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--name", default=DEFAULT_NAME, help=f"the node's name; default: {DEFAULT_NAME}")
    which.add_argument("--all", action="store_true", help="every node of this user")


def _set(words: Words) -> int:
    _ask(words, "set", gpu=words.gpu, assignments=words.assignments)
    return 0


def _get(words: Words) -> int:
    answer = _ask(words, "get", gpu=words.gpu, keys=words.keys)
    found = {**({"node": answer["node"]} if answer["node"] else {}), **answer["devices"]}
    if words.json:
        return print_json(found)
    for line in values(found, bare=bool(words.keys)):
        print(line)
    return 0


def _reset(words: Words) -> int:
    _ask(words, "reset", gpu=words.gpu, keys=words.keys)
    return 0


def _inject(words: Words) -> int:
    _ask(words, "fault-inject", gpu=words.gpu, mode=words.mode, xid=words.xid)
    return 0


def _clear(words: Words) -> int:
    _ask(words, "fault-clear", gpu=words.gpu)
    return 0


def _list_faults(words: Words) -> int:
    faults = _ask(words, "fault-list")["faults"]
    if words.json:
        return print_json(faults)
    for fault in faults:
        print(f"GPU {fault['gpu']}: {fault['uuid']}: {fault_line(fault)}")
    return 0


def _status(words: Words) -> int:
    socket, node = _socket(words)
    described = node.description() if node is not None else {}
    answer = {**described, **call(socket, {"verb": "status"})}
    if words.json:
        return print_json(answer)
    for line in whole_status(answer):
        print(line)
    return 0


def _ls(words: Words) -> int:
    from simnode.cli.shown import table

    nodes = [_described(node) for node in every(os.environ)]
    if words.json:
        return print_json(nodes)
    for line in table(nodes):
        print(line)
    return 0


def _described(node: Node) -> dict[str, Any]:
    described = node.description()
    if not node.staged:
        return {**described, "state": "coming up"}
    try:
        answer = call(node.control(), {"verb": "status"}, _PATIENCE_OF_LISTS)
    except StandingError:
        return {**described, "state": "out of reach"}
    except ControlError:
        return {**described, "state": "no agent"}
    ready = answer["health"]["ready"]["ok"]
    known = {"gpus": len(answer["gpus"]), "driver_version": answer["driver_version"]}
    return {**described, **known, "state": "ready" if ready else "not ready"}


def _down(words: Words) -> int:
    if not words.all:
        find(os.environ, words.name).end()
        return 0
    code = 0
    for node in every(os.environ):
        try:
            node.end()
        except StandingError as error:
            complain([str(error)])
            code = FAILED
    return code


def _ask(words: Words, verb: str, **fields: object) -> Answer:
    return call(_socket(words)[0], {"verb": verb, **fields})


def _socket(words: Words) -> tuple[str, Node | None]:
    """The control socket that is meant, and its node if it is one that stands by a name."""
    if words.name is None:
        known = words.socket or here(os.environ)
        if known:
            return known, None
    try:
        node = find(os.environ, DEFAULT_NAME if words.name is None else words.name)
    except NoSuchNode:
        if words.name is None and os.path.exists(HOST_SOCKET):  # noqa: PTH110 (pathlib costs 10 ms)
            return HOST_SOCKET, None
        raise
    return node.control(), node


_FAULT_HELP = "Make GPUs of a running node fail, and heal them."
_FAULT_VERBS = (
    Verb("inject", "Make a GPU fail.", _takes_failure, _inject),
    Verb("list", "Print the GPUs that fail, and how.", _takes_node_and_json, _list_faults),
    Verb("clear", "End faults, one GPU's also where all of them were made to fail.", _takes_gpu, _clear),
)
VERBS = (
    Verb("set", "Change what a running node reads; it is read when this returns.", _takes_assignments, _set),
    Verb("get", "Print values in force: of one GPU's one key the bare value.", _takes_keys_and_json, _get),
    Verb("reset", "Take back what was set, faults included: everything, or only some keys.", _takes_keys, _reset),
    Verb("fault", _FAULT_HELP, _takes_node, lambda _: 0),
    Verb("status", "Print what a running node is and how it does.", _takes_node_and_json, _status),
    Verb("ls", "List the nodes that stand.", _takes_form, _ls),
    Verb("down", "Take a node down, with everything in it.", _takes_names, _down),
)
