"""Field values: numbered as the simulated driver numbers them, of one link or of all, and by rules where no cell is."""

from __future__ import annotations

import ctypes
import time

import pytest

from simnode.nvml.field_ids import canonical, driver_number
from simnode.state import Counter, LinkSpec, LoadSpec, Refusal, Value
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_SUPPORTED,
    SUCCESS,
    Library,
    Scene,
)
from tests.nvml_library.test_cells import FieldValue, field

SW_THERMAL = "clocks_throttle_reasons.counters.sw_thermal_slowdown_us"
POWER_CAP = "clocks_throttle_reasons.counters.sw_power_cap_us"
LINKS = tuple(LinkSpec(True, "switch", "") for _ in range(18))
ALL_LINKS = 0xFFFFFFFF
NEWEST = "620.10"
TICKS_S = 0.03  # a counter starts at a tick that is still to come


def answer(library: Library, number: int, scope: int = 0) -> int:
    """The value, or the entry's refusal, negative."""
    read = field(library, number, scope)
    return int(read.value) if read.code == SUCCESS else -int(read.code)


@pytest.mark.parametrize(
    ("driver", "thermal", "smoothing", "mig"),
    [("550.163.01", None, None, 199), ("555.58.02", None, None, 200), ("560.35.03", None, None, 200),
     ("570.124.06", None, 251, 199), ("575.57.08", 251, 256, 199), ("580.65.06", 251, 256, 199),
     ("580.82.07", 269, 251, 199), ("580.105.08", 269, 251, 199), ("595.91.07", 269, 251, 199)],
)  # fmt: skip
def test_a_field_has_the_number_that_the_driver_gives_it(
    scene: Scene, driver: str, thermal: int | None, smoothing: int | None, mig: int
) -> None:
    values: dict[str, Value] = {
        SW_THERMAL: Counter(77, 0, 0),
        "power_smoothing.mode": 1,
        "mig.mode_current": 0,
        "architecture": 9,
    }
    library = scene.start(node(runtime(values), driver=driver))
    found = {
        value: number
        for number in (199, 200, 251, 256, 269)
        if (value := answer(library, number)) in (77000, 1) and number not in (199, 200)
    }
    assert found == {key: number for key, number in ((77000, thermal), (1, smoothing)) if number}
    assert answer(library, mig) == 1


@pytest.mark.parametrize(
    ("driver", "first_unknown"),
    [("470.256.02", 161), ("525.147.05", 197), ("535.104.05", 197), ("535.261.03", 228), ("550.163.01", 228),
     ("580.105.08", 274), ("595.91.07", 303)],
)  # fmt: skip
def test_a_field_newer_than_the_driver_is_not_supported(scene: Scene, driver: str, first_unknown: int) -> None:
    assert canonical(driver_number(driver), first_unknown) is None
    assert canonical(driver_number(driver), first_unknown - 1) is not None
    library = scene.start(node(runtime({"gpu_reset.required": 0, "recovery_action": 0}), driver=driver))
    assert [answer(library, number) for number in (226, 230)] == [
        0 if number < first_unknown else -NOT_SUPPORTED for number in (226, 230)
    ]


@pytest.mark.parametrize("number", [0, 65000, 0xFFFFFFFF])
def test_an_id_that_nobody_knows_is_refused_by_itself(scene: Scene, number: int) -> None:
    library = scene.start(node(runtime(), driver=NEWEST))
    assert answer(library, number) == -NOT_SUPPORTED


@pytest.mark.parametrize(
    ("number", "key"),
    [(74, POWER_CAP), (75, SW_THERMAL), (269, SW_THERMAL),
     (76, "clocks_throttle_reasons.counters.sync_boost_us"),
     (270, "clocks_throttle_reasons.counters.hw_thermal_slowdown_us"),
     (271, "clocks_throttle_reasons.counters.hw_power_brake_slowdown_us")],
)  # fmt: skip
def test_time_lost_is_told_in_nanoseconds(scene: Scene, number: int, key: str) -> None:
    library = scene.start(node(runtime({key: Counter(5, 0, 0)})))
    assert answer(library, number) == 5000
    scene.publish(node(runtime({key: Refusal(NOT_SUPPORTED)})))
    assert answer(library, number) == -NOT_SUPPORTED


def test_causes_that_nobody_accounts_for_are_zero_where_others_are_counted(scene: Scene) -> None:
    library = scene.start(node(runtime({POWER_CAP: Counter(5, 0, 0)}), runtime()))
    assert [answer(library, number) for number in (77, 78, 79, 80, 81)] == [0, 0, 0, -NOT_SUPPORTED, 0]
    scene.publish(node(runtime()))
    assert answer(library, 77) == -NOT_SUPPORTED


def test_retired_pages_are_counted_where_pages_are_retired(scene: Scene) -> None:
    ids = (29, 30, 31, 92, 93)
    retiring: dict[str, Value] = {
        "retired_pages.single_bit_retirement.count": 3,
        "retired_pages.double_bit_retirement.count": 2,
        "retired_pages.pending_retirement": 1,
    }
    library = scene.start(node(runtime(retiring)))
    assert [answer(library, number) for number in ids] == [3, 2, 1, 1, 1]
    scene.publish(node(runtime()))
    assert {answer(library, number) for number in ids} == {-NOT_SUPPORTED}


