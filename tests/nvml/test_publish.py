"""Publishing: numbers, flips, what is left alone, epochs, files that are refused, and how long it takes."""

from __future__ import annotations

import itertools
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest

from simnode.nvml.cells import BY_KEY, CELLS, DEVICE, HEADER, IMAGE, NODE, SLOT
from simnode.nvml.encode import Memory, Records, encode
from simnode.nvml.image import ImageError, Publisher
from simnode.nvml.layout import COUNTER, LINK, MAGIC, MAX_DEVICES, MAX_LINKS
from simnode.partitions import MIGGPU, MIGComputeInstance, MIGGPUInstance
from simnode.state import ClockTable, Counter, Gauge, LinkSpec, LoadSpec, State, Value
from tests.nvml.conftest import Reader
from tests.nvml.nodes import ENERGY, THROTTLE, WORD, device, node, partitions, runtime


def header(image: Path, name: str) -> int:
    with image.open("rb") as file:
        file.seek(HEADER.offsets[name])
        return int.from_bytes(file.read(8), "little")


def overwrite(image: Path, offset: int, raw: bytes) -> None:
    with image.open("r+b") as file:
        file.seek(offset)
        file.write(raw)


def partitioned(*uuids: str) -> State:
    instances = tuple(MIGGPUInstance(i, (MIGComputeInstance(0, uuid),)) for i, uuid in enumerate(uuids))
    return node(runtime(), mig=partitions(MIGGPU(0, instances)))


def test_a_new_file_becomes_an_image_without_devices(image: Path, publisher: Publisher, reader: Reader) -> None:
    del publisher

    assert header(image, "magic") == MAGIC
    assert header(image, "image_bytes") == IMAGE.size
    assert header(image, "slot_bytes") == SLOT.size
    assert header(image, "done") == 0
    assert reader.node("device_count") == 0


def test_publishes_are_numbered_from_one_and_go_on_with_the_next_publisher(image: Path, publisher: Publisher) -> None:
    encoded = encode(node(runtime()))

    assert [publisher.publish(encoded) for _ in range(3)] == [1, 2, 3]
    with Publisher(image) as successor:
        assert successor.publish(encoded) == 4


def test_every_publish_shows_what_was_wanted(publisher: Publisher, reader: Reader) -> None:
    for value in (1, 2, 3, 2):
        publisher.publish(encode(node(runtime({WORD: value}), generation=value)))

        assert reader.cell(0, WORD) == (value, 0)
        assert reader.node("generation") == value


def test_a_publish_leaves_the_active_slot_alone(image: Path, publisher: Publisher) -> None:
    publisher.publish(encode(node(runtime({WORD: 1}))))
    at = IMAGE.offsets["slot"] + SLOT.size
    before = image.read_bytes()[at : at + NODE.size + DEVICE.size]

    publisher.publish(encode(node(runtime({WORD: 2}))))

    assert image.read_bytes()[at : at + NODE.size + DEVICE.size] == before


def test_devices_that_were_never_there_are_never_written(image: Path, publisher: Publisher) -> None:
    for count in (1, 2, 1):
        publisher.publish(encode(node(*[runtime()] * count)))

    raw = image.read_bytes()
    for slot in range(2):
        beyond = IMAGE.offsets["slot"] + slot * SLOT.size + SLOT.offsets["device"] + 2 * DEVICE.size
        assert not any(raw[beyond : IMAGE.offsets["slot"] + (slot + 1) * SLOT.size])


def test_both_slots_equal_a_fresh_image_of_the_last_state_but_for_anchors(
    image: Path, publisher: Publisher, tmp_path: Path
) -> None:
    """Whatever was published before; of the devices that are there, all but counters and epochs."""
    clocks = (ClockTable(2619, tuple(range(1980, 330, -15))),)
    busy = runtime({WORD: 7, "serial": "1"}, load=LoadSpec("wave", 0, 100), clocks=clocks)
    last = encode(node(runtime({WORD: 1}), runtime({WORD: 2})))
    for state in (node(busy, busy, busy), node(), node(busy), node(busy, busy, busy, generation=9)):
        publisher.publish(encode(state))
    publisher.publish(last)
    publisher.publish(last)

    fresh = tmp_path / "fresh"
    fresh.write_bytes(bytes(IMAGE.size))
    with Publisher(fresh) as other:
        other.publish(last)
        other.publish(last)

    assert comparable(image) == comparable(fresh)


