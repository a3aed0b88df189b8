"""The words of `simnode agent` and `simnode clean`: what they take, and from where where it is not said.

Every option can be given as SIMNODE_<OPTION> too; the command line beats the environment, which beats the profile.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from simnode.cli.said import Mistake, count

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 86400.0
_OWN = (["var", "lib", "simnode"], ["run", "simnode"], ["run", "nvidia", "driver"])


class Duration(click.ParamType[float]):
    """Seconds from texts like 30, 1.5s, 500ms, 1m30s."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds; a text that is no duration of a day at most is a usage fault."""
        text = str(value).strip()
        if _DURATION.fullmatch(text):
            seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
        else:
            try:
                seconds = float(text)
            except ValueError:
                seconds = math.nan
        if not 0 <= seconds <= _LONGEST:
            self.fail(f"{text!r} is no duration: want seconds, or numbers with ms, s, m or h, like 1m30s", param, ctx)
        return seconds


class Given(click.Path):
    """A path; an empty text is none, and not the working directory."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """The path; an empty text is a usage fault."""
        if not os.fspath(value):
            self.fail("an empty text is no path", param, ctx)
        return super().convert(value, param, ctx)


class HostDirectory(click.ParamType[str]):
    """An absolute directory of the host, or an empty text for none; several are divided by colons in a variable."""

    name = "directory"
    envvar_list_splitter = ":"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path as it was given; a usage fault if it is relative, leads upwards, or is a node's own or no path."""
        text = str(value)
        words = [word for word in text.split("/") if word not in ("", ".")]
        if text and (not text.startswith("/") or ".." in words or not words):
            self.fail(
                f"{text!r} is no directory below the host's root: want an absolute path like /etc/cdi", param, ctx
            )
        if text and any(words[: len(own)] == own for own in _OWN):
            self.fail(f"{text!r} is the node's own: want a directory where runtimes look, like /etc/cdi", param, ctx)
        if text:
            _check(words, lambda reason: self.fail(f"{text!r} {reason}", param, ctx))
        return text


def _check(words: Sequence[str], fail: Callable[[str], NoReturn]) -> None:
    from simnode.host import TreeError
    from simnode.host.paths import check_path

    try:
        check_path("/".join((*words, "nvidia.yaml")))
    except TreeError:
        fail("is no path of a directory: want names of at most 255 bytes, without control characters, in UTF-8")


class Emptiable(click.Option):
    """An option whose empty text means something, from the environment too."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:  # noqa: ARG002
        """The variable's value, "" included; None if it is not set."""
        return os.environ.get(self.envvar) if isinstance(self.envvar, str) else None


_option = partial(click.option, show_envvar=True)
_HOST_ROOT = _option(
    "--host-root",
    metavar="DIR",
    default="/",
    envvar="SIMNODE_HOST_ROOT",
    type=Given(),
    help="Where the host's root is seen from here. Default: /.",
)
_LOG_LEVEL = _option(
    "--log-level",
    default="info",
    envvar="SIMNODE_LOG_LEVEL",
    type=click.Choice(("debug", "info", "warn", "warning", "error")),
    help="The least that is logged. Default: info.",
)
_LOG_FORMAT = _option(
    "--log-format",
    default="json",
    envvar="SIMNODE_LOG_FORMAT",
    type=click.Choice(("json", "plain")),
    help="How a line of the log looks. Default: json.",
)
_SHUTDOWN_TIMEOUT = _option(
    "--shutdown-timeout",
    metavar="TIME",
    default="30s",
    envvar="SIMNODE_SHUTDOWN_TIMEOUT",
    type=Duration(),
    help="How long taking everything away may last. Default: 30s.",
)


