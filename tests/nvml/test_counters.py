"""Invariant 8: counters grow by their rules and never fall: over changes, restarts, kills and boots."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path

import pytest

from simnode.nvml.cells import BY_KEY, DEVICE, IMAGE, NODE, SLOT
from simnode.nvml.image import Publisher, encode
from simnode.nvml.layout import COUNTER
from simnode.state import Counter, LinkSpec, LoadSpec, Refusal, State
from tests.nvml.chaos import disturb, seen, start_watching
from tests.nvml.conftest import NATIVE, PUBLISH, Compile, Reader
from tests.nvml.nodes import ENERGY, THROTTLE, busy, device, node, pairs, runtime

LONGEST_TICK = 10**7  # ns: CONFIG_HZ=100
BOOTS = ("11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555")


def energy(start: int = 0, idle: float = 0.0, span: float = 0.0) -> State:
    return busy(Counter(start, idle, span), LoadSpec("steady", 50, 50, 10.0))


def settle(rules: ctypes.CDLL, anchor: int) -> None:
    """Wait until the clock has passed that tick."""
    while rules.test_clock() < anchor:
        time.sleep(0.001)


def test_a_counter_starts_where_the_state_says(publisher: Publisher, reader: Reader) -> None:
    publisher.publish(encode(energy(start=600_000)))

    assert reader.counter(0, ENERGY) == 600_000


def test_a_counter_grows_by_its_rates_and_the_load(publisher: Publisher, reader: Reader, rules: ctypes.CDLL) -> None:
    """Within 5 us at full load: a curve's phase is known to 2^-21 of its period."""
    publisher.publish(encode(energy(start=5, idle=1e6, span=8e6)))
    anchor = reader.anchor(0, ENERGY)
    time.sleep(0.05)

    earliest = rules.test_clock()
    value = reader.counter(0, ENERGY)
    latest = rules.test_clock()

    low, high = (5 + 5e6 * (t - anchor) / 1e9 for t in (earliest, latest))
    assert low - 45 <= value <= high + 45


def test_a_new_rate_begins_at_a_tick_ahead_where_the_old_one_ends(
    publisher: Publisher, reader: Reader, rules: ctypes.CDLL
) -> None:
    publisher.publish(encode(energy(idle=1e6)))
    first = reader.anchor(0, ENERGY)
    time.sleep(0.03)
    before = rules.test_clock()

    publisher.publish(encode(energy(idle=5e6)))

    anchor = reader.anchor(0, ENERGY)
    at_anchor, _ = reader.cell(0, ENERGY)
    assert anchor > before
    assert isinstance(at_anchor, int)
    assert at_anchor == pytest.approx((anchor - first) * 1e-3, abs=1)
    settle(rules, anchor)
    assert at_anchor <= reader.counter(0, ENERGY) <= at_anchor + 5e6 * (rules.test_clock() - anchor) / 1e9 + 1


@pytest.mark.parametrize(
    "state",
    [energy(idle=1e6), busy(Counter(0, 1e6, 0.0), LoadSpec("wave", 0, 100, 3.0))],
    ids=["nothing changed", "a curve it does not follow"],
)
def test_an_unchanged_counter_keeps_its_anchor(publisher: Publisher, reader: Reader, state: State) -> None:
    publisher.publish(encode(energy(idle=1e6)))
    anchor = reader.anchor(0, ENERGY)
    time.sleep(0.02)

    publisher.publish(encode(state))

    assert reader.anchor(0, ENERGY) == anchor


def test_another_curve_anchors_the_counters_that_follow_it(publisher: Publisher, reader: Reader) -> None:
    def state(period: float) -> State:
        values = {ENERGY: Counter(0, 0.0, 1e6), THROTTLE: Counter(0, 1e6, 0.0)}
        return node(runtime(values, load=LoadSpec("wave", 0, 100, period)))

    publisher.publish(encode(state(1.0)))
    before = [reader.anchor(0, key) for key in (ENERGY, THROTTLE)]
    time.sleep(0.02)

    publisher.publish(encode(state(2.0)))

    after = [reader.anchor(0, key) for key in (ENERGY, THROTTLE)]
    assert after[0] > before[0]
    assert after[1] == before[1]


