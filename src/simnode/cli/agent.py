"""`simnode agent`: puts the node agent of a host together, and ends it in good order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from simnode import __version__
from simnode.agent import Agent, AgentConfig, Reports, ShutdownError
from simnode.agent.control import ControlSocket, controlled, listening
from simnode.agent.health import pages
from simnode.agent.logs import LEVELS, Lines, Outlet
from simnode.agent.responder import AddressError, Responder, split
from simnode.cli import FAILED, complain
from simnode.cli.hostnode import HostError, HostNode, NoHostError, real_driver
from simnode.profile import Compiler, Options, ProfileError, load_board
from simnode.profile.faults import Fault
from simnode.sandbox.command import open_standard_descriptors
from simnode.sandbox.installed import NotInstalled, native
from simnode.simulators.gpudriver import DriverFiles
from simnode.sources.file import GENERATION, MIG_PROFILES, OVERRIDES, FileSource, Inputs
from simnode.sources.fixed import utc_now

_FLUSH = 1.0
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LARGEST_PROGRAM = 64 << 20
_ANY_BOARD = "h100"


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
    """Be the agent until SIGTERM, SIGINT or SIGHUP; the exit code."""
    # Process 1 of a container never hears of a signal that comes before its handler, unless it holds it back.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    become_daemon()
    node = HostNode(settings.host_root)
    mistakes = list(_mistakes(settings))
    if mistakes:
        return complain(mistakes)
    try:
        found = real_driver(settings.host_root)
        if found and not settings.force:
            complain([f"{found}: this host has a real NVIDIA driver; --force runs a simulated one beside it"])
            return FAILED
        program = settings.nvidia_smi or Path(native("nvidia-smi"))
        library, cuda = (Path(native(name)).read_bytes() for name in ("libnvidia-ml.so", "libcuda.so"))
        files = DriverFiles(library, program.read_bytes(), cuda)
        with node.kept(), logging_to_stderr(settings.log_level, settings.log_format) as log:
            return asyncio.run(_serve(settings, node, files, log))
    except NoHostError as error:
        return complain([str(error)])
    except (AddressError, HostError, NotInstalled) as error:
        complain([str(error)])
        return FAILED


def become_daemon() -> None:
    """Depend on nothing that whoever started this process left behind: closed descriptors, a umask, a dead reader."""
    open_standard_descriptors()
    os.umask(0o022)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


@contextlib.contextmanager
def logging_to_stderr(level: str, form: str) -> Iterator[logging.Logger]:
    """The agent's log, and asyncio's; what is still unwritten when this ends gets a second."""
    outlet = Outlet()
    outlet.setFormatter(Lines(form))
    log = logging.getLogger("simnode")
    for each in (log, logging.getLogger("asyncio")):
        each.propagate = False
        each.addHandler(outlet)
    log.setLevel(LEVELS[level])
    try:
        yield log
    finally:
        for each in (log, logging.getLogger("asyncio")):
            each.removeHandler(outlet)
        outlet.finish(_FLUSH)


def _mistakes(settings: Settings) -> Iterator[str]:
    """What no later change can put right, a line each."""
    try:
        if settings.health_addr:
            split(settings.health_addr)
    except AddressError as error:
        yield f"--health-addr: {error}"
    topology = settings.topology if settings.topology and os.path.lexists(settings.topology) else None
    for option, path in (
        ("--config", settings.config),
        ("--topology", topology),
        ("--nvidia-smi", settings.nvidia_smi),
    ):
        if path is not None and (refusal := _unreadable(path)):
            yield f"{option} {path}: {refusal}"
    if settings.nvidia_smi and settings.nvidia_smi.is_file() and settings.nvidia_smi.stat().st_size > _LARGEST_PROGRAM:
        yield f"--nvidia-smi {settings.nvidia_smi}: is larger than {_LARGEST_PROGRAM >> 20} MiB"
    try:
        Compiler(load_board(_ANY_BOARD), _options(settings), _environ(settings)).compile()
    except ProfileError as error:
        yield from (_as_given(fault, settings) for fault in error.faults)


def _unreadable(path: Path) -> str:
    """Why this is no file to read, "" if it is one."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "is not a regular file"
        return "" if os.access(path, os.R_OK) else "cannot be read: Permission denied"
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _as_given(fault: Fault, settings: Settings) -> str:
    """The fault of a variable that an option stands for names that option."""
    if fault.file == "environment" and fault.key in settings.said:
        option = fault.key.removeprefix("SIMNODE_").lower().replace("_", "-")
        return str(replace(fault, file=f"--{option}", key=""))
    return str(fault)


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
    _hear_the_end(asyncio.get_running_loop(), serving.cancel)
    controlling = asyncio.create_task(controlled(control, log), name="control")
    try:
        await serving
    except asyncio.CancelledError:
        log.info("ended as told: everything is taken away")
    except ShutdownError:
        return FAILED
    else:
        log.info("ended with its source: everything is taken away")
    finally:
        for number in _ENDS:
            signal.signal(number, signal.SIG_IGN)
        controlling.cancel()
        await asyncio.gather(controlling, return_exceptions=True)
    return 0


def _hear_the_end(loop: asyncio.AbstractEventLoop, end: Callable[[], object]) -> None:
    """Call `end` at each signal that asks for it, not by handlers of asyncio's, which go with the loop: too early.

    A hangup that the caller ignores (nohup) stays ignored.
    """
    for number in _ENDS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)


def _source(settings: Settings, node: HostNode, log: logging.Logger) -> FileSource:
    inputs = Inputs(
        config=settings.config,
        overrides=node.node_root / OVERRIDES,
        topology=settings.topology or b"",
        mig_profiles=settings.config.with_name(MIG_PROFILES),
    )
    return FileSource(inputs, _options(settings), _environ(settings), node.node_root / GENERATION, log)


def _options(settings: Settings) -> Options:
    return Options(gpus=settings.gpus, driver_version=settings.driver_version)


def _environ(settings: Settings) -> Mapping[str, str]:
    return {**os.environ, **settings.said}


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