@click.command(short_help="Keep this host as a profile says.")
@_option(
    "--config", metavar="FILE", required=True, envvar="SIMNODE_CONFIG", type=Given(),
    help="The profile of this node; followed as it changes.",
)  # fmt: skip
@_option(
    "--topology", metavar="FILE", envvar="SIMNODE_TOPOLOGY", type=Given(),
    help="The topology document of the cluster; may be missing.",
)  # fmt: skip
@_HOST_ROOT
@_option(
    "--health-addr", cls=Emptiable, metavar="ADDR", default=":9090", envvar="SIMNODE_HEALTH_ADDR",
    help='Where probes and metrics are served over HTTP; "" for nowhere. Default: :9090.',
)  # fmt: skip
@_option(
    "--staging-lock-path", cls=Emptiable, metavar="FILE", envvar="SIMNODE_STAGING_LOCK_PATH",
    help='The lock that injectors look at; "" for none. Default: run/simnode/staging.lock below the host\'s root.',
)  # fmt: skip
@_option(
    "--resync-interval", metavar="TIME", default="1m", envvar="SIMNODE_RESYNC_INTERVAL", type=Duration(),
    help="How often to look whether all is as it should be; 0 for never. Default: 1m.",
)  # fmt: skip
@_SHUTDOWN_TIMEOUT
@_LOG_LEVEL
@_LOG_FORMAT
@_option(
    "--gpus", metavar="N", envvar="SIMNODE_GPUS", callback=count,
    help="How many GPUs the node has; beats GPU_COUNT.",
)  # fmt: skip
@_option(
    "--driver-version", metavar="V", envvar="SIMNODE_DRIVER_VERSION",
    help="The driver release that the node reports; beats DRIVER_VERSION.",
)  # fmt: skip
@_option(
    "--node-name", metavar="NAME", envvar="SIMNODE_NODE_NAME",
    help="This node's name in the topology document; beats NODE_NAME.",
)  # fmt: skip
@_option(
    "--fabricmanager-state-dir", metavar="DIR", envvar="SIMNODE_FABRICMANAGER_STATE_DIR",
    help="Where consumers find the fabric manager's marker; switches the fabric manager on.",
)  # fmt: skip
@_option(
    "--fabricmanager-init-delay", metavar="TIME", default="0", envvar="SIMNODE_FABRICMANAGER_INIT_DELAY",
    type=Duration(), help="How long the fabric manager takes until it is ready. Default: 0.",
)  # fmt: skip
@_option("--imex/--no-imex", default=None, envvar="SIMNODE_IMEX", help="Whether the node has IMEX channels.")
@_option(
    "--imex-major", metavar="N", envvar="SIMNODE_IMEX_MAJOR", type=click.IntRange(1, 4095),
    help="Device major of the IMEX channels.",
)  # fmt: skip
@_option(
    "--caps-major", metavar="N", envvar="SIMNODE_CAPS_MAJOR", type=click.IntRange(1, 4095),
    help="Device major of the capability devices.",
)  # fmt: skip
@_option(
    "--nvidia-smi", metavar="FILE", envvar="SIMNODE_NVIDIA_SMI", type=Given(),
    help="A real nvidia-smi to stage instead of ours.",
)  # fmt: skip
@_option(
    "--cdi-dir", "cdi_directories", cls=Emptiable, multiple=True, metavar="DIR", default=("/var/run/cdi",),
    envvar="SIMNODE_CDI_DIR", type=HostDirectory(),
    help='Where the host\'s container runtimes look for CDI specs; repeatable, "" for nowhere. Default: /var/run/cdi.',
)  # fmt: skip
@_option(
    "--kmsg", metavar="FILE", envvar="SIMNODE_KMSG", type=Given(),
    help="The kernel's log, /dev/kmsg, to write XIDs to besides the node's own. Default: none.",
)  # fmt: skip
@_option("--force", is_flag=True, envvar="SIMNODE_FORCE", help="Run even next to a real NVIDIA driver.")
def agent(
    *,
    config: Path,
    topology: Path | None,
    host_root: Path,
    health_addr: str,
    staging_lock_path: str | None,
    resync_interval: float,
    shutdown_timeout: float,
    log_level: str,
    log_format: str,
    gpus: int | None,
    driver_version: str | None,
    node_name: str | None,
    fabricmanager_state_dir: str | None,
    fabricmanager_init_delay: float,
    imex: bool | None,
    imex_major: int | None,
    caps_major: int | None,
    nvidia_smi: Path | None,
    cdi_directories: tuple[str, ...],
    kmsg: Path | None,
    force: bool,
) -> int:
    """Keep this host as a profile says, until told to end; then take everything away again."""
    from simnode.cli.preload import shed

    shed()

    from simnode.cli.agent import keep
    from simnode.cli.settings import Settings

    said = {
        "NODE_NAME": node_name,
        "SIMNODE_FABRICMANAGER_STATE_DIR": fabricmanager_state_dir,
        "SIMNODE_IMEX": None if imex is None else str(imex).lower(),
        "SIMNODE_IMEX_MAJOR": imex_major,
        "SIMNODE_CAPS_MAJOR": caps_major,
    }
    return keep(
        Settings(
            config=config,
            topology=topology,
            host_root=host_root,
            health_addr=health_addr,
            staging_lock_path=staging_lock_path,
            resync_interval=resync_interval,
            shutdown_timeout=shutdown_timeout,
            log_level=log_level,
            log_format=log_format,
            gpus=gpus,
            driver_version=driver_version,
            said={name: str(value) for name, value in said.items() if value is not None},
            fabricmanager_init_delay=fabricmanager_init_delay,
            nvidia_smi=nvidia_smi,
            cdi_directories=tuple(filter(None, cdi_directories)),
            kmsg=kmsg,
            force=force,
        )
    )


