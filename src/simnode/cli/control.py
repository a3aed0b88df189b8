"""The commands that talk to a running node: `set`, `get`, `reset`, `fault`, `status`, and `ls` and `down` beside them.

Thin on purpose: words become one request, the answer becomes lines, and the agent judges. They must not cost more than
the interpreter's start, so neither asyncio nor msgspec nor a YAML library is imported on their way, and click neither.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from simnode.cli import FAILED, USAGE_FAULT, complain
from simnode.cli.shown import print_json, values, whole_fault, whole_status
from simnode.control_client import Answer, ControlError, call
from simnode.sandbox.places import UnsafeDirectory
from simnode.sandbox.standing import DEFAULT_NAME, BadName, Node, NoSuchNode, StandingError, every, find, here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

HOST_SOCKET = "/var/lib/simnode/control/agent.sock"
MODES = ("lost", "fallen_off_bus", "ecc_uncorrectable")
SKEW = "version-skew"
_PATIENCE_OF_LISTS, _PATIENCE_OF_QUESTIONS, _PATIENCE_OF_CHANGES = 2.0, 10.0, 60.0
_LARGEST_XID = 0xFFFFFFFF
_WIDTH = 100

Words = argparse.Namespace


class Verb:
    """A command: what it is called, what it is for, what it takes, what it does, and what its help says besides."""

    def __init__(
        self,
        name: str,
        purpose: str,
        takes: Callable[[argparse.ArgumentParser], None],
        does: Callable[[Words], int],
        more: str = "",
    ) -> None:
        self.name = name
        self.help = purpose
        self.takes = takes
        self.does = does
        self.more = more


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

    def __init__(self, name: str, purpose: str, epilog: str = "", usage: str | None = None) -> None:
        super().__init__(
            prog=name,
            usage=usage,
            description=purpose,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.RawTextHelpFormatter(prog, width=_WIDTH),
        )

    def parsed(self, words: Sequence[str]) -> Words:
        """What the words say, options and others in any order."""
        said, unknown = self.parse_known_intermixed_args(list(words))
        if unknown:
            known = self._option_string_actions
            hint = "; a node is named by --name" if "--name" in known else ""
            if unknown[0].startswith("-"):
                hint = _meant(unknown[0].partition("=")[0], known)
            self.error(f"{unknown[0]!r} is nothing that {self.prog} takes{hint}")
        return said

    def error(self, message: str) -> NoReturn:
        told = message.endswith("?")
        raise SystemExit(complain([message if told else f"{message}; `{self.prog} --help` tells more"]))


def _chosen(verbs: Sequence[Verb], above: str, words: Sequence[str]) -> int:
    for verb in verbs:
        if words[:1] == [verb.name]:
            if verb.name == "fault":
                return _fault(words[1:])
            parser = _Parser(f"{above} {verb.name}", verb.help, verb.more)
            verb.takes(parser)
            return verb.does(parser.parsed(words[1:]))
    known = [verb.name for verb in verbs]
    said = " ".join(words[:1])
    return complain([f"{above} wants one of {', '.join(known)}, not {said}{_meant(said, known)}"])


def _fault(words: Sequence[str]) -> int:
    verbs = "\n".join(f"{verb.name:<8}{verb.help}" for verb in _FAULT_VERBS)
    parser = _Parser("simnode fault", _FAULT_HELP, verbs, "simnode fault [-h] COMMAND [...]")
    if not words or words[0] in ("-h", "--help"):
        parser.print_help(None if words else sys.stderr)
        return 0 if words else USAGE_FAULT
    return _chosen(_FAULT_VERBS, "simnode fault", words)


def _takes_node(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--name", help="the node's name; default: the node one is in, else default, else the host's")
    which.add_argument("--socket", metavar="PATH", help="its control socket; default: SIMNODE_CONTROL, if that is set")


def _takes_assignments(parser: argparse.ArgumentParser) -> None:
    _takes_node(parser)
    parser.add_argument(
        "--gpu", metavar="N|UUID|all", help="without it KEY names a section, as system.num_devices does"
    )
    parser.add_argument(
        "assignments", metavar="KEY=VALUE", nargs="+", help="one of `simnode profile keys`, and its new value in YAML"
    )


def _takes_keys(parser: argparse.ArgumentParser) -> None:
    _takes_node(parser)
    parser.add_argument("--gpu", metavar="N|UUID|all", help="default: everything")
    parser.add_argument("keys", metavar="KEY", nargs="*", help="one of `simnode profile keys`, or a group of them")


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
    parser.add_argument("--gpu", metavar="N|UUID|all", help=f"which fails; not for {SKEW}")
    parser.add_argument("--xid", metavar="N", type=_xid, help="the XID to raise; 0: none; default: the mode's own")
    parser.add_argument(
        "--kernel-version",
        metavar="V",
        help=f"for {SKEW}: of which driver the kernel modules are; default: an older one than the libraries",
    )
    parser.add_argument(
        "mode", metavar="MODE", nargs="?", type=_mode, help=f"{', '.join(MODES)}, {SKEW}; without one only an XID"
    )


def _xid(written: str) -> int:
    if not (written.isascii() and written.isdigit() and int(written) <= _LARGEST_XID):
        raise argparse.ArgumentTypeError(f"{written!r} is no number from 0 to {_LARGEST_XID}")
    return int(written)


def _mode(written: str) -> str:
    """The mode that is meant; `-` and `_` are one letter in it."""
    known = {mode.replace("-", "_"): mode for mode in (*MODES, SKEW)}
    mode = known.get(written.replace("-", "_"))
    if mode is None:
        hint = _meant(written, known.values()) or f": it is one of {', '.join(known.values())}"
        raise argparse.ArgumentTypeError(f"{written!r} is no way to fail{hint}")
    return mode


def _meant(written: str, known: Iterable[str]) -> str:
    """`; did you mean "…"?` or nothing. What it imports costs much, but somebody has to read the answer anyway."""
    from simnode.profile.shapes import did_you_mean

    return did_you_mean(written, known)


def _takes_gpu(parser: argparse.ArgumentParser) -> None:
    _takes_node(parser)
    parser.add_argument("--gpu", metavar="N|UUID|all", default="all", help="which heals; default: all")


def _takes_names(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--name", default=DEFAULT_NAME, help=f"the node's name; default: {DEFAULT_NAME}")
    which.add_argument("--all", action="store_true", help="every node of this user")


def _set(words: Words) -> int:
    for note in _ask(words, "set", gpu=words.gpu, assignments=words.assignments).get("notes", ()):
        complain([f"note: {note}"])
    return 0


def _get(words: Words) -> int:
    answer = _ask(words, "get", gpu=words.gpu, keys=words.keys)
    found = {**({"node": answer["node"]} if answer["node"] else {}), **answer["devices"]}
    if words.json:
        return print_json(found)
    for line in values(found, words.keys):
        print(line)
    return 0


def _reset(words: Words) -> int:
    _ask(words, "reset", gpu=words.gpu, keys=words.keys)
    return 0


def _inject(words: Words) -> int:
    if words.mode == SKEW:
        if words.gpu is not None or words.xid is not None:
            return complain([f"{SKEW} is the whole node's fault: leave out --gpu and --xid"])
        _ask(words, "fault-skew", version=words.kernel_version)
        return 0
    if words.kernel_version is not None:
        return complain([f"--kernel-version is only for {SKEW}"])
    if words.gpu is None:
        return complain(["which GPU fails? Give --gpu N, --gpu UUID or --gpu all"])
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
        print(whole_fault(fault))
    return 0


def _status(words: Words) -> int:
    socket, node = _socket(words)
    described = node.description() if node is not None else {}
    answer = {**described, **_answer(socket, node, {"verb": "status"}, _PATIENCE_OF_QUESTIONS)}
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
    patience = _PATIENCE_OF_QUESTIONS if verb in ("get", "fault-list") else _PATIENCE_OF_CHANGES
    return _answer(*_socket(words), {"verb": verb, **fields}, patience)


def _answer(socket: str, node: Node | None, request: Mapping[str, object], patience: float) -> Answer:
    return call(socket, request, patience, whose="" if node is None else f"node {node.name}")


def _socket(words: Words) -> tuple[str, Node | None]:
    """The control socket that is meant, and its node if it is one that stands by a name."""
    if words.name is None:
        known = words.socket or os.environ.get("SIMNODE_CONTROL") or here(os.environ)
        if known:
            return known, None
    try:
        node = find(os.environ, DEFAULT_NAME if words.name is None else words.name)
    except NoSuchNode:
        if words.name is None and os.path.exists(HOST_SOCKET):  # noqa: PTH110 (pathlib costs 10 ms)
            return HOST_SOCKET, None
        raise
    return node.control(), node


_SET_HELP = """The new values are read when this returns. Nothing, or null, as VALUE unsets KEY.

  simnode set --gpu 3 thermal.temperature_gpu_c=91
  simnode set --gpu all utilization.gpu=80 power.current_draw_mw=650000
  simnode set system.num_devices=4"""
_GET_HELP = """A line is GPU:KEY=VALUE, or node:KEY=VALUE for the node's own sections; of one GPU's one key it is
the bare value. KEY may stand for a group, such as thermal; without one, all that the GPUs have is printed.
Values are JSON but for texts, which are as they are. What a load moves is printed as it is without load.

  simnode get --gpu 3 thermal.temperature_gpu_c    91
  simnode get utilization.gpu                      0:utilization.gpu=0, and so on for each GPU
  simnode get system.num_devices                   8"""
_RESET_HELP = """Without words everything is as the profile says again.

  simnode reset --gpu 3 thermal.temperature_gpu_c"""
_FAULT_HELP = "Make GPUs of a running node fail, or the node itself, and heal them."
_INJECT_HELP = f"""{SKEW} is the node's: the kernel modules stay on another driver's version than the libraries,
as after an upgrade without a reboot, and NVML refuses whoever comes now. Whoever is in stays.

  simnode fault inject --gpu 3 fallen_off_bus
  simnode fault inject {SKEW} --kernel-version 535.261.03"""
_CLEAR_HELP = f"Without --gpu all faults end, {SKEW} too."
_FAULT_VERBS = (
    Verb("inject", "Make a GPU fail, or the node itself.", _takes_failure, _inject, _INJECT_HELP),
    Verb("list", "Print the GPUs that fail, and how.", _takes_node_and_json, _list_faults),
    Verb("clear", "End faults, one GPU's also where all of them were made to fail.", _takes_gpu, _clear, _CLEAR_HELP),
)
VERBS = (
    Verb("set", "Change what a running node reads.", _takes_assignments, _set, _SET_HELP),
    Verb("get", "Print the values that a running node has.", _takes_keys_and_json, _get, _GET_HELP),
    Verb("reset", "Take back what was set, faults included.", _takes_keys, _reset, _RESET_HELP),
    Verb("fault", _FAULT_HELP, _takes_node, lambda _: 0),
    Verb("status", "Print what a running node is and how it does.", _takes_node_and_json, _status),
    Verb("ls", "List the nodes that stand.", _takes_form, _ls),
    Verb("down", "Take a node down, with everything in it.", _takes_names, _down),
)
