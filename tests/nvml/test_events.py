"""The event ring as the publisher fills it."""

from __future__ import annotations

import ctypes
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simnode.nvml.cells import HEADER, IMAGE
from simnode.nvml.image import ImageError, Publisher, encode
from simnode.nvml.layout import EVENT, MAX_EVENTS
from tests.nvml.nodes import device, node, runtime

NONE = 0xFFFFFFFF
XID = 8


def ring(image: Path) -> list[tuple[int, ...]]:
    """sequence, type, data, device, epoch, gpu instance, compute instance of every entry."""
    raw = image.read_bytes()[IMAGE.offsets["event"] :]
    return [struct.unpack_from("<QQQIIII", raw, i * EVENT.size) for i in range(MAX_EVENTS)]


def totals(image: Path) -> tuple[int, int]:
    raw = image.read_bytes()[: HEADER.size]
    (total,) = struct.unpack_from("<Q", raw, HEADER.offsets["event_total"])
    (futex,) = struct.unpack_from("<I", raw, HEADER.offsets["event_sequence"])
    return total, futex


def test_an_event_names_its_device_and_the_identity_that_it_happened_to(image: Path, publisher: Publisher) -> None:
    publisher.publish(encode(node(runtime())))
    publisher.publish(encode(node(runtime(), devices=(device(0, "GPU-99999999-1111-2222-3333-444444444444"),))))

    assert publisher.event(0, XID, 79) == 1
    assert publisher.event(0, XID, 13, gpu_instance=2, compute_instance=0) == 2

    assert ring(image)[1] == (1, XID, 79, 0, 2, NONE, NONE)
    assert ring(image)[2] == (2, XID, 13, 0, 2, 2, 0)
    assert totals(image) == (2, 2)


def test_the_ring_keeps_the_newest(image: Path, publisher: Publisher) -> None:
    for number in range(1, MAX_EVENTS + 11):
        assert publisher.event(0, XID, number * 3) == number

    entries = sorted(ring(image))
    assert [entry[0] for entry in entries] == list(range(11, MAX_EVENTS + 11))
    assert all(entry[2] == entry[0] * 3 for entry in entries)
    assert totals(image) == (MAX_EVENTS + 10, MAX_EVENTS + 10)


def test_numbers_go_on_with_the_next_publisher(image: Path, publisher: Publisher) -> None:
    publisher.event(0, XID, 1)
    publisher.close()

    with Publisher(image) as successor:
        assert successor.event(0, XID, 2) == 2


def test_the_next_publisher_announces_what_a_dead_one_had_counted(image: Path, publisher: Publisher) -> None:
    publisher.event(0, XID, 1)
    publisher.close()
    with image.open("r+b") as file:
        file.seek(HEADER.offsets["event_sequence"])
        file.write(bytes(4))

    Publisher(image).close()

    assert totals(image) == (1, 1)


def test_an_event_wakes_who_sleeps_on_the_read_only_mapping(
    image: Path, publisher: Publisher, rules: ctypes.CDLL
) -> None:
    with ThreadPoolExecutor(1) as pool:
        sleeper = pool.submit(rules.test_wait, str(image).encode(), 0)
        time.sleep(0.1)
        start = time.monotonic()
        publisher.event(0, XID, 79)

        assert sleeper.result() == 1
        assert time.monotonic() - start < 5


@pytest.mark.parametrize("index", [-1, 64])
def test_an_event_of_no_device_is_refused(publisher: Publisher, index: int) -> None:
    with pytest.raises(ImageError, match=rf"^event: device {index} is not between 0 and 63$"):
        publisher.event(index, XID)