@click.command(short_help="Take away what a killed agent left here.")
@_HOST_ROOT
@_SHUTDOWN_TIMEOUT
@_LOG_LEVEL
@_LOG_FORMAT
def clean(*, host_root: Path, shutdown_timeout: float, log_level: str, log_format: str) -> int:
    """Take away everything that an agent has left on this host, its overrides included; none may be running."""
    from simnode.cli.preload import shed

    shed()

    from simnode.cli.clean import clean_host

    return clean_host(host_root, shutdown_timeout, log_level, log_format)


@click.command(short_help="Say what is wrong with a node, and for whom.")
@click.option("--name", metavar="NODE", help="A node that stands. Default: the one that one is in, or `default`.")
@click.option(
    "--host-root", metavar="DIR", envvar="SIMNODE_HOST_ROOT", show_envvar=True, type=Given(),
    help="The host's node instead; where the host's root is seen from here.",
)  # fmt: skip
@_option(
    "--cdi-dir", "cdi_directories", multiple=True, metavar="DIR", default=("/etc/cdi", "/var/run/cdi"),
    envvar="SIMNODE_CDI_DIR", type=HostDirectory(),
    help="Where the host's container runtimes look for CDI specs; repeatable. Default: /etc/cdi and /var/run/cdi.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON on one line.")
@click.argument("consumers", metavar="[CONSUMER]...", nargs=-1)
def doctor(
    *,
    name: str | None,
    host_root: Path | None,
    cdi_directories: tuple[str, ...],
    as_json: bool,
    consumers: tuple[str, ...],
) -> int:
    """Look at a node from outside, as each CONSUMER would meet it (all, if none is named), and say what is wrong.

    One line for each cause. Exits 0 if nothing is wrong, 1 if something is, 2 if it cannot be told.
    """
    from simnode.cli.doctor import check_consumers
    from simnode.cli.doctor import doctor as examine

    check_consumers(consumers)
    if name is not None and host_root is not None:
        raise Mistake("--name and --host-root exclude each other: give one of them")
    return examine(name, host_root, tuple(filter(None, cdi_directories)), consumers, as_json=as_json)
