"""Every leaf of every real document has a source on the board: a cell that holds what the leaf says, or a rule."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from simnode.nvml.cells import BY_KEY, CELLS, Cell
from simnode.profile import Options, boards, compile_state, load_board
from simnode.profile.schema import FLAGS
from simnode.state import Counter, Refusal, State, Value
from tests.boards.leaves import Capture, Leaves, load

MIB = 1 << 20
NOTHING = "N/A"
DEPRECATED = "Requested functionality has been deprecated"
ATOMICS = ("FETCHADD_32", "FETCHADD_64", "SWAP_32", "SWAP_64", "CAS_32", "CAS_64", "CAS_128")
WORDS: dict[str, dict[Value, str]] = {
    "product_brand": {"nvidia": "NVIDIA"},
    "product_architecture": {"ada_lovelace": "Ada Lovelace"},
    "addressing_mode": {"hmm": "HMM", "ats": "ATS"},
    "performance_state": {"P0": "P0"},
    "platformInfo/peer_type": {"switch_connected": "Switch Connected"},
    "gpu_virtualization_mode/virtualization_mode": {"passthrough": "Pass-Through"},
    "gpu_recovery_action": {0: "None"},
    "fabric/health/summary": {0: NOTHING, 1: "Healthy"},
}
# Elements that no cell holds, and what the driver's program prints whatever the board: nothing of these exists on one.
NEVER = (
    "driver_model/current_dm",
    "driver_model/pending_dm",
    "gpu_virtualization_mode/host_vgpu_mode",
    "gpu_virtualization_mode/vgpu_heterogeneous_mode",
    "ibmnpu/relaxed_ordering_mode",
    "pci/pci_bridge_chip/bridge_chip_type",
    "pci/pci_bridge_chip/bridge_chip_fw",
    "temperature/gpu_target_temperature",
    "supported_gpu_target_temp/gpu_target_temp_min",
    "supported_gpu_target_temp/gpu_target_temp_max",
    "deferred_clocks/mem_clock",
    "clock_policy/auto_boost",
    "clock_policy/auto_boost_default",
    "voltage/graphics_volt",
)
# What a cell holds and the driver of the document does not tell any more.
RETIRED = {
    "display_mode": 580,
    "gpu_reset_status/reset_required": 570,
    "gpu_reset_status/drain_and_reset_recommended": 570,
    "gpu_power_readings/power_state": 595,
    "module_power_readings/power_state": 595,
    "applications_clocks/graphics_clock": 595,
    "applications_clocks/mem_clock": 595,
    "default_applications_clocks/graphics_clock": 595,
    "default_applications_clocks/mem_clock": 595,
}
MADE_UP = ("uuid",)


def said(cell: Cell, value: Value | None) -> str:
    """A value as the documents write it."""
    if isinstance(value, Refusal):
        return {3: NOTHING, 4: "Insufficient Permissions"}[value.code]
    if value is None:
        return NOTHING
    if cell.xml in WORDS and value in WORDS[cell.xml]:
        return WORDS[cell.xml][value]
    if cell.key in FLAGS:
        return "Yes" if value else "No"
    if isinstance(value, Counter):
        assert not value.idle_rate
        assert not value.span_rate
        value = value.start
    if isinstance(value, str):
        return value.capitalize() if cell.choices else value
    assert isinstance(value, int)
    if cell.key == "inforom.bbx_flush_time_us":
        return datetime.fromtimestamp(value / 1e6, UTC).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    units = {"us": "us", "C": "C", "MHz": "MHz", "%": "%", "KB/s": "KB/s", "banks": "bank(s)"}
    if cell.unit in units:
        return f"{value} {units[cell.unit]}"
    if cell.unit == "mW":
        return f"{value / 1000:.2f} W"
    if cell.unit == "B":
        return f"{-(-value // MIB)} MiB"
    if cell.xml.endswith("link_width"):
        return f"{value}x"
    if "atomic_caps" in cell.xml:
        return " ".join(name for bit, name in enumerate(ATOMICS) if value >> bit & 1) or NOTHING
    forms = {
        "pci/pci_bus": "02X",
        "pci/pci_device": "02X",
        "pci/pci_domain": "04X",
        "pci/pci_device_id": "08X",
        "pci/pci_sub_system_id": "08X",
        "board_id": "#x",
        "pdi": "#018x",
        "platformInfo/gpu_fabric_guid": "#018x",
    }
    return format(value, forms.get(cell.xml, "d"))


def readings(state: State, index: int) -> dict[str, Value]:
    """What a device reads by key, identity and defaults included."""
    device = state.devices[index]
    domain, bus, slot = device.pci_bus_id.partition(".")[0].split(":")
    identity: dict[str, Value] = {
        "name": device.name,
        "serial": device.serial,
        "uuid": device.uuid,
        "vbios_version": device.vbios_version,
        "minor_number": device.minor_number,
        "architecture": device.architecture,
        "memory.total_bytes": device.memory_total_bytes,
        "board_id": int(domain, 16) << 16 | int(bus, 16) << 8 | int(slot, 16),
        "pci.domain": int(domain, 16),
        "pci.bus": int(bus, 16),
        "pci.device": int(slot, 16),
        "pci.device_id": device.pci_device_id,
        "pci.subsystem_id": device.pci_subsystem_id,
    }
    defaults: dict[str, Value] = {cell.key: cell.default for cell in CELLS if cell.default is not None}
    for cell in CELLS:
        if cell.choices and cell.default is not None:
            words = [word for word, number in cell.choices.items() if number == cell.default]
            defaults[cell.key] = words[0] if words else NOTHING
    return defaults | identity | dict(state.runtime.devices[index].values)


def memory(values: Mapping[str, Value], block: str) -> str:
    """What is free of a memory, rounded up."""
    total, used, reserved = (values.get(f"{block}.{part}_bytes", 0) for part in ("total", "used", "reserved"))
    assert isinstance(total, int)
    assert isinstance(used, int)
    assert isinstance(reserved, int)
    return f"{-(-(total - used - reserved) // MIB)} MiB"


def by_rule(values: Mapping[str, Value], state: State, index: int) -> Leaves:
    """The leaves that are made from something else than one cell of their own."""
    bus_id = f"0000{state.devices[index].pci_bus_id.upper()}"
    reference, temperature = values.get("thermal.tlimit.reference_c"), values["thermal.temperature_gpu_c"]
    dram = {
        f"ecc_errors/{scope}/dram_{kind}": str(values[f"ecc.errors.{scope}.{bits}.device_memory"])
        for scope in ("volatile", "aggregate")
        for bits, kind in (("single_bit", "correctable"), ("double_bit", "uncorrectable"))
    }
    sram = {
        f"ecc_errors/{scope}/sram_uncorrectable": str(
            sum(int(str(values[f"ecc.sram.{scope}.uncorrectable_{code}"])) for code in ("parity", "secded"))
        )
        for scope in ("volatile", "aggregate")
    }
    thresholds = {
        "temperature/gpu_temp_max_threshold": "thermal.shutdown_threshold_c",
        "temperature/gpu_temp_slow_threshold": "thermal.slowdown_threshold_c",
        "temperature/gpu_temp_max_gpu_threshold": "thermal.max_operating_c",
        "temperature/gpu_temp_max_mem_threshold": "thermal.memory_max_c",
    }
    clocks = {
        f"supported_clocks/{table.memory_mhz} MHz": " ".join(map(str, table.graphics_mhz))
        for table in state.runtime.devices[index].supported_clocks
    }
    reasons = values["clocks_throttle_reasons.active"]
    assert isinstance(reasons, int)
    return {
        **dram,
        **sram,
        **{path: said(BY_KEY[key], values.get(key)) for path, key in thresholds.items()},
        **clocks,
        **_health(values),
        **_retired(values),
        **{
            f"clocks_event_reasons/clocks_event_reason_{reason}": "Active" if reasons & bit else "Not Active"
            for reason, bit in REASONS.items()
        },
        "@id": bus_id,
        "pci/pci_bus_id": bus_id,
        "display_attached": "Yes" if values["display.mode"] == "enabled" else "No",
        "pci/pci_gpu_link_info/pcie_gen/device_current_link_gen": str(values["pcie.current_link_gen"]),
        "gpu_power_readings/power_state": str(values["performance_state"]),
        "module_power_readings/power_state": str(values["performance_state"]),
        "fb_memory_usage/free": memory(values, "memory"),
        "bar1_memory_usage/free": memory(values, "bar1_memory"),
        "cc_protected_memory_usage/free": memory(values, "cc_protected_memory"),
        "temperature/gpu_temp_tlimit": f"{int(str(reference)) - int(str(temperature))} C" if reference else NOTHING,
        "fabric/status": "Success" if "fabric.state" in values and values["fabric.status"] == 0 else NOTHING,
        "remapped_rows": NOTHING,
        "mig_devices": "None",
        "capabilities/egm": "enabled" if values["capabilities"] else "disabled",
        "processes": "",
        "accounted_processes": "",
    }


REASONS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clocks_setting": 0x100,
}


def _health(values: Mapping[str, Value]) -> Leaves:
    mask = values["fabric.health_mask"]
    assert isinstance(mask, int)
    conditions = {"route_recovery_in_progress": 2, "route_unhealthy": 4, "access_timeout_recovery": 6}
    conditions["partition_assigned"] = 12
    return {
        "fabric/health/bandwidth": (NOTHING, "Degraded", "Full")[mask & 3],
        "fabric/health/incorrect_configuration": (NOTHING, "None")[mask >> 8 & 15],
        **{f"fabric/health/{name}": (NOTHING, "True", "False")[mask >> at & 3] for name, at in conditions.items()},
    }


def _retired(values: Mapping[str, Value]) -> Leaves:
    leaves = {}
    for kind, block in (("multiple_single_bit", "single_bit"), ("double_bit", "double_bit")):
        count = values.get(f"retired_pages.{block}_retirement.count")
        leaves[f"retired_pages/{kind}_retirement/retired_count"] = NOTHING if count is None else str(count)
        leaves[f"retired_pages/{kind}_retirement/retired_pagelist"] = NOTHING if count is None else ""
    pending = said(BY_KEY["retired_pages.pending_retirement"], values.get("retired_pages.pending_retirement"))
    return {**leaves, "retired_pages/pending_blacklist": pending, "retired_pages/pending_retirement": pending}


def expected(state: State, index: int, capture: Capture) -> Leaves:
    """Every leaf that the board gives a source for."""
    values = readings(state, index)
    leaves = {cell.xml: said(cell, values.get(cell.key)) for cell in CELLS if cell.xml}
    leaves |= by_rule(values, state, index) | dict.fromkeys(NEVER, NOTHING)
    branch = int(capture.driver.split(".")[0])
    return leaves | {path: DEPRECATED for path, since in RETIRED.items() if branch >= since}


@pytest.mark.parametrize("board", boards())
def test_every_leaf_of_the_real_node_has_its_value_on_the_board(board: str) -> None:
    capture, state = load(board), compile_state(load_board(board), Options(), {})
    assert state.software.driver_version == capture.driver
    assert state.software.cuda_version == capture.cuda
    assert len(capture.gpus) in (1, len(state.devices))
    for index, real in enumerate(capture.gpus):
        ours = expected(state, index, capture)
        different = {path: (text, ours.get(path)) for path, text in real.items() if ours.get(path) != text}
        assert set(different) == set(MADE_UP), different
