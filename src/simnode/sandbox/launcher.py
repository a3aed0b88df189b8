"""`simnode run`: a node, a command in it, and nothing afterwards.

A node in namespaces is tried first. Only if the kernel refuses them, and before the command has run, a plain directory
serves instead, and one line says what is lost. The launcher has one thread and imports neither asyncio nor the agent.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from msgspec import Struct

from simnode.sandbox.command import (
    Command,
    Terminal,
    attend,
    exit_code,
    open_standard_descriptors,
    working_directory,
)
from simnode.sandbox.complaints import complain
from simnode.sandbox.directory import UnsafeDirectory, locked_directory, place
from simnode.sandbox.fallback import PlainNode
from simnode.sandbox.machine import Machine, UnknownMachine, survey
from simnode.sandbox.namespaces import become_root, die_with_parent
from simnode.sandbox.node import node_root, start
from simnode.sandbox.reports import NamespacesRefused, NodeFailed
from simnode.sandbox.spawn import keep_state
from simnode.sandbox.surroundings import inside

_NODE_FAILED = 1
_LOST = (
    "only programs that use the loader find the node: no /dev/nvidia*, /proc/driver/nvidia or /usr/bin/nvidia-smi, "
    "and /sys shows this machine's PCI bus"
)
_NOT_ROOT = "; --root does nothing, and the command stays uid {}"


class NodeOrder(Struct, frozen=True):
    """A node. `state`: what the agent keeps it by, encoded (handover.py); `init`: the path of init.

    `agent`: the agent's command line, but for the node root and the kind of its devices.
    """

    state: bytes
    agent: tuple[str, ...]
    init: str

    def agent_on(self, machine: Machine) -> list[str]:
        """The whole command line of the agent of a node on `machine`."""
        devices = "node" if machine.privileged else "stand-in"
        return [*self.agent, "--root", node_root(machine), "--devices", devices]


class Order(NodeOrder, frozen=True):
    """A node and a command in it."""

    command: tuple[str, ...]
    as_root: bool = False


def run(order: Order, environ: Mapping[str, str]) -> int:
    """Run the command inside a node and return its exit code as a shell would; 1 if there is no node."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    open_standard_descriptors()
    state = keep_state(order.state)
    try:
        return _in_namespaces(order, environ, state)
    except (NamespacesRefused, UnknownMachine) as refusal:
        refused = refusal
    except NodeFailed as failure:
        return _fail(str(failure))
    uid = os.geteuid()
    complain(f"no namespaces ({refused}): {_LOST}{_NOT_ROOT.format(uid) if order.as_root and uid != 0 else ''}")
    try:
        return _in_directory(order, environ, state)
    except (NodeFailed, UnsafeDirectory, OSError) as failure:
        return _fail(str(failure))


def _in_namespaces(order: Order, environ: Mapping[str, str], state: int) -> int:
    machine = survey()
    environ = inside(environ)
    terminal = Terminal()
    command = Command(order.command, environ, working_directory())
    node = start(order.init, machine, order.agent_on(machine), environ, state)
    try:
        node.join()
        nested = order.as_root and os.geteuid() != 0
        pid = command.fork(become_root if nested else _nothing)
        status = attend(pid, terminal, node.ended)
        if node.gone() and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            complain("the node ended before the command did")
    finally:
        terminal.take_back()
        node.end()
    return exit_code(status)


def _in_directory(order: Order, environ: Mapping[str, str], state: int) -> int:
    launcher = os.getpid()
    uid = os.geteuid()
    with locked_directory(place(environ, uid), uid) as root:
        terminal = Terminal()
        agent = [*order.agent, "--root", str(root), "--devices", "none", "--parent", str(launcher)]
        node = PlainNode(str(root), agent, environ, state)
        try:
            command = Command(order.command, node.environ(environ), working_directory())
            pid = command.fork(lambda: die_with_parent(launcher, signal.SIGKILL))
            status = attend(pid, terminal, node.ended)
        finally:
            terminal.take_back()
            node.end()
    return exit_code(status)


def _nothing() -> None:
    return


def _fail(reason: str) -> int:
    complain(reason)
    return _NODE_FAILED
