"""`simnode agent`: puts the node agent of a host together, and ends it in good order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from simnode import __version__
from simnode.agent import Agent, AgentConfig, Reports, ShutdownError
from simnode.agent.control import ControlSocket, listening
from simnode.agent.health import pages
from simnode.agent.logs import LEVELS, Lines, Outlet
from simnode.agent.responder import AddressError, Responder, split
from simnode.cli import FAILED, complain
from simnode.cli.hostnode import HostError, HostNode, NoHostError, real_driver
from simnode.profile import Options
from simnode.sandbox.installed import NotInstalled, native
from simnode.simulators.gpudriver import DriverFiles
from simnode.sources.file import GENERATION, MIG_PROFILES, OVERRIDES, FileSource, Inputs
from simnode.sources.fixed import utc_now

_FLUSH = 1.0
_ENDS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Settings:
    """What the command line and the environment say; times in seconds. `said`: what beats the environment's names.

    `staging_lock_path`: None for the usual place, "" for none. An empty `health_addr` serves no port.
    """

    config: Path
    topology: Path | None
    host_root: Path
    health_addr: str
    staging_lock_path: str | None
    resync_interval: float
    shutdown_timeout: float
    log_level: str
    log_format: str
    gpus: int | None
    driver_version: str | None
    said: Mapping[str, str]
    fabricmanager_init_delay: float
    nvidia_smi: Path | None
    force: bool


def keep(settings: Settings) -> int:
    """Be the agent until SIGTERM or SIGINT; the exit code."""
    # Process 1 of a container never hears of a signal that comes before its handler, unless it holds it back.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    node = HostNode(settings.host_root)
    try:
        if settings.health_addr:
            split(settings.health_addr)
    except AddressError as error:
        return complain([f"--health-addr: {error}"])
    try:
        if not settings.config.exists():
            return complain([f"--config {settings.config}: there is no such file"])
        found = real_driver(settings.host_root)
        if found and not settings.force:
            complain([f"{found}: this host has a real NVIDIA driver; --force runs a simulated one beside it"])
            return FAILED
        program = settings.nvidia_smi or Path(native("nvidia-smi"))
        files = DriverFiles(Path(native("libnvidia-ml.so")).read_bytes(), program.read_bytes())
        with node.kept(), logging_to_stderr(settings.log_level, settings.log_format) as log:
            return asyncio.run(_serve(settings, node, files, log))
    except NoHostError as error:
        return complain([str(error)])
    except (AddressError, HostError, NotInstalled) as error:
        complain([str(error)])
        return FAILED


@contextlib.contextmanager
def logging_to_stderr(level: str, form: str) -> Iterator[logging.Logger]:
    """The agent's log; what is still unwritten when this ends gets a second."""
    log = logging.getLogger("simnode")
    log.propagate = False
    log.setLevel(LEVELS[level])
    outlet = Outlet(sys.stderr)
    outlet.setFormatter(Lines(form))
    log.addHandler(outlet)
    try:
        yield log
    finally:
        log.removeHandler(outlet)
        outlet.finish(_FLUSH)


async def _serve(settings: Settings, node: HostNode, files: DriverFiles, log: logging.Logger) -> int:
    source = _source(settings, node, log)
    agent = Agent(_configured(settings, node, files, source, log))
    control = ControlSocket(node.control_socket, source, agent)
    responder = Responder(pages(agent, utc_now))
    with listening(node.health_socket, os.geteuid()) as health:
        try:
            address = await responder.listen(settings.health_addr) if settings.health_addr else "no port"
            await responder.listen_on(health)
            log.info("simnode %s keeps %s; probes at %s and %s", __version__, node.root, address, node.health_socket)
            return await _live(agent, control, log)
        finally:
            await responder.close()


async def _live(agent: Agent, control: ControlSocket, log: logging.Logger) -> int:
    serving = asyncio.create_task(agent.run(), name="agent")
    for number in _ENDS:
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    controlling = asyncio.create_task(_controlled(control, log), name="control")
    try:
        await serving
    except asyncio.CancelledError:
        log.info("ended as told: everything is taken away")
    except ShutdownError:
        return FAILED
    else:
        log.info("ended with its source: everything is taken away")
    finally:
        controlling.cancel()
        await asyncio.gather(controlling, return_exceptions=True)
    return 0


async def _controlled(control: ControlSocket, log: logging.Logger) -> None:
    """A node that cannot be controlled is kept all the same."""
    try:
        await control.serve()
    except Exception:
        log.exception("the control socket is closed")


def _source(settings: Settings, node: HostNode, log: logging.Logger) -> FileSource:
    inputs = Inputs(
        config=settings.config,
        overrides=node.node_root / OVERRIDES,
        topology=settings.topology or b"",
        mig_profiles=settings.config.with_name(MIG_PROFILES),
    )
    options = Options(gpus=settings.gpus, driver_version=settings.driver_version)
    environ = {**os.environ, **settings.said}
    return FileSource(inputs, options, environ, node.node_root / GENERATION, log)


def _configured(
    settings: Settings, node: HostNode, files: DriverFiles, source: FileSource, log: logging.Logger
) -> AgentConfig:
    if settings.staging_lock_path is None:
        lock: Path | None = node.staging_lock
    else:
        lock = Path(settings.staging_lock_path) if settings.staging_lock_path else None
    reports = Reports()
    return AgentConfig(
        simulators=node.simulators(files, reports, log, settings.fabricmanager_init_delay),
        source=source,
        log=log,
        shutdown_timeout=settings.shutdown_timeout,
        staging_lock_path=lock,
        reports=reports,
        resync_interval=settings.resync_interval,
    )
