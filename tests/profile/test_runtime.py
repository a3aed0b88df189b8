"""What a device reads: the rules of the hardware on top of the keys."""

from __future__ import annotations

import pytest

from simnode.profile import Options, compile_state, load_board, load_text
from simnode.state import Counter, ProcessSpec, Refusal
from tests.profile.documents import SMALL, faults, h100, readings, small

NOT_SUPPORTED = Refusal(3)


def _with(lines: str) -> dict[str, object]:
    """The readings of a small A100 with these keys."""
    return dict(readings(small("", *lines.split())))


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("persistence_mode=true", "persistence_mode", "enabled"),
        ("compute_mode=Exclusive_Process", "compute_mode", "exclusive_process"),
        ("remapped_rows.pending=true", "remapped_rows.pending", 1),
        ("pcie.replay_counter=0x10", "pcie.replay_counter", 16),
        ("inforom.oem_object=2.10", "inforom.oem_object", "2.10"),
        ("fabric.cluster_uuid=ABCD", "fabric.cluster_uuid", "abcd0000-0000-0000-0000-000000000000"),
        ("fabric.cluster_uuid=''", "fabric.cluster_uuid", None),
        ("fabric.state=auto", "fabric.state", "auto"),
        ("gpu_fru_part_number=N/A", "gpu_fru_part_number", None),
        ("pcie.replay_counter=N/A", "pcie.replay_counter", NOT_SUPPORTED),
        ("memory.memory_bus_width=0", "memory.memory_bus_width", None),
        ("pcie.max_link_gen=4", "pcie.device_max_link_gen", 4),
        ("clocks.graphics_max=1410", "clocks.graphics_customer_boost_max", 1410),
        ("power.enforced_limit_mw=300000", "power.requested_limit_mw", 300000),
    ],
)
def test_a_key_becomes_the_value_of_its_cell(override: str, key: str, value: object) -> None:
    assert _with(override).get(key) == value


def test_a_fan_that_is_not_there_has_no_speed() -> None:
    assert "fan.speed_percent" not in _with("fan.speed_percent=40")
    assert "fan.speed_percent" not in _with("fan.speed_percent=40 fan.count=0")
    assert _with("fan.speed_percent='40' fan.count=1")["fan.speed_percent"] == 40


def test_with_ecc_off_every_count_is_refused() -> None:
    values = readings(h100("ecc.mode_current=disabled"))
    counts = [value for key, value in values.items() if key.startswith(("ecc.errors.", "ecc.sram."))]
    assert len(counts) == 40
    assert set(counts) == {NOT_SUPPORTED}


def test_a_missing_ecc_total_is_the_sum_of_its_locations() -> None:
    values = readings(
        h100("ecc.errors.volatile.single_bit.l2_cache=2", "ecc.errors.volatile.single_bit.device_memory=3")
    )
    assert values["ecc.errors.volatile.single_bit.total"] == 5


def test_distances_from_the_limit_come_with_ada() -> None:
    thresholds = "thermal.max_operating_c=83 thermal.slowdown_threshold_c=87 thermal.shutdown_threshold_c=92"
    assert not [key for key in _with(thresholds) if key.startswith("thermal.tlimit.")]
    ada = _with(f"{thresholds} architecture=ada")
    assert {key: value for key, value in ada.items() if key.startswith("thermal.tlimit.")} == {
        "thermal.tlimit.reference_c": 83,
        "thermal.tlimit.max_operating_c": 0,
        "thermal.tlimit.slowdown_c": -4,
        "thermal.tlimit.shutdown_c": -9,
    }


def test_average_power_comes_with_ada() -> None:
    assert "power.average_draw_mw" not in _with("power.current_draw_mw=50000")
    assert _with("power.current_draw_mw=50000 architecture=ada")["power.average_draw_mw"] == 50000


def test_a_power_that_is_set_is_the_average_too() -> None:
    values = readings(h100("power.current_draw_mw=300000"))
    assert values["power.average_draw_mw"] == 300000
    assert values["power.total_energy_consumption_mj"] == Counter(600000, 300000.0, 0.0)


