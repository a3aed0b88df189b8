"""`simnode agent`: puts the node agent of a host together, and ends it in good order."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from simnode import __version__
from simnode.agent import Agent, AgentConfig, Reports, ShutdownError
from simnode.agent.responder import AddressError
from simnode.agent.serving import served
from simnode.cli import FAILED, complain
from simnode.cli.daemon import hearing_the_end, hold_back_the_end, logging_to_stderr, stand_alone
from simnode.cli.hostnode import HostError, HostNode, NoHostError
from simnode.cli.realdriver import real_driver
from simnode.cli.settings import Settings
from simnode.sandbox.installed import NotInstalled, native
from simnode.simulators.gpudriver import DriverFiles
from simnode.sources.file import GENERATION, MIG_PROFILES, OVERRIDES, FileSource, Inputs
from simnode.sources.fixed import utc_now


def keep(settings: Settings) -> int:
    """Be the agent until SIGTERM, SIGINT or SIGHUP; the exit code."""
    hold_back_the_end()
    stand_alone()
    mistakes = list(settings.mistakes())
    if mistakes:
        return complain(mistakes)
    node = HostNode(settings.host_root)
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


async def _serve(settings: Settings, node: HostNode, files: DriverFiles, log: logging.Logger) -> int:
    source = _source(settings, node, log)
    agent = Agent(_configured(settings, node, files, source, log))
    async with served(agent, source, node.node_root, log, utc_now) as responder:
        address = await responder.listen(settings.health_addr) if settings.health_addr else "no port"
        log.info("simnode %s keeps %s; probes at %s and %s", __version__, node.root, address, node.health_socket)
        return await _live(agent, log)


async def _live(agent: Agent, log: logging.Logger) -> int:
    serving = asyncio.create_task(agent.run(), name="agent")
    with hearing_the_end(serving.cancel):
        try:
            await serving
        except asyncio.CancelledError:
            log.info("ended as told: everything is taken away")
        except ShutdownError:
            return FAILED
        else:
            log.info("ended with its source: everything is taken away")
    return 0


def _source(settings: Settings, node: HostNode, log: logging.Logger) -> FileSource:
    inputs = Inputs(
        config=settings.config,
        overrides=node.node_root / OVERRIDES,
        topology=settings.topology or b"",
        mig_profiles=settings.config.with_name(MIG_PROFILES),
    )
    return FileSource(inputs, settings.options, settings.environ, node.node_root / GENERATION, log)


def _configured(
    settings: Settings, node: HostNode, files: DriverFiles, source: FileSource, log: logging.Logger
) -> AgentConfig:
    if settings.staging_lock_path is None:
        lock: Path | None = node.staging_lock
    else:
        lock = Path(settings.staging_lock_path) if settings.staging_lock_path else None
    reports = Reports()
    return AgentConfig(
        simulators=node.simulators(
            files,
            reports,
            log,
            settings.fabricmanager_init_delay,
            hook=Path(native("container-hook")).read_bytes(),
            cdi_directories=settings.cdi_directories,
            lasting=True,
            kmsg=str(settings.kmsg or ""),
        ),
        source=source,
        log=log,
        shutdown_timeout=settings.shutdown_timeout,
        staging_lock_path=lock,
        reports=reports,
        resync_interval=settings.resync_interval,
    )
