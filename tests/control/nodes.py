"""A node with a real agent, a real image and a control socket, without namespaces: everything lies below one root."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from simnode.agent import Agent, AgentConfig
from simnode.agent.control import ControlSocket
from simnode.control_client import SOCKET, Answer, call
from simnode.host import Host
from simnode.profile import Options, load_board
from simnode.simulators.gpudriver import DriverFiles, GPUDriver
from simnode.sources.file import GENERATION, OVERRIDES, FileSource, Inputs

FILES = DriverFiles(library=b"library", nvidia_smi=b"nvidia-smi")
IMAGE = "driver/config/image.1"


class Node:
    """A running node and its client. `agent` belongs to another thread: look, do not touch."""

    def __init__(self, root: Path, agent: Agent) -> None:
        self.root = root
        self.agent = agent
        self.socket = root / SOCKET

    def call(self, verb: str, **fields: object) -> Answer:
        """One request and its answer."""
        return call(self.socket, {"verb": verb, **fields})

    def set(self, gpu: object, *assignments: str) -> Answer:
        """Lay values over a GPU; None is the node itself."""
        return self.call("set", gpu=gpu, assignments=assignments)

    def get(self, gpu: int, key: str) -> Any:
        """One value."""
        return self.call("get", gpu=gpu, keys=[key])["devices"][str(gpu)][key]


@contextmanager
def running(root: Path, config: Path | bytes | None = None) -> Iterator[Node]:
    """A node of a board H100, staged; it is shut down at the end."""
    raw = load_board("h100").raw if config is None else config
    root.mkdir(exist_ok=True)
    ready = threading.Event()
    made: list[Node] = []
    stop: list[tuple[asyncio.AbstractEventLoop, set[asyncio.Task[None]]]] = []

    async def serve() -> None:
        log = logging.getLogger("tests.control")
        source = FileSource(Inputs(raw, root / OVERRIDES), Options(), {}, root / GENERATION, log)
        driver = GPUDriver(Host(root, boot_id="boot"), FILES, "none")
        agent = Agent(AgentConfig((driver,), source, log, first_retry=0.05))
        control = ControlSocket(root / SOCKET, source, agent)
        tasks = {asyncio.create_task(agent.run()), asyncio.create_task(control.serve())}
        stop.append((asyncio.get_running_loop(), tasks))
        await asyncio.wait_for(agent.staged().wait(), 30)
        made.append(Node(root, agent))
        ready.set()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield made[0]
    finally:
        loop, tasks = stop[0]
        for task in tasks:
            loop.call_soon_threadsafe(task.cancel)
        thread.join(30)
