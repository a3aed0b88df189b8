"""`simnode doctor`: what consumers would find wrong with a node that stands, one line for each cause.

A node in namespaces is looked at from inside, by a child that has joined them; a host's from where its root is seen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import asdict

from simnode.cli import USAGE_FAULT, complain
from simnode.cli.realdriver import real_driver
from simnode.cli.said import Mistake
from simnode.cli.shown import print_json
from simnode.control_client import SOCKET
from simnode.doctor import CONSUMERS, View, beside, examine, of_host, of_local
from simnode.doctor.view import NODE_ROOT
from simnode.sandbox.namespaces import Namespaces
from simnode.sandbox.places import UnsafeDirectory
from simnode.sandbox.standing import DEFAULT_NAME, NoSuchNode, StandingError, find, here

FINDINGS = 1


def doctor(
    name: str | None, host_root: Path | None, cdi: Sequence[str], consumers: Sequence[str], *, as_json: bool
) -> int:
    """Print what these consumers (all, if none is named) would find; 0: nothing, 1: something, 2: cannot tell.

    Without a name or a root it is the node that one is in, else the default one, else the host's.
    """
    chosen = [known for known in CONSUMERS if known in consumers] or list(CONSUMERS)

    def print_findings(which: str, view: View) -> int:
        findings = examine(view, chosen)
        if as_json:
            listed = [asdict(finding) for finding in findings]
            print_json({"node": which, "ok": not findings, "consumers": chosen, "findings": listed})
        else:
            for finding in findings:
                print(finding.line())
            if not findings:
                print(f"{which}: nothing wrong for {', '.join(chosen)}")
        return FINDINGS if findings else 0

    try:
        if host_root is not None:
            return _host(host_root, cdi, print_findings)
        inside = here(os.environ) if name is None else None
        if inside is not None:
            return print_findings("this node", _around(inside.removesuffix(f"/{SOCKET}")))
        try:
            return _standing(name or DEFAULT_NAME, print_findings)
        except NoSuchNode:
            if name is None and os.path.lexists(NODE_ROOT):
                return _host(Path("/"), cdi, print_findings)
            raise
    except (StandingError, UnsafeDirectory) as error:
        return complain([str(error)])


def check_consumers(words: Sequence[str]) -> None:
    """Raises Mistake for a word that is no consumer's name."""
    for word in words:
        if word not in CONSUMERS:
            raise Mistake(f"{word!r} is no consumer that simnode knows: want {', '.join(CONSUMERS)}")


def _host(root: Path, cdi: Sequence[str], print_findings: Callable[[str, View], int]) -> int:
    try:
        if not root.is_dir():
            return complain([f"--host-root {root}: is no directory"])
    except OSError as error:
        return complain([f"--host-root {root}: {error.strerror}"])
    seen = str(root.absolute()).rstrip("/")
    foreign = real_driver(root.absolute()).removeprefix(seen)
    return print_findings(f"host {root}", of_host(seen, tuple(cdi), foreign))


def _standing(name: str, print_findings: Callable[[str, View], int]) -> int:
    """Look at the node `name` from inside: only children of who joins its pid namespace are in it."""
    node = find(os.environ, name)
    process = node.process()
    if not node.staged:
        raise StandingError(f"node {name} is still coming up")
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = USAGE_FAULT
    try:
        Namespaces(Path(f"/proc/self/fd/{process}")).join()
        code = _in_child(lambda: print_findings(f"node {name}", of_local(node.root)))
    except OSError as error:
        complain([f"node {name} cannot be entered: {error}"])
    finally:
        os._exit(code)


def _in_child(work: Callable[[], int]) -> int:
    """The exit code of `work`, done by a child of this process."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = USAGE_FAULT
    try:
        code = work()
        sys.stdout.flush()
    finally:
        os._exit(code)


def _around(node_root: str) -> View:
    """The node that this process is in: beside the standard places only if the environment leads to it."""
    return beside(node_root) if os.environ.get("SIMNODE_IMAGE") == f"{node_root}/driver/config" else of_local(node_root)
