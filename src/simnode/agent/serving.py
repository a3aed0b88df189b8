"""The two sockets of a node beside its agent: control and health, below the node root, as long as the agent runs."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from simnode.agent.agent import Agent
from simnode.agent.control import ControlSocket, listening
from simnode.agent.health import pages
from simnode.agent.responder import Responder
from simnode.control_client import HEALTH_SOCKET, SOCKET
from simnode.refusals import told
from simnode.sources.file import FileSource


@asynccontextmanager
async def served(
    agent: Agent, source: FileSource, node_root: Path, log: logging.Logger, now: Callable[[], datetime]
) -> AsyncIterator[Responder]:
    """Answer at both while this lasts; the responder can listen elsewhere, too. `now` is the wall clock.

    Raises OSError if the health socket cannot be made; a node that cannot be controlled is kept all the same.
    """
    responder = Responder(pages(agent, now))
    with listening(node_root / HEALTH_SOCKET, os.geteuid()) as health:
        controlling = asyncio.create_task(_control(ControlSocket(node_root / SOCKET, source, agent), log))
        try:
            await responder.listen_on(health)
            yield responder
        finally:
            controlling.cancel()
            await asyncio.gather(controlling, return_exceptions=True)
            await responder.close()


async def _control(control: ControlSocket, log: logging.Logger) -> None:
    try:
        await control.serve()
    except OSError as error:
        log.error("the control socket is closed: %s", told(error))  # noqa: TRY400
    except Exception:
        log.exception("the control socket is closed")
