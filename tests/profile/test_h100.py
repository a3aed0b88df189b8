"""The board h100 is what a real node of eight says of itself (`nvidia-smi -q -x`, driver 580.105.08)."""

from __future__ import annotations

import pytest

from simnode.nvml.encode import encode
from simnode.profile import boards, load_board
from simnode.state import Counter, RootComplex, SwitchSpec
from tests.profile.documents import h100, readings

PER_GPU = {
    "power.current_draw_mw": (68920, 67160, 67740, 71770, 66340, 68250, 70010, 68180),
    "power.average_draw_mw": (68570, 67010, 67450, 71370, 66660, 68110, 69800, 68070),
    "power.memory.average_draw_mw": (32980, 39710, 39920, 46070, 36030, 36700, 35370, 36890),
    "thermal.temperature_gpu_c": (29, 30, 29, 32, 32, 29, 31, 29),
    "thermal.temperature_memory_c": (37, 39, 38, 39, 37, 37, 37, 38),
    "pcie.replay_counter": (150, 144, 174, 158, 145, 172, 162, 106),
    "pcie.tx_throughput_kbps": (502, 506, 508, 512, 514, 1572, 510, 512),
    "pcie.rx_throughput_kbps": (578, 484, 455, 418, 438, 464, 425, 600),
    "platform.module_id": (7, 5, 6, 8, 1, 3, 4, 2),
    "pdi": (1, 2, 3, 4, 5, 6, 7, 8),
    "inforom.bbx_flush_duration_us": (93088, 130280, 102741, 92480, 95106, 92698, 133594, 92203),
    "board_part_number": ("692-2G520-0200-000",) * 3 + ("965-2G520-A800-000",) + ("692-2G520-0200-000",) * 4,
}
T_LIMIT_C = (58, 56, 57, 55, 55, 58, 56, 57)
SW_POWER_CAP_US = (
    7015662857,
    7015392538,
    7015478833,
    7015722115,
    7015815635,
    7015263757,
    7015401606,
    7014307013,
)
OF_ALL = {
    "brand": "nvidia",
    "persistence_mode": "enabled",
    "addressing_mode": "hmm",
    "mig.mode_current": "disabled",
    "mig.mode_pending": "disabled",
    "accounting.mode": "disabled",
    "accounting.buffer_size": 4000,
    "display.active": "disabled",
    "multigpu_board": 0,
    "gpu_part_number": "2330-885-A1",
    "inforom.image_version": "G520.0200.00.05",
    "inforom.oem_object": "2.1",
    "inforom.ecc_object": "7.16",
    "c2c.mode": "disabled",
    "virtualization.mode": "passthrough",
    "recovery_action": 0,
    "gsp_firmware.version": "580.105.08",
    "pcie.max_link_gen": 5,
    "pcie.current_link_gen": 5,
    "pcie.device_max_link_gen": 5,
    "pcie.max_link_width": 16,
    "pcie.current_link_width": 16,
    "performance_state": "P0",
    "clocks_throttle_reasons.active": 0x1,
    "sparse_operation_mode": "disabled",
    "memory.used_bytes": 0,
    "bar1_memory.total_bytes": 131072 << 20,
    "bar1_memory.used_bytes": 1 << 20,
    "compute_mode": "default",
    "utilization.gpu": 0,
    "utilization.jpeg": 0,
    "utilization.ofa": 0,
    "ecc.mode_current": "enabled",
    "ecc.mode_pending": "enabled",
    "repair.channel_pending": 0,
    "repair.tpc_pending": 0,
    "remapped_rows.correctable": 0,
    "remapped_rows.pending": 0,
    "remapped_rows.availability_histogram.max": 2560,
    "thermal.tlimit.shutdown_c": -8,
    "thermal.tlimit.slowdown_c": -2,
    "thermal.tlimit.max_operating_c": 0,
    "thermal.tlimit.memory_max_c": 0,
    "power.enforced_limit_mw": 700_000,
    "power.requested_limit_mw": 700_000,
    "power.default_limit_mw": 700_000,
    "power.min_limit_mw": 200_000,
    "power.max_limit_mw": 700_000,
    "clocks.graphics_current": 345,
    "clocks.sm_current": 345,
    "clocks.memory_current": 2619,
    "clocks.video_current": 765,
    "clocks.graphics_app": 1980,
    "clocks.memory_app_default": 2619,
    "clocks.graphics_max": 1980,
    "clocks.video_max": 1545,
    "clocks.graphics_customer_boost_max": 1980,
    "fabric.state": "completed",
    "fabric.status": 0,
    "fabric.clique_id": 0,
    "fabric.cluster_uuid": "00000000-0000-0000-0000-000000000000",
    "fabric.health_summary": 0,
}
NOT_AVAILABLE = (
    "inforom.pwr_object",
    "gpu_fru_part_number",
    "platform.chassis_serial_number",
    "platform.slot_number",
    "platform.host_id",
    "gpu_operation_mode.current",
    "pcie.host_max_link_gen",
    "pcie.atomic_caps_outbound",
    "fan.speed_percent",
    "retired_pages.single_bit_retirement.count",
    "thermal.target_temperature_c",
    "power.memory.current_draw_mw",
    "power.module.current_draw_mw",
    "power.module.enforced_limit_mw",
)
BUSES = ("53", "64", "75", "86", "97", "a8", "b9", "ca")