def test_a_record_that_stays_is_in_both_slots_however_often_others_change(
    image: Path, publisher: Publisher, tmp_path: Path
) -> None:
    """Also if it was another one before, has gone and come back, or another publisher's was followed meanwhile."""
    random = Random(5)
    load = LoadSpec("wave", 0, 100)
    made = [encode(node(runtime({WORD: word, "serial": str(word)}, load=load)))[1] for word in range(3)]
    heads = [encode(node(*[runtime()] * count))[0] for count in range(4)]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(bytes(IMAGE.size))
    devices: list[bytes] = []
    with Publisher(elsewhere) as other:
        other.publish(encode(node(runtime({WORD: 77}), runtime({WORD: 78}))))
        for turn in range(300):
            if random.random() < 0.4:
                devices = [random.choice(made) for _ in range(random.randrange(4))]
            if random.random() < 0.05:
                other.publish((heads[1], random.choice(made)))
                publisher.follow(other)
            publisher.publish((heads[len(devices)], *devices))
            assert shown(image) == [struct.unpack_from("<I", each, AT)[0] for each in devices], turn


def test_after_a_publish_that_was_broken_off_nothing_is_taken_for_granted(
    image: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an exception from outside, once the image holds it."""
    one, two = encode(node(runtime({WORD: 1}))), encode(node(runtime({WORD: 2})))
    publisher.publish(one)
    publisher.publish(one)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(publisher, "_native", Interrupted(publisher))
        publisher.publish(two)

    for _ in range(3):
        publisher.publish(one)
        assert shown(image) == [1]


class Interrupted:
    """Publishes, and never returns."""

    def __init__(self, publisher: Publisher) -> None:
        self._native = publisher._native

    def sn_publish(self, *arguments: object) -> None:
        self._native.sn_publish(*arguments)
        raise KeyboardInterrupt


AT = DEVICE.offsets[BY_KEY[WORD].member]


def shown(image: Path) -> list[int]:
    """What a reader reads in the active slot: WORD of each device."""
    raw = image.read_bytes()
    (done,) = struct.unpack_from("<Q", raw, HEADER.offsets["done"])
    slot = IMAGE.offsets["slot"] + done % 2 * SLOT.size
    (count,) = struct.unpack_from("<I", raw, slot + NODE.offsets["device_count"])
    first = slot + SLOT.offsets["device"] + AT
    return [struct.unpack_from("<I", raw, first + index * DEVICE.size)[0] for index in range(count)]


def comparable(image: Path) -> list[bytes]:
    """Both slots, less the anchors and old rules of counters and the epochs."""
    counters = [DEVICE.offsets[cell.member] for cell in CELLS if cell.kind == "counter"]
    counters += [
        DEVICE.offsets["link"] + link * LINK.size + LINK.offsets[name]
        for link in range(MAX_LINKS)
        for name in ("tx_kib", "rx_kib")
    ]
    free = [(DEVICE.offsets["epoch"], 4)]
    free += [(at + COUNTER.offsets["anchor"], COUNTER.offsets["status"] - COUNTER.offsets["anchor"]) for at in counters]
    slots = []
    for slot in range(2):
        raw = bytearray(image.read_bytes()[IMAGE.offsets["slot"] + slot * SLOT.size :][: SLOT.size])
        for index in range(MAX_DEVICES):
            for at, size in free:
                start = SLOT.offsets["device"] + index * DEVICE.size + at
                raw[start : start + size] = bytes(size)
        slots.append(bytes(raw))
    return slots


OTHER = "GPU-99999999-1111-2222-3333-444444444444"


@pytest.mark.parametrize(
    ("states", "epochs"),
    [
        ([node(runtime()), node(runtime())], [1, 1]),
        ([node(runtime()), node(runtime({WORD: 5}))], [1, 1]),
        ([node(runtime()), node(runtime(), devices=(device(0, OTHER),))], [1, 2]),
        ([node(runtime()), node(), node(runtime())], [1, 1, 2]),
        ([node(runtime()), node(), node(), node(), node(runtime())], [1, 1, 1, 1, 2]),
        ([node(runtime()), node(runtime(), devices=(device(0, OTHER),)), node(runtime())], [1, 2, 3]),
    ],
    ids=["same", "other value", "other GPU", "gone and back", "long gone and back", "there and back"],
)
def test_an_epoch_counts_the_identities_of_an_index(
    publisher: Publisher, reader: Reader, states: list[State], epochs: list[int]
) -> None:
    seen = []
    for state in states:
        publisher.publish(encode(state))
        seen.append(reader.device(0, "epoch"))

    assert seen == epochs


@pytest.mark.parametrize(
    ("states", "epochs"),
    [
        ([partitioned("MIG-a", "MIG-b"), partitioned("MIG-a", "MIG-b")], [[1, 1], [1, 1]]),
        ([partitioned("MIG-a", "MIG-b"), partitioned("MIG-a", "MIG-c")], [[1, 1], [1, 2]]),
        ([partitioned("MIG-a"), partitioned(), partitioned("MIG-a")], [[1, 0], [1, 0], [2, 0]]),
        ([partitioned("MIG-a"), node(), partitioned("MIG-a")], [[1, 0], [1, 0], [2, 0]]),
    ],
    ids=["same", "other instance", "gone and back", "GPU gone and back"],
)
def test_an_epoch_counts_the_identities_of_a_mig_index(
    publisher: Publisher, reader: Reader, states: list[State], epochs: list[list[int]]
) -> None:
    seen = []
    for state in states:
        publisher.publish(encode(state))
        seen.append([reader.mig_epoch(0, 0), reader.mig_epoch(0, 1)])

    assert seen == epochs


def test_a_device_that_went_is_not_present(publisher: Publisher, reader: Reader) -> None:
    publisher.publish(encode(node(runtime(), runtime())))

    publisher.publish(encode(node(runtime())))

    assert [reader.device(index, "present") for index in range(3)] == [1, 0, 0]
    assert reader.cell(1, "uuid") == ("", 0)


def truncated(image: Path) -> None:
    os.truncate(image, IMAGE.size - 1)


def foreign(image: Path) -> None:
    overwrite(image, 0, b"#!/bin/sh")


def other_format(image: Path) -> None:
    Publisher(image).close()
    overwrite(image, HEADER.offsets["format"], b"\7")


def other_layout(image: Path) -> None:
    Publisher(image).close()
    overwrite(image, HEADER.offsets["slot_bytes"], b"\7")


def fifo(image: Path) -> None:
    image.unlink()
    os.mkfifo(image)


@pytest.mark.parametrize("spoil", [truncated, foreign, other_format, other_layout, fifo], ids=lambda f: f.__name__)
def test_a_file_that_is_no_image_is_refused_by_name(image: Path, spoil: Callable[[Path], None]) -> None:
    spoil(image)

    with pytest.raises(ImageError) as caught:
        Publisher(image)

    assert str(caught.value).startswith(f"{image}: ")
    assert "\n" not in str(caught.value)


def test_a_link_is_not_followed(image: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(image)

    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        Publisher(link)


ONE = encode(node(runtime()))
WRONG = ((), (bytes(NODE.size - 1),), ONE[:1], (*ONE, ONE[1]), (ONE[0], ONE[1][:-1]))


@pytest.mark.parametrize("records", WRONG, ids=["nothing", "short node", "none", "too many", "short device"])
def test_records_that_no_encode_made_are_refused(publisher: Publisher, records: Records) -> None:
    with pytest.raises(ImageError, match=r"^records of \[.*\] bytes are not a node and its \d+ devices$"):
        publisher.publish(records)


def test_a_closed_publisher_says_so(publisher: Publisher) -> None:
    publisher.close()

    with pytest.raises(ValueError, match=r"^the publisher is closed$"):
        publisher.publish(encode(node()))


def full_node(temperature: int) -> State:
    """Eight GPUs, about as full as the largest board."""
    values: dict[str, Value] = {
        "thermal.temperature_gpu_c": temperature,
        "utilization.gpu": Gauge(0, 100),
        ENERGY: Counter(1, 68_000.0, 600_000.0),
        THROTTLE: Counter(0, 0.0, 10_000.0),
    }
    clocks = tuple(ClockTable(mhz, tuple(range(1980, 330, -15))) for mhz in (2619, 1593))
    links = tuple(LinkSpec(True, "switch", "0000:05:00.0", 0) for _ in range(18))
    each = runtime(values, load=LoadSpec("training", 10, 95, 60.0, 5), clocks=clocks, links=links)
    return node(*[each] * 8)


def best(action: Callable[[], object]) -> float:
    """Seconds of processor time, the best of twenty, so that a busy machine does not matter."""
    times = []
    for _ in range(20):
        start = time.thread_time()
        action()
        times.append(time.thread_time() - start)
    return min(times)


def test_encoding_eight_gpus_takes_less_than_5_ms() -> None:
    state = full_node(29)

    assert best(lambda: encode(state)) < 5e-3


def test_publishing_a_small_change_of_eight_gpus_takes_less_than_1_ms(publisher: Publisher) -> None:
    encoded = [encode(full_node(temperature)) for temperature in (29, 30)]
    turns = iter(range(100))

    assert best(lambda: publisher.publish(encoded[next(turns) % 2])) < 1e-3


def test_devices_that_stay_take_no_time(publisher: Publisher) -> None:
    memory = Memory()
    first, *others = full_node(29).runtime.devices
    states = [
        msgspec.structs.replace(state, runtime=msgspec.structs.replace(state.runtime, devices=(change, *others)))
        for state in [full_node(29)]
        for change in (first, full_node(30).runtime.devices[0])
    ]
    everything = itertools.cycle([encode(state) for state in states])
    changed = itertools.cycle([encode(state, memory=memory) for state in states])

    assert best(lambda: publisher.publish(next(changed))) < best(lambda: publisher.publish(next(everything))) / 2