@pytest.mark.parametrize(
    ("architecture", "retired", "remapped"), [("turing", True, False), ("ampere", False, True), ("hopper", False, True)]
)
def test_pages_are_retired_before_ampere_and_rows_remapped_since(
    architecture: str, retired: bool, remapped: bool
) -> None:
    text = SMALL.replace(
        "architecture: ampere",
        f"architecture: {architecture}\n  retired_pages: {{single_bit_retirement: {{count: 0}}}}\n"
        "  remapped_rows: {correctable: 0}",
    )
    values = readings(compile_state(load_text(text.encode(), "p.yaml"), Options(), {}))
    assert ("retired_pages.single_bit_retirement.count" in values) == retired
    assert ("remapped_rows.correctable" in values) == remapped


def test_a_board_without_mig_refuses_its_mode() -> None:
    text = SMALL.replace(
        "architecture: ampere", "architecture: ampere\n  mig: {mode_current: disabled, max_gpu_instances: 0}"
    )
    values = readings(compile_state(load_text(text.encode(), "p.yaml"), Options(), {}))
    assert "mig.mode_current" not in values


def test_energy_grows_with_the_idle_power() -> None:
    assert readings(h100())["power.total_energy_consumption_mj"] == Counter(600000, 68920.0, 0.0)


def test_a_reason_in_force_is_in_the_mask_and_makes_its_counter_run() -> None:
    values = readings(h100("clocks_throttle_reasons.sw_power_cap=true", "clocks_throttle_reasons.gpu_idle=false"))
    assert values["clocks_throttle_reasons.active"] == 0x4
    assert values["clocks_throttle_reasons.counters.sw_power_cap_us"] == Counter(7015662857, 1e6, 0.0)


@pytest.mark.parametrize(
    ("health", "mask", "summary"),
    [
        ("{degraded_bandwidth: false}", 0x002, 1),
        ("{degraded_bandwidth: true}", 0x001, 3),
        (
            "{degraded_bw: false, route_recovery: false, route_unhealthy: false, access_timeout_recovery: false, "
            "incorrect_configuration: none}",
            0x1AA,
            1,
        ),
        ("{route_unhealthy: true}", 0x010, 2),
        ("{incorrect_configuration: no_partition}", 0x400, 2),
        ("{}", 0x000, 0),
    ],
)
def test_the_health_mask_and_its_summary_come_from_the_conditions(health: str, mask: int, summary: int) -> None:
    values = readings(small("", f"fabric.health={health}"))
    assert (values["fabric.health_mask"], values["fabric.health_summary"]) == (mask, summary)


@pytest.mark.parametrize(
    ("override", "lost"),
    [
        ("failure.mode=healthy", 0),
        ("failure.mode=lost", 15),
        ("failure.mode=fallen_off_bus", 15),
        ("failure={mode: lost, after_calls: 3}", 0),
        ("failure={mode: lost, probability: 0.5}", 0),
    ],
)
def test_a_failure_without_a_trigger_is_in_force(override: str, lost: int) -> None:
    assert h100(override).runtime.devices[0].lost == lost


def test_an_uncorrectable_error_counts_and_fails_a_remapping() -> None:
    values = readings(h100("failure.mode=ecc_uncorrectable"))
    assert values["ecc.errors.aggregate.double_bit.total"] == 1
    assert values["ecc.errors.volatile.double_bit.device_memory"] == 1
    assert values["remapped_rows.uncorrectable"] == 1
    assert values["remapped_rows.failure_occurred"] == 1


def test_before_ampere_an_uncorrectable_error_retires_a_page() -> None:
    document = load_board("t4")
    values = readings(compile_state(document, Options(overrides=("failure.mode=ecc_uncorrectable",)), {}))
    assert values["retired_pages.double_bit_retirement.count"] == 1
    assert values["retired_pages.pending_retirement"] == 1
    assert not [key for key in values if key.startswith("remapped_rows.")]


def test_a_limit_of_the_module_takes_the_requested_one_along() -> None:
    document = load_board("gb200")
    values = readings(compile_state(document, Options(overrides=("power.module.enforced_limit_mw=2000000",)), {}))
    assert values["power.module.requested_limit_mw"] == 2_000_000


