"""`simnode up`: a node that outlives its launcher, under a name; it ends with its init.

There is nothing to fall back to where namespaces are refused: a node that only environment variables lead to belongs to
one command.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from simnode.refusals import told
from simnode.sandbox.command import open_standard_descriptors
from simnode.sandbox.complaints import complain, write_error
from simnode.sandbox.launcher import NodeOrder
from simnode.sandbox.machine import UnknownMachine, survey
from simnode.sandbox.node import node_root, start
from simnode.sandbox.places import UnsafeDirectory
from simnode.sandbox.reports import NamespacesRefused, NodeFailed
from simnode.sandbox.spawn import Lasting, keep_state, move_up, nameless
from simnode.sandbox.standing import BadName, Claim, StandingError, claim
from simnode.sandbox.surroundings import inside

_FAILED, _USAGE_FAULT = 1, 2


def up(order: NodeOrder, name: str, board: str, environ: Mapping[str, str]) -> int:
    """Bring the node up and leave it standing as `name`; the exit code. `board` is what lists call it by."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    open_standard_descriptors()
    try:
        claimed = claim(environ, name)
    except BadName as error:
        return _fail(str(error), _USAGE_FAULT)
    except OSError as error:
        return _fail(told(error))
    except (StandingError, UnsafeDirectory) as error:
        return _fail(str(error))
    claimed = Claim(claimed.path, move_up(claimed.file))
    log = nameless("log")
    try:
        _stand(order, claimed, log, board, environ)
    except NamespacesRefused as refusal:
        reason = f"a node cannot stay where namespaces are refused ({refusal}); simnode run works without"
    except OSError as error:
        reason = f"{claimed.path}: {told(error)}"
    except (NodeFailed, StandingError, UnknownMachine) as failure:
        reason = str(failure)
    else:
        return 0
    claimed.give_up()
    _repeat(log)
    return _fail(reason)


def _stand(order: NodeOrder, claimed: Claim, log: int, board: str, environ: Mapping[str, str]) -> None:
    machine = survey()
    root = node_root(machine)

    def begun(init: int, with_pids: bool) -> None:
        claimed.record(init, with_pids=with_pids, root=root, board=board)

    lasting = Lasting(claimed.file, log)
    state = keep_state(order.state)
    node = start(order.init, machine, order.agent_on(machine), inside(environ), state, lasting=lasting, begun=begun)
    try:
        claimed.staged()
        node.leave()
    except BaseException:
        node.end()
        raise


def _repeat(log: int) -> None:
    """What init and the agent said before they failed."""
    write_error(os.pread(log, os.fstat(log).st_size, 0).decode(errors="replace"))


def _fail(reason: str, code: int = _FAILED) -> int:
    complain(reason)
    return code
