"""A file source over real files, and its stream as a test reads it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from simnode.contracts import Update
from simnode.profile import Options
from simnode.sources.file import FileSource, Inputs, Times
from simnode.state import State

QUICK = Times(settle=0.005, poll=30.0, blind_poll=0.02, warm_up=0.01)
LOG = logging.getLogger("tests.sources")

PROFILE = """\
version: "1.0"
system: {{driver_version: {driver}, num_devices: {gpus}}}
device_defaults:
  name: NVIDIA A100-SXM4-40GB
  architecture: ampere
  memory: {{total_bytes: 42949672960}}
  pci: {{device_id: 0x20B010DE}}
  thermal: {{temperature_gpu_c: 30}}
  fabric: {{cluster_uuid: 00000000-0000-0000-0000-0000000000aa, clique_id: 7, state: auto}}
"""


def profile(gpus: int = 2, driver: str = "550.163.01") -> str:
    """A small profile."""
    return PROFILE.format(gpus=gpus, driver=driver)


@dataclass
class Stream:
    """What a source says, one update at a time."""

    source: FileSource
    updates: AsyncIterator[Update]
    errors: list[str] = field(default_factory=list)

    async def next(self, timeout: float = 10) -> Update:
        """The next update."""
        async with asyncio.timeout(timeout):
            return await anext(self.updates)

    async def state(self) -> State:
        """The next update, which must be a State."""
        update = await self.next()
        assert update.state is not None, update.error
        return update.state

    async def error(self) -> str:
        """The next update, which must be an error."""
        update = await self.next()
        assert update.error is not None
        return update.error

    async def silent(self, seconds: float = 0.15) -> None:
        """Nothing more is said for a while. The stream is of no use afterwards."""
        try:
            update = await self.next(seconds)
        except TimeoutError:
            return
        raise AssertionError(f"said {update}")


def source_of(
    root: Path,
    config: Path | bytes,
    *,
    topology: Path | bytes = b"",
    mig_profiles: Path | bytes = b"",
    environ: Mapping[str, str] | None = None,
    initial: State | None = None,
    times: Times = QUICK,
) -> FileSource:
    """A source whose overrides and generation lie below `root`."""
    inputs = Inputs(config, root / "state/overrides.yaml", topology, mig_profiles)
    return FileSource(inputs, Options(), environ or {}, root / "state/generation", LOG, initial=initial, times=times)


@asynccontextmanager
async def streaming(source: FileSource) -> AsyncIterator[Stream]:
    """The stream of a source, ended afterwards."""
    updates = source.watch()
    try:
        yield Stream(source, updates)
    finally:
        await source.close()
        await updates.aclose()  # type: ignore[attr-defined]


def run(test: Callable[[], Coroutine[object, object, None]]) -> None:
    """Run a test's coroutine."""
    asyncio.run(test())