def test_power_smoothing_tells_what_its_cell_says_to_everybody(scene: Scene) -> None:
    library = scene.start(node(runtime({"power_smoothing.mode": Refusal(NO_PERMISSION)}), driver=NEWEST))
    assert {answer(library, number) for number in (251, 260, 268, 275, 288)} == {-NO_PERMISSION}
    scene.publish(node(runtime(), driver=NEWEST))
    assert answer(library, 251) == -NOT_SUPPORTED


@pytest.mark.parametrize(
    ("number", "scope", "expected"),
    [(91, 0, 18), (90, 0, 26562), (147, 0, 18), (84, 0, 26562), (137, 0, 26562),
     (164, 17, 26562), (164, 18, -3), (164, 99, -2), (165, 5, 1), (166, 5, 6), (167, 5, 0), (168, 5, 1000),
     (161, 0, 0), (162, 0, 0), (163, 0, 0), (38, 0, 0), (45, 0, 0), (52, 0, 0), (59, 0, 0), (160, 0, 0), (101, 0, 0),
     (60, 0, -3), (120, 0, -3), (201, 0, -3), (205, 0, -3), (216, 0, -3), (235, 0, -3),
     (200, 0, 1023), (223, 0, 1), (224, 0, 1), (225, 0, 1)],
)  # fmt: skip
def test_links_answer_one_by_one_or_together(scene: Scene, number: int, scope: int, expected: int) -> None:
    """Of an H100: version 4 (nvmlNvlinkVersion_t 6), no packet counters."""
    library = scene.start(node(runtime({"architecture": 9}, links=LINKS)))
    assert answer(library, number, scope) == expected


def test_a_board_without_links_has_none_of_their_fields(scene: Scene) -> None:
    library = scene.start(node(runtime()))
    ids = (84, 90, 91, 138, 146, 147, 161, 164, 165, 166, 167, 201, 38)
    assert {answer(library, number) for number in ids} == {-NOT_SUPPORTED}


def test_a_link_that_is_down_has_a_state_and_a_version_only(scene: Scene) -> None:
    links = (*LINKS[:17], LinkSpec(False, "", ""))
    library = scene.start(node(runtime(links=links)))
    assert [answer(library, number, 17) for number in (164, 165, 166, 138)] == [-3, 0, 6, -3]
    assert (answer(library, 91), answer(library, 147)) == (18, 17)


def test_traffic_grows_under_load_and_all_links_carry_the_sum(scene: Scene) -> None:
    load = LoadSpec("training", 0, 100, period_s=0.5)
    library = scene.start(node(runtime({"utilization.gpu": 0}, load=load, links=LINKS)))
    time.sleep(TICKS_S)
    for number in (138, 139, 140, 141):
        first = answer(library, number, 3)
        together = answer(library, number, ALL_LINKS)
        second = answer(library, number, 3)
        assert 18 * first <= together <= 18 * second + 18
    assert first > 0


def test_packets_are_counted_since_version_5(scene: Scene) -> None:
    load = LoadSpec("training", 0, 100, period_s=0.5)
    library = scene.start(node(runtime({"nvlink.version": 5}, load=load, links=LINKS)))
    time.sleep(TICKS_S)
    packets, octets = answer(library, 201, 0), answer(library, 202, 0)
    assert 0 < packets <= octets // 86 + 1
    assert {answer(library, number, 0) for number in (206, 212, 213, 215, 219, 220, 222, 235, 250)} == {0}


def test_a_batch_is_read_under_one_driver(scene: Scene) -> None:
    """The driver may change under a program that runs."""
    values: dict[str, Value] = {SW_THERMAL: Counter(77, 0, 0)}
    library = scene.start(node(runtime(values), driver="580.65.06"))
    assert (answer(library, 251), answer(library, 269)) == (77000, -NOT_SUPPORTED)
    scene.publish(node(runtime(values), driver="580.105.08"))
    batch = (FieldValue * 2)(FieldValue(251), FieldValue(269))
    library.call("nvmlDeviceGetFieldValues", library.handle(), 2, ctypes.byref(batch))
    assert [entry.code for entry in batch] == [NOT_SUPPORTED, SUCCESS]


@pytest.mark.parametrize(
    ("mode", "architecture", "links"), [(None, 9, -NOT_SUPPORTED), (0, 9, 0), (1, 9, 10), (1, 10, 5)]
)
def test_the_link_to_the_cpu_is_of_several_links(scene: Scene, mode: int | None, architecture: int, links: int) -> None:
    c2c: dict[str, Value] = {} if mode is None else {"c2c.mode": mode}
    library = scene.start(node(runtime(c2c | {"architecture": architecture})))
    assert answer(library, 170) == links
    expected = [1, 44712, 0, 0] if links > 0 else [-NOT_SUPPORTED] * 4
    assert [answer(library, number, 4) for number in (171, 172, 231, 234)] == expected
    if links > 0:
        assert answer(library, 171, links) == -INVALID_ARGUMENT
