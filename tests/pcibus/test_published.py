"""What a host node publishes of its bus: the feature file, exactly as long as there is a device of NVIDIA's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from simnode.host import ConvergeError, Host
from simnode.simulators.pcibus import PublishedPCIBus
from simnode.simulators.pcibus.published import FEATURES
from simnode.state import Facts, State
from tests.pcibus.trees import board

FULL, EMPTY = board("t4"), board("t4", 0)


@pytest.fixture
def bus(tmp_path: Path) -> PublishedPCIBus:
    """A bus in a node root below a host's root."""
    (tmp_path / "node").mkdir()
    (tmp_path / "host/etc").mkdir(parents=True)
    host = Host(tmp_path / "node", boot_id="boot")
    return PublishedPCIBus(host, host.elsewhere(tmp_path / "host", "outside"))


def features(root: Path) -> str | None:
    """What Node Feature Discovery would read, None if there is no file."""
    path = root / "host" / FEATURES
    return path.read_text() if path.exists() else None


async def _up(bus: PublishedPCIBus, state: State) -> None:
    await bus.stage(state, Facts())
    await bus.apply(state, Facts())


def test_the_feature_file_tells_of_nvidias_devices(bus: PublishedPCIBus, tmp_path: Path) -> None:
    asyncio.run(_up(bus, FULL))
    assert features(tmp_path) == "pci-10de.present=true\n"
    assert (tmp_path / "host" / FEATURES).stat().st_mode & 0o7777 == 0o644


def test_it_is_ready_once_it_is_published(bus: PublishedPCIBus) -> None:
    asyncio.run(bus.stage(FULL, Facts()))
    assert not bus.ready()
    asyncio.run(bus.apply(FULL, Facts()))
    assert bus.ready()
    asyncio.run(bus.stage(FULL, Facts()))
    assert not bus.ready()


def test_it_is_withdrawn_before_the_last_device_goes(bus: PublishedPCIBus, tmp_path: Path) -> None:
    asyncio.run(_up(bus, FULL))
    asyncio.run(bus.narrow((FULL, Facts()), (EMPTY, Facts())))
    assert features(tmp_path) is None
    assert any((tmp_path / "node/sys/bus/pci/devices").iterdir())


def test_narrowing_publishes_nothing(bus: PublishedPCIBus, tmp_path: Path) -> None:
    asyncio.run(bus.narrow((EMPTY, Facts()), (FULL, Facts())))
    assert features(tmp_path) is None


def test_revoking_and_discarding_leave_what_was_there_before(bus: PublishedPCIBus, tmp_path: Path) -> None:
    asyncio.run(_up(bus, FULL))
    asyncio.run(bus.revoke())
    asyncio.run(bus.discard())
    assert not bus.ready()
    assert sorted(path.name for path in (tmp_path / "host").rglob("*")) == ["etc"]
    assert list((tmp_path / "node").iterdir()) == []


def test_somebody_elses_file_is_left_alone_and_named(bus: PublishedPCIBus, tmp_path: Path) -> None:
    path = tmp_path / "host" / FEATURES
    path.parent.mkdir(parents=True)
    path.write_text("other=1\n")
    with pytest.raises(ConvergeError, match="occupied by a regular file"):
        asyncio.run(_up(bus, FULL))
    assert path.read_text() == "other=1\n"
    assert not bus.ready()


def test_the_directories_that_are_mounted_keep_their_inodes(bus: PublishedPCIBus, tmp_path: Path) -> None:
    places = [tmp_path / "node" / place for place in ("sys/devices", "sys/bus/pci/devices", "proc/bus/pci")]
    asyncio.run(_up(bus, FULL))
    before = [place.stat().st_ino for place in places]
    for state in (EMPTY, FULL):
        asyncio.run(bus.stage(state, Facts()))
    assert [place.stat().st_ino for place in places] == before
