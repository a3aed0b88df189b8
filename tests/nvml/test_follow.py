"""An image that follows another one: the same values, and the events from then on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simnode.nvml.cells import DEVICE, HEADER, IMAGE, SLOT
from simnode.nvml.encode import encode
from simnode.nvml.image import Publisher
from simnode.nvml.layout import EVENT
from simnode.state import Facts
from tests.simulators.states import state

FACTS = Facts()


class Image:
    """An image and its writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(IMAGE.size))
        self.publisher = Publisher(path)

    def field(self, name: str) -> int:
        return int.from_bytes(self.path.read_bytes()[HEADER.offsets[name] :][:8], "little")

    def slot(self) -> bytes:
        """What readers read."""
        content = self.path.read_bytes()
        return content[IMAGE.offsets["slot"] + (self.field("done") & 1) * SLOT.size :][: SLOT.size]

    def event(self, number: int) -> tuple[int, int]:
        """Number and data of an event, as its entry in the ring has them."""
        content = self.path.read_bytes()[IMAGE.offsets["event"] + number % 1024 * EVENT.size :][: EVENT.size]
        numbers = (content[EVENT.offsets[name] :][:8] for name in ("sequence", "data"))
        sequence, data = (int.from_bytes(number, "little") for number in numbers)
        return sequence, data


@pytest.fixture
def images(tmp_path: Path) -> Iterator[tuple[Image, Image]]:
    """The one that leads and the one that follows."""
    made = Image(tmp_path / "first"), Image(tmp_path / "second")
    yield made
    for image in made:
        image.publisher.close()


def test_after_each_publish_it_says_the_same(images: tuple[Image, Image]) -> None:
    first, second = images
    first.publisher.publish(encode(state(1), FACTS))
    for gpus in (4, 2, 0, 3, 3):
        first.publisher.publish(encode(state(gpus), FACTS))
        second.publisher.follow(first.publisher)
        assert second.slot() == first.slot()
    assert second.field("done") == 5


def test_nothing_new_is_no_publish(images: tuple[Image, Image]) -> None:
    first, second = images
    first.publisher.publish(encode(state(1), FACTS))
    for _ in range(3):
        second.publisher.follow(first.publisher)
    assert second.field("done") == 1


def test_only_events_of_its_own_time_are_passed_on(images: tuple[Image, Image]) -> None:
    first, second = images
    first.publisher.publish(encode(state(2), FACTS))
    first.publisher.event(0, 8, 13)
    second.publisher.follow(first.publisher)
    assert second.field("event_total") == 0
    for xid in (79, 48):
        first.publisher.event(1, 8, xid)
    second.publisher.follow(first.publisher)
    second.publisher.follow(first.publisher)
    assert second.field("event_total") == 2
    entries = {second.event(at) for at in range(4)}
    assert {(1, 79), (2, 48)} <= entries


def test_another_writer_of_the_leading_image_goes_on(images: tuple[Image, Image]) -> None:
    first, second = images
    first.publisher.publish(encode(state(2), FACTS))
    second.publisher.follow(first.publisher)
    first.publisher.close()
    first.publisher = Publisher(first.path)
    first.publisher.publish(encode(state(3), FACTS))
    second.publisher.follow(first.publisher)
    assert second.slot() == first.slot()
    assert second.slot()[SLOT.offsets["device"] :][DEVICE.offsets["present"]] == 1
