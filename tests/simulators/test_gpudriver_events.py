"""What was raised is kept on the disk; whatever else stands in its place is neither waited for nor written through."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from simnode.nvml.cells import IMAGE
from simnode.nvml.image import Publisher
from simnode.simulators.gpudriver.events import RAISED, Events
from simnode.simulators.gpudriver.kernellog import LOG, NO_KERNEL, KernelLog
from simnode.state import DeviceRuntime, EventSpec, Runtime, State
from tests.simulators.states import state

FAILING = msgspec.structs.replace(
    state(1), runtime=Runtime((DeviceRuntime(events=(EventSpec(kind=8, data=79, number=1),)),))
)


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[Publisher]:
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(IMAGE.size)
    made = Publisher(path)
    yield made
    made.close()


def raised(root: Path, publisher: Publisher, wanted: State = FAILING) -> None:
    Events(root, KernelLog(root, NO_KERNEL)).raise_new(wanted, publisher)


def test_a_fifo_in_its_place_is_not_waited_for(tmp_path: Path, publisher: Publisher) -> None:
    (tmp_path / RAISED).parent.mkdir()
    os.mkfifo(tmp_path / RAISED)
    raised(tmp_path, publisher)
    assert b"79" in (tmp_path / RAISED).read_bytes()


def test_a_link_is_not_written_through(tmp_path: Path, publisher: Publisher) -> None:
    temporary = tmp_path / f"{RAISED}.tmp"
    temporary.parent.mkdir()
    (tmp_path / "foreign").write_text("theirs\n")
    temporary.symlink_to("../foreign")
    with pytest.raises(OSError, match="Too many levels"):
        raised(tmp_path, publisher)
    assert (tmp_path / "foreign").read_text() == "theirs\n"


def test_what_cannot_be_kept_is_raised_once_all_the_same(tmp_path: Path, publisher: Publisher) -> None:
    """A full disk fails every attempt to publish, and the attempts go on."""
    for path in (tmp_path / RAISED, tmp_path / LOG):
        path.parent.mkdir()
    (tmp_path / LOG).touch()
    blocking = tmp_path / f"{RAISED}.tmp"
    blocking.mkdir()
    events = Events(tmp_path, KernelLog(tmp_path, NO_KERNEL))
    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            events.raise_new(FAILING, publisher)
    blocking.rmdir()
    events.raise_new(FAILING, publisher)
    assert (tmp_path / LOG).read_text().count("): 79, ") == 1
    assert b"79" in (tmp_path / RAISED).read_bytes()


def test_what_a_killed_agent_was_writing_goes_with_the_rest(tmp_path: Path) -> None:
    events = Events(tmp_path, KernelLog(tmp_path, NO_KERNEL))
    (tmp_path / RAISED).parent.mkdir()
    (tmp_path / f"{RAISED}.tmp").write_bytes(b"half")
    events.forget()
    assert list((tmp_path / RAISED).parent.iterdir()) == []