def test_a_change_right_after_a_change_waits_until_the_first_has_begun(publisher: Publisher, reader: Reader) -> None:
    publisher.publish(encode(energy(idle=1e6)))
    anchors, values = [], []
    for idle in (5e6, 1e3, 9e6, 0.0):
        publisher.publish(encode(energy(idle=idle)))
        anchors.append(reader.anchor(0, ENERGY))
        values.append(reader.counter(0, ENERGY))

    assert anchors == sorted(set(anchors))
    assert values == sorted(values)


@pytest.mark.parametrize(
    ("start", "expected"), [(1000, 1000), (50, 100), (100, 100)], ids=["higher", "lower", "the same"]
)
def test_another_start_lifts_a_counter_but_never_lowers_it(
    publisher: Publisher, reader: Reader, rules: ctypes.CDLL, start: int, expected: int
) -> None:
    publisher.publish(encode(energy(start=100)))

    publisher.publish(encode(energy(start=start)))

    settle(rules, reader.anchor(0, ENERGY))
    assert reader.counter(0, ENERGY) == expected


def test_the_next_publisher_carries_a_counter_on(image: Path, publisher: Publisher, reader: Reader) -> None:
    publisher.publish(encode(energy(start=100, idle=1e6)))
    anchor = reader.anchor(0, ENERGY)
    time.sleep(0.02)
    before = reader.counter(0, ENERGY)
    publisher.close()

    with Publisher(image) as successor:
        successor.publish(encode(energy(start=100, idle=1e6)))

    assert reader.counter(0, ENERGY) >= before > 100
    assert reader.anchor(0, ENERGY) == anchor


def test_a_counter_that_is_refused_for_a_while_does_not_fall(
    publisher: Publisher, reader: Reader, rules: ctypes.CDLL
) -> None:
    publisher.publish(encode(energy(idle=1e6)))
    time.sleep(0.02)
    before = reader.counter(0, ENERGY)
    publisher.publish(encode(node(runtime({ENERGY: Refusal(3)}, load=LoadSpec("steady", 50, 50, 10.0)))))
    assert reader.cell(0, ENERGY)[1] == 3

    publisher.publish(encode(energy(idle=1e6)))

    assert reader.cell(0, ENERGY)[1] == 0
    settle(rules, reader.anchor(0, ENERGY))
    assert reader.counter(0, ENERGY) >= before


def test_another_gpu_at_the_same_index_starts_anew(publisher: Publisher, reader: Reader) -> None:
    publisher.publish(encode(energy(start=1_000_000)))
    other = node(runtime({ENERGY: 7}), devices=(device(0, "GPU-99999999-1111-2222-3333-444444444444"),))

    publisher.publish(encode(other))

    assert reader.counter(0, ENERGY) == 7


def test_the_traffic_of_a_link_grows_under_load(publisher: Publisher, reader: Reader) -> None:
    link = LinkSpec(True, "switch", "", 0)
    publisher.publish(encode(node(runtime(load=LoadSpec("steady", 100, 100, 1.0), links=(link,)))))
    time.sleep(0.03)

    assert reader.link_counter(0, 0, "tx_kib") > 0
    assert reader.link_counter(0, 1, "tx_kib") == 0


def patch(image: Path, number: int, offset: int, value: int) -> None:
    """Overwrite 8 bytes in the slot of a publish."""
    with image.open("r+b") as file:
        file.seek(IMAGE.offsets["slot"] + (number & 1) * SLOT.size + offset)
        file.write(value.to_bytes(8, "little"))


ENERGY_AT = SLOT.offsets["device"] + DEVICE.offsets[BY_KEY[ENERGY].member]


