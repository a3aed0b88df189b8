"""`simnode clean`: what a killed agent has left goes, as an agent that ends in good order would have taken it away.

Besides that goes what an agent leaves on purpose: overrides, the number of the State, the locks. Whatever simnode did
not make stays, and is named.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from simnode.agent import Agent, AgentConfig, Reports, ShutdownError
from simnode.cli import FAILED, complain
from simnode.cli.daemon import logging_to_stderr, stand_alone
from simnode.cli.hostnode import HostError, HostNode, NoHostError
from simnode.contracts import Update
from simnode.simulators.gpudriver import DriverFiles

_OURS = (
    "state/overrides.yaml*",
    "state/generation*",
    "state/imex-software*",
    "state/*.damaged",
    "state/journal/*.damaged",
    "control/*.sock",
)


class _Nothing:
    """A source that has nothing to say, so that an agent goes straight to its end."""

    async def watch(self) -> AsyncIterator[Update]:
        """No observation."""
        updates: tuple[Update, ...] = ()
        for update in updates:
            yield update

    async def close(self) -> None:
        """Nothing is held."""


def clean_host(host_root: Path, timeout: float, log_level: str, log_format: str) -> int:
    """Revoke, discard and forget everything below this root; the exit code. Refused while an agent keeps it."""
    stand_alone()
    node = HostNode(host_root)
    try:
        node.check()
        if not node.exists():
            return 0
        with node.kept():
            with logging_to_stderr(log_level, log_format) as log:
                reports = Reports()
                config = AgentConfig(
                    simulators=node.simulators(DriverFiles(b"", b""), reports, log),
                    source=_Nothing(),
                    log=log,
                    shutdown_timeout=timeout,
                    staging_lock_path=node.staging_lock,
                    reports=reports,
                )
                asyncio.run(Agent(config).run())
            _forget(node)
        left = _left(node.node_root)
    except ShutdownError:
        return FAILED
    except NoHostError as error:
        return complain([str(error)])
    except HostError as error:
        complain([str(error)])
        return FAILED
    if left:
        complain([f"not made by simnode, and left alone: {', '.join(left[:3])}{' …' if left[3:] else ''}"])
        return FAILED
    return 0


def _left(node_root: Path) -> list[str]:
    """What is not simnode's own. Ledgers stay with it: directories around it are still to be taken away."""
    ledgers = set(node_root.glob("state/parents*.json"))
    return sorted(str(path) for path in node_root.rglob("*") if path not in ledgers and not _holds_something(path))


def _holds_something(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and any(path.iterdir())


def _forget(node: HostNode) -> None:
    """Remove what outlives an agent; the locks last, and while this process holds the one for life."""
    for pattern in _OURS:
        for path in node.node_root.glob(pattern):
            with contextlib.suppress(IsADirectoryError):
                path.unlink(missing_ok=True)
    for directory in ("state/journal", "state"):
        with contextlib.suppress(OSError):
            (node.node_root / directory).rmdir()
    for lock in (node.staging_lock, node.lifetime_lock):
        lock.unlink(missing_ok=True)