def test_what_only_root_may_know_is_refused() -> None:
    assert readings(small("", "power_smoothing.mode=no_permission"))["power_smoothing.mode"] == Refusal(4)


def test_a_place_in_no_chassis_has_an_empty_chassis_serial() -> None:
    assert readings(small("", "platform.host_id=1"))["platform.chassis_serial_number"] == ""
    assert "platform.chassis_serial_number" not in readings(small("", "platform.module_id=1"))


def test_atomics_are_told_for_both_directions_or_none() -> None:
    assert readings(small("", "pcie.atomic_caps_inbound=63"))["pcie.atomic_caps_outbound"] == 0
    assert "pcie.atomic_caps_outbound" not in readings(small())


def test_remappings_that_wait_are_told_beside_those_in_force() -> None:
    assert readings(small("", "remapped_rows.correctable=2"))["remapped_rows.correctable_inactive"] == 0
    assert "remapped_rows.correctable_inactive" not in readings(small())


def test_clocks_may_begin_between_two_whole_ones() -> None:
    clocks = "supported_clocks.memory_clocks=[{freq_mhz: 3996, graphics_clocks: {from: 2062.5, to: 2040, step: 7.5}}]"
    (table,) = small("", clocks).runtime.devices[0].supported_clocks
    assert table.graphics_mhz == (2062, 2055, 2047, 2040)


def test_processes_are_taken_as_listed() -> None:
    state = small("", "processes=[{pid: 7, name: train, used_memory_mib: 6000, sm_util: 5}, {pid: 8, type: c+g}]")
    assert state.runtime.devices[1].processes == (
        ProcessSpec(7, "C", "train", 6000 << 20, 5),
        ProcessSpec(8, "C+G", "process-8", 0),
    )


@pytest.mark.parametrize("name", ["", ", name: ''", ", name: ' '", ", name: N/A", ", name: null"])
def test_a_process_without_a_name_gets_one(name: str) -> None:
    """The real nvidia-smi's table has neither a row for one without nor the words that there is none."""
    (process,) = small("", f"processes=[{{pid: 7{name}}}]").runtime.devices[0].processes
    assert process == ProcessSpec(7, "C", "process-7", 0)


def test_memory_of_which_nothing_is_said_to_be_used_is_free() -> None:
    """An override that unsets what is used says nothing either; N/A makes NVML refuse it."""
    assert readings(small())["memory.used_bytes"] == 0
    assert readings(small("", "memory.used_bytes=5", "memory.used_bytes="))["memory.used_bytes"] == 0
    assert "memory.used_bytes" not in readings(small("", "memory.used_bytes=N/A"))


def test_a_long_process_name_is_cut_between_characters() -> None:
    (process,) = small("", f"processes=[{{pid: 7, name: {'é' * 200}}}]").runtime.devices[0].processes
    assert process.name == "é" * 107


def test_clocks_are_ordered_and_a_range_counts_down() -> None:
    slow, fast = "[210, 420]", "{from: 1965, to: 1950, step: 7.5}"
    value = f"[{{freq_mhz: 810, graphics_clocks: {slow}}}, {{freq_mhz: 1215, graphics_clocks: {fast}}}]"
    tables = small("", f"supported_clocks.memory_clocks={value}").runtime.devices[0].supported_clocks
    assert [(table.memory_mhz, table.graphics_mhz) for table in tables] == [
        (1215, (1965, 1957, 1950)),
        (810, (420, 210)),
    ]


@pytest.mark.parametrize("steps", ["{from: 100, to: 200, step: 1}", "{from: 60000, to: 0, step: 1}"])
def test_a_range_without_an_end_or_start_is_a_fault(steps: str) -> None:
    override = f"supported_clocks.memory_clocks=[{{freq_mhz: 1, graphics_clocks: {steps}}}]"
    (fault,) = faults(small().config_raw, Options(overrides=(override,)))
    assert fault.endswith("must give 1 to 320 clocks, from the fastest down")