def test_counters_stop_where_a_publisher_that_died_had_announced_their_successor(
    image: Path, publisher: Publisher, reader: Reader, rules: ctypes.CDLL
) -> None:
    number = publisher.publish(encode(energy(idle=1e9)))
    time.sleep(0.02)
    until = rules.test_clock()
    patch(image, number, NODE.offsets["counters_until"], until)
    time.sleep(0.02)

    stopped = [reader.counter(0, ENERGY), reader.counter(0, ENERGY)]
    assert stopped == [until - reader.anchor(0, ENERGY)] * 2

    publisher.publish(encode(energy(idle=1e9)))
    assert reader.counter(0, ENERGY) > stopped[0]


def test_after_a_boot_whose_clock_was_ahead_a_counter_goes_on_from_its_stored_value(
    image: Path, publisher: Publisher, reader: Reader, rules: ctypes.CDLL
) -> None:
    number = publisher.publish(encode(energy(start=500, idle=1e6)))
    patch(image, number, ENERGY_AT + COUNTER.offsets["anchor"], 1 << 60)
    publisher.close()

    with Publisher(image, boot_id=BOOTS[1]) as successor:
        successor.publish(encode(energy(start=500, idle=1e6)))
        anchor = reader.anchor(0, ENERGY)

        assert anchor <= rules.test_clock() + 3 * LONGEST_TICK
        assert reader.cell(0, ENERGY) == (500, 0)
        settle(rules, anchor + LONGEST_TICK)
        assert reader.counter(0, ENERGY) > 500


def test_after_a_boot_whose_clock_was_behind_no_reader_of_this_boot_sees_a_counter_fall(
    image: Path, publisher: Publisher, reader: Reader
) -> None:
    publisher.publish(encode(energy(start=500, idle=1e6)))
    time.sleep(0.02)
    before = reader.counter(0, ENERGY)
    publisher.close()

    with Publisher(image, boot_id=BOOTS[1]) as successor:
        successor.publish(encode(energy(start=500, idle=1e6)))

        assert reader.counter(0, ENERGY) >= before


@pytest.mark.parametrize("seed", [1, 2])
def test_no_counter_falls_in_any_thread_or_process_whatever_happens_to_the_publishers(
    compile_c: Compile, image: Path, tmp_path: Path, seed: int
) -> None:
    """Every publish has other rates, curve and start; publishers are stopped and killed; half of them have rebooted."""
    writer = compile_c(NATIVE / "writer.c", *PUBLISH)
    watch = compile_c(NATIVE / "watch.c")
    rules = [
        (Counter(1_000, 68_000.0, 600_000.0), LoadSpec("training", 10, 95, 0.05, 1)),
        (Counter(1_000, 0.0, 0.0), LoadSpec()),
        (Counter(9_000, 1e9, 1e9), LoadSpec("wave", 0, 100, 0.03)),
        (Counter(0, 1.0, 9e9), LoadSpec("bursty", 0, 100, 0.5, 3)),
        (Counter(0, 1e8, 0.0), LoadSpec("bursty", 0, 100, 0.5, 3)),
    ]
    blobs = tmp_path / "blobs"
    blobs.write_bytes(b"".join(pairs(1 + i, 1, *rule) for i, rule in enumerate(rules)))

    watchers = start_watching(watch, "counters", image, tmp_path / "floors", 1.5, processes=2, threads=2)
    killed = disturb([[writer, image, blobs, str(len(rules)), boot] for boot in BOOTS], 1.2, seed)
    reads, tries = seen(watchers)

    assert killed > 3
    assert reads > 10_000
    assert tries <= 50


def test_a_watcher_notices_a_counter_that_falls(
    compile_c: Compile, image: Path, publisher: Publisher, tmp_path: Path
) -> None:
    """The instrument itself: it must be able to fail."""
    publisher.publish(encode(energy(start=5)))
    floors = tmp_path / "floors"
    floors.write_bytes((6).to_bytes(8, "little") + bytes(56))

    (watcher,) = start_watching(compile_c(NATIVE / "watch.c"), "counters", image, floors, 1, processes=1, threads=1)
    told, _ = watcher.communicate(timeout=30)

    assert told == "counter 0 fell from 6 to 5\n"
    assert watcher.returncode == 1