def test_h100_is_a_board() -> None:
    assert "h100" in boards()


@pytest.mark.parametrize("key", PER_GPU)
def test_each_gpu_has_its_own_figures(key: str) -> None:
    state = h100()
    assert tuple(readings(state, index)[key] for index in range(8)) == PER_GPU[key]


def test_all_gpus_share_the_rest() -> None:
    state = h100()
    for index in range(8):
        values = readings(state, index)
        assert {key: values.get(key) for key in OF_ALL} == OF_ALL


@pytest.mark.parametrize("key", NOT_AVAILABLE)
def test_what_the_real_node_shows_as_not_available_is_unset(key: str) -> None:
    assert key not in readings(h100())


def test_the_headroom_is_that_of_each_gpu() -> None:
    state = h100()
    headroom = []
    for index in range(8):
        values = readings(state, index)
        reference, temperature = values["thermal.tlimit.reference_c"], values["thermal.temperature_gpu_c"]
        assert isinstance(reference, int)
        assert isinstance(temperature, int)
        headroom.append(reference - temperature)
    assert tuple(headroom) == T_LIMIT_C


def test_throttle_counters_start_where_the_real_ones_were_and_stand_still() -> None:
    state = h100()
    for index, start in enumerate(SW_POWER_CAP_US):
        assert readings(state, index)["clocks_throttle_reasons.counters.sw_power_cap_us"] == Counter(start, 0.0, 0.0)


def test_memory_is_shown_as_the_real_node_shows_it() -> None:
    state = h100()
    total = state.devices[0].memory_total_bytes
    reserved = readings(state)["memory.reserved_bytes"]
    assert isinstance(reserved, int)
    mebibytes = [-(-size // (1 << 20)) for size in (total, reserved, total - reserved)]  # rounded up
    assert mebibytes == [81559, 480, 81080]


def test_the_supported_clocks_are_two_lists_of_110() -> None:
    tables = h100().runtime.devices[0].supported_clocks
    assert [(table.memory_mhz, table.graphics_mhz) for table in tables] == [
        (2619, tuple(range(1980, 344, -15))),
        (1593, tuple(range(1980, 344, -15))),
    ]
    assert len(tables[0].graphics_mhz) == 110


def test_identities_have_the_shape_of_the_real_ones() -> None:
    devices = h100().devices
    assert [device.pci_bus_id for device in devices] == [f"0000:{bus}:00.0" for bus in BUSES]
    assert [device.minor_number for device in devices] == list(range(8))
    assert [device.serial for device in devices] == [str(1650000000001 + index) for index in range(8)]
    assert "GPU-00000000-0000-0000-0000-000000000000" not in {device.uuid for device in devices}
    first = devices[0]
    assert (first.name, first.architecture) == ("NVIDIA H100 80GB HBM3", "hopper")
    assert (first.compute_cap_major, first.compute_cap_minor) == (9, 0)
    assert (first.pci_device_id, first.pci_subsystem_id) == (0x233010DE, 0x16C110DE)
    assert first.vbios_version == "96.00.99.00.01"


def test_the_node_has_two_sockets_and_four_switches() -> None:
    state = h100()
    assert state.pci_topology() == (
        RootComplex("pci0000:50", 0, tuple(f"0000:{bus}:00.0" for bus in BUSES[:4]), "0-55,112-167"),
        RootComplex("pci0000:90", 1, tuple(f"0000:{bus}:00.0" for bus in BUSES[4:]), "56-111,168-223"),
    )
    assert state.switches == tuple(
        SwitchSpec(f"0000:{bus}:00.0", 0x22A310DE, 0x179610DE) for bus in ("cf", "d0", "d1", "d2")
    )
    assert (state.fabric.links_per_gpu, state.fabric.bandwidth_per_link_mbps) == (18, 26562)


def test_it_carries_the_document_verbatim() -> None:
    assert h100().config_raw == load_board("h100").raw
    assert load_board("h100").text.encode() == load_board("h100").raw


@pytest.mark.parametrize("gpus", [0, 1, 8, 16, 64])
def test_the_image_holds_it(gpus: int) -> None:
    assert encode(h100(gpus=gpus))
