"""What simulated libraries once got wrong: each fault by its number, and the test that would find it.

Numbers are those of faults that were once mended elsewhere; p and a number are what fails in the prior art today. Each
has a test here that bears its number, or one in FOUND_BY, of this room or of the room that it names first. What cannot
go wrong here, and why, is in IMPOSSIBLE.
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import sys
import uuid

import pytest

from simnode.nvml.cells import CELLS
from simnode.profile import Options, boards, compile_state, load_board
from simnode.state import Counter, Gauge, LinkSpec, ProcessSpec, State, Value
from tests.nvml.nodes import device, node, runtime
from tests.nvml_library.conftest import LIBRARY, NOT_SUPPORTED, ROOT, SUCCESS, Library, Scene, filled
from tests.nvml_library.test_cells import field
from tests.nvml_library.test_mig import UUIDS, mig_device, partitioned
from tests.nvml_library.test_private import Slots

FOUND_BY = {
    (1, "no SONAME"): "test_exports.test_the_file_keeps_its_contract",
    (2, "unversioned names absent"): "test_exports.test_the_library_exports_the_list_and_nothing_else",
    (3, "a new entry point missing"): "test_exports.test_the_list_has_every_function_of_the_real_header",
    (4, "wrong parameter lists of stubs"): "test_exports.test_what_takes_a_device_first_is_listed_so",
    (6, "event sets refused"): "test_events.test_sets_can_be_made_and_freed_for_ever",
    (7, "waiting refused"): "test_events.test_an_event_comes_to_who_registered_its_device_and_type",
    (8, "waiting not at all"): "test_events.test_a_wait_lasts_as_long_as_it_should_and_is_idle",
    (10, "no event type supported"): "test_events.test_only_supported_types_can_be_registered",
    (11, "an unknown UUID found"): "test_handles.test_what_is_not_there_is_not_found",
    (14, "all GPUs visible"): "test_callers.test_the_names_in_dev_decide_what_is_visible",
    (15, "retired pages' buffer left alone"): "test_ecc.test_retired_pages_fill_the_buffer_that_they_fit",
    (16, "bus ids of one width"): "test_handles.test_a_bus_id_may_be_in_any_case",
    (17, "no legacy bus id"): "test_structs.test_pci_info_comes_in_the_layout_of_its_age",
    (21, "phantom processes"): "test_private.test_a_slot_that_is_not_known_writes_nothing",
    (22, "the matrix aborted"): "test_private.test_the_matrix_never_fails",
    (23, "a wrong stride of processes"): "test_private.test_process_lists_have_names_and_are_cut_to_the_room",
    (24, "processes without names"): "test_views.test_processes_have_type_name_and_memory",
    (25, "stale registers written through"): "test_private.test_a_slot_that_is_not_known_writes_nothing",
    (27, "pmon crashed"): "test_views.test_pmon_shows_what_each_process_uses",
    (28, "more processes than room"): "test_processes.test_as_many_as_an_image_holds_are_listed",
    (29, "three maxima of the link that disagree"): "test_private.test_a_slot_reads_its_cell",
    (31, "no temperature by struct"): "test_structs.test_a_struct_must_carry_its_tag",
    (32, "no margin"): "test_structs.test_the_margin_is_what_is_left_to_the_reference",
    (33, "no extended PCI struct"): "test_structs.test_pci_info_comes_in_the_layout_of_its_age",
    (39, "any tag accepted"): "test_structs.test_a_struct_must_carry_its_tag",
    (40, "SRAM counts were DRAM's"): "test_ecc.test_sram_status_has_every_counter_in_its_place",
    (41, "no histogram"): "test_ecc.test_the_row_remapper_histogram_has_five_grades",
    (42, "version 3 in version 2's buffer"): "test_fabric.test_fabric_information_ends_where_its_version_ends",
    (
        43,
        "reasons' counters by the header's numbers",
    ): "test_fields.test_a_field_has_the_number_that_the_driver_gives_it",
    (45, "no link count"): "test_fields.test_links_answer_one_by_one_or_together",
    (47, "no sentinel for switches"): "test_nvlink.test_the_other_end_has_an_address",
    (50, "counters that fall"): "test_callers.test_energy_never_falls_whatever_is_published",
    (52, "no monitoring of performance"): "test_gpm.test_a_metric_is_the_mean_between_two_samples_in_any_order",
    (53, "utilisation always 0"): "test_load.test_the_readings_move_within_the_boards_limits",
    (55, "processes' utilisation in one pass"): "test_processes.test_utilisation_has_a_sample_for_each_process",
    (60, "no way down to 0 %"): "test_load.test_without_load_a_process_uses_what_the_profile_says",
    (64, "error texts freed"): "test_values.test_error_texts_are_the_real_ones",
    (56, "GPUs that no UUID names in containers"): (
        "consumers.test_containers.test_a_container_has_the_gpus_that_were_asked_for"
    ),
    (57, "containers without the values"): "consumers.test_containers.test_real_programs_see_the_same",
    (58, "files that others could not read"): (
        "simulators.test_gpudriver_node.test_everything_wanted_is_there_with_its_mode"
    ),
    (59, "faults that outlive their end"): "profile.test_changes.test_a_mode_that_is_set_replaces_the_whole_failure",
    (61, "no device nodes below the driver root"): (
        "consumers.test_containers.test_the_published_driver_can_be_a_root_directory"
    ),
    ("p1", "fork after load hung"): "test_callers.test_a_monitor_survives",
    ("p2", "the count query said SUCCESS"): "test_processes.test_a_list_is_asked_for_twice",
    ("p3", "-q, -q -x, dmon, pmon crashed"): "test_views.test_every_view_ends_well",
    ("p4", "setters crashed"): "test_views.test_whoever_may_not_change_the_board_is_told_so",
    ("p5", "lost GPUs still answered"): "test_handles.test_every_function_refuses_a_lost_device",
    ("p6", "clock lists never read"): "test_clocks.test_supported_clocks_are_listed_in_two_passes",
    ("p7", "an enforced limit of 0 W"): "test_private.test_a_slot_reads_its_cell",
    ("p8", "mig -lgip crashed"): "mig.test_consumers.test_profiles_are_listed_with_what_still_fits",
    ("p9", "forked monitors hung in time"): "consumers.test_python.test_a_monitor_forked_after_init_keeps_polling",
    ("p10", "not under musl"): "consumers.test_musl.test_a_musl_program_reads_every_gpu_and_lists_the_cuda_devices",
    ("p11", "not in 500 MB"): "consumers.test_python.test_a_small_address_space_suffices",
    ("p12", "core counts never read"): "test_wrappers.test_an_answer_is_the_boards",
    ("p13", "racks of other boards' ids, memory and power"): (
        "boards.test_leaves.test_every_leaf_of_the_real_node_has_its_value_on_the_board"
    ),
    ("p14", "getters that refuse what boards answer"): (
        "test_wrappers.test_the_getters_refuse_what_a_real_board_refuses_and_answer_all_else"
    ),
    ("p15", "foreign exports, new glibc names"): "test_exports.test_the_file_keeps_its_contract",
}
IMPOSSIBLE = {
    5: "the library is built in one pass, and padded by nobody",
    44: "a field that is declined says so in its own entry; the library writes no log",
    62: "labels are made from what is read; nothing here makes any",
    63: "the daemon is the real one, told that there are no GPUs",
}


def test_no_fault_is_forgotten() -> None:
    own = {int(name.split("_")[1]) for name in globals() if re.match(r"test_\d+_", name)}
    own |= {int(number) for name in globals() for number in re.findall(r"_and_(\d+)_", name)}
    listed = {number for number, _ in FOUND_BY if isinstance(number, int)}
    assert own | listed | IMPOSSIBLE.keys() == set(range(1, 65))
    assert IMPOSSIBLE.keys() & (own | listed) == set()


@pytest.mark.parametrize("bug", FOUND_BY, ids=lambda bug: f"{bug[0]} {bug[1]}")
def test_a_test_finds(bug: tuple[int | str, str]) -> None:
    *room, module, name = FOUND_BY[bug].split(".")
    source = ROOT.joinpath("tests", *room or ["nvml_library"], f"{module}.py").read_text()
    assert name in re.findall(r"^def (test_\w+)\(", source, re.M)


def test_9_an_xid_is_an_event_and_nothing_else(scene: Scene) -> None:
    key = "clocks_throttle_reasons.counters.sw_power_cap_us"
    library = scene.start(node(runtime({key: Counter(5, 0, 0)})))
    scene.publisher.event(0, 0x8, 79)
    assert struct.unpack("<QQ", filled(library, "nvmlDeviceGetViolationStatus", 16, None, 0))[1] == 5000


def every_board() -> list[State]:
    """The built-in ones."""
    return [compile_state(load_board(name), Options(), {}) for name in boards()]


def test_12_a_uuid_is_one() -> None:
    uuids = [device.uuid for state in every_board() for device in state.devices]
    assert [str(uuid.UUID(text.removeprefix("GPU-"))) for text in uuids] == [text[4:] for text in uuids]


def test_13_a_mig_device_is_told_from_its_gpu(scene: Scene) -> None:
    library = scene.start(partitioned(*UUIDS[:1]))
    told = [library.number("nvmlDeviceIsMigDeviceHandle", one) for one in (library.handle(1), mig_device(library, 0))]
    assert told == [0, 1]


def test_18_every_gpu_of_a_node_has_a_board_id_of_its_own(scene: Scene) -> None:
    library = scene.start(compile_state(load_board("h100"), Options(), {}))
    ids = [library.number("nvmlDeviceGetBoardId", library.handle(index)) for index in range(8)]
    assert 0 not in ids
    assert len(set(ids)) == 8


def test_19_what_one_gpu_has_no_other_has(scene: Scene) -> None:
    """Board h100 lists modules, places, throttling and more GPU by GPU."""
    state = compile_state(load_board("h100"), Options(), {})
    library = scene.start(state)
    handles = [library.handle(index) for index in range(8)]
    assert [library.number("nvmlDeviceGetModuleId", handle) for handle in handles] == [7, 5, 6, 8, 1, 3, 4, 2]
    lost = [field(library, 74, index=index).value for index in range(8)]
    assert len(set(lost)) == 8
    assert [library.number("nvmlDeviceGetPcieReplayCounter", handle) for handle in handles][:3] == [150, 144, 174]


def test_20_no_two_boards_have_one_pci_id() -> None:
    ids = [state.devices[0].pci_device_id for state in every_board()]
    assert len(set(ids)) == len(ids)


def test_26_a_pid_on_two_gpus_has_each_gpus_name_there(scene: Scene) -> None:
    library = scene.start(node(*[runtime(processes=(ProcessSpec(7, "C", name, 1),)) for name in ("one", "two")]))
    for index, name in enumerate((b"one", b"two")):
        buffer, count = ctypes.create_string_buffer(4128), ctypes.c_uint(1)
        assert Slots(library)(213, library.handle(index), ctypes.byref(count), buffer) == SUCCESS
        assert buffer.raw[32:].split(b"\0")[0] == name


def test_30_power_is_told_by_field_and_scope(scene: Scene) -> None:
    """GPU, module and memory, mW; the numbers are written here, for the table of cells could lose them."""
    library = scene.start(compile_state(load_board("gb200"), Options(gpus=1), {}))
    gpu = {185: 165930, 186: 165930, 187: 200000, 188: 1200000, 189: 1200000, 190: 1200000, 192: 1200000}
    module = {185: 467170, 186: 467680, 187: 500000, 188: 2500000, 189: 2500000, 190: 2500000, 192: 2500000}
    assert {number: field(library, number, 0).value for number in gpu} == gpu
    assert {number: field(library, number, 1).value for number in module} == module
    assert field(library, 185, 2).value == 30260


@pytest.mark.parametrize("board", ["a100", "t4"])
def test_34_before_ada_there_is_no_margin_anywhere(scene: Scene, board: str) -> None:
    library = scene.start(compile_state(load_board(board), Options(gpus=1), {}))
    margin = ctypes.create_string_buffer(struct.pack("<I", 0x01000008), 8)
    assert library.code("nvmlDeviceGetMarginTemperature", library.handle(), margin) == NOT_SUPPORTED
    assert Slots(library).number(240, library.handle()) == -NOT_SUPPORTED
    assert {field(library, number).code for number in (193, 194, 195, 196)} == {NOT_SUPPORTED}


@pytest.mark.parametrize(
    ("name", "key"), [("Jpg", "jpeg"), ("Ofa", "ofa"), ("Encoder", "encoder"), ("Decoder", "decoder")]
)
def test_35_every_engine_has_its_utilisation(scene: Scene, name: str, key: str) -> None:
    library = scene.start(node(runtime({f"utilization.{key}": 17})))
    assert library.numbers(f"nvmlDeviceGet{name}Utilization", 2, library.handle()) == (17, 167000)


def test_36_no_function_of_a_value_is_left_to_the_general_refusal() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "native" / "nvml").glob("*.c"))
    written = set(re.findall(r"NVML_EXPORT nvmlReturn_t (nvml\w+)\(", sources))
    assert {name for cell in CELLS for name in cell.functions} - written == set()


def test_37_and_38_none_is_an_answer_and_not_supported_is_none(scene: Scene) -> None:
    library = scene.start(node(runtime(), runtime({"c2c.mode": 0, "virtualization.mode": 1})))
    modes = [library.number("nvmlDeviceGetVirtualizationMode", library.handle(index)) for index in range(2)]
    assert modes == [0, 1]
    out = ctypes.c_uint(9)
    codes = [library.code("nvmlDeviceGetC2cModeInfoV", library.handle(i), ctypes.byref(out)) for i in range(2)]
    assert (codes, out.value) == ([NOT_SUPPORTED, SUCCESS], 0)


def test_39_what_a_platform_lacks_is_told_from_the_first(scene: Scene) -> None:
    """B200: a host and a peer, but no chassis, slot or tray."""
    values: dict[str, Value] = {"platform.host_id": 1, "platform.peer_type": 1, "platform.module_id": 6}
    library = scene.start(node(runtime(values)))
    read = filled(library, "nvmlDeviceGetPlatformInfo", 44, 0x0200002C)
    assert read[4:36] == bytes(32)
    assert list(read[36:41]) == [0xFF, 0xFF, 1, 1, 6]


def test_46_where_no_switch_is_none_counts_its_links(scene: Scene) -> None:
    """GPUs linked to each other: nvidia-smi then counts the links between any two itself."""
    links = (LinkSpec(True, "gpu", "0000:11:00.0", 1),) * 2
    library = scene.start(node(runtime(links=links), runtime()))
    assert field(library, 91).value == 2
    assert field(library, 147).code == NOT_SUPPORTED


def test_48_every_gpu_has_links_of_its_own(scene: Scene) -> None:
    switch, peer = LinkSpec(True, "switch", ""), LinkSpec(True, "gpu", "0000:10:00.0", 0)
    library = scene.start(node(runtime(links=(switch,)), runtime(links=(peer, peer))))
    kinds = [library.number("nvmlDeviceGetNvLinkRemoteDeviceType", library.handle(index), 0) for index in range(2)]
    assert kinds == [2, 0]


def test_49_a_links_speed_is_not_rounded(scene: Scene) -> None:
    library = scene.start(node(runtime(links=(LinkSpec(True, "switch", ""),)), bandwidth_mbps=53125))
    assert field(library, 164, 0).value == 53125


def test_51_versions_are_the_drivers(scene: Scene) -> None:
    state = compile_state(load_board("gb200"), Options(driver_version="580.65.06"), {})
    library = scene.start(state)
    assert library.text("nvmlSystemGetDriverVersion") == "580.65.06"
    assert library.text("nvmlSystemGetNVMLVersion") == "13.580.65.06"


def test_54_memory_that_comes_into_use_shows_at_once(scene: Scene) -> None:
    total: dict[str, Value] = {"memory.total_bytes": 1000, "memory.reserved_bytes": 100}
    library = scene.start(node(runtime(total | {"memory.used_bytes": 0})))
    for used in (300, Gauge(400, 0)):
        scene.publish(node(runtime(total | {"memory.used_bytes": used})))
        number = used if isinstance(used, int) else used.base
        assert struct.unpack("<QQQ", filled(library, "nvmlDeviceGetMemoryInfo", 24))[2] == number + 100


STATUS_BESIDE_INIT = """
import ctypes, re, sys
def status():
    return re.findall(r"^(?:Threads|SigCgt):.*", open("/proc/self/status").read(), re.M)
before = status()
code = ctypes.CDLL(sys.argv[1]).nvmlInit_v2()
print(code, status() == before, len(before))
"""


def test_a_process_gets_no_thread_and_no_signal_handler(scene: Scene) -> None:
    scene.start(node(runtime()))
    words = [sys.executable, "-c", STATUS_BESIDE_INIT, str(LIBRARY)]
    done = subprocess.run(
        words, env={"SIMNODE_IMAGE": str(scene.path)}, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ["0", "True", "2"]


def test_more_than_eight_gpus_answer(scene: Scene) -> None:
    library: Library = scene.start(node(*[runtime()] * 64, devices=tuple(device(i, f"GPU-{i:08x}") for i in range(64))))
    assert library.number("nvmlDeviceGetCount_v2") == 64
    assert library.text("nvmlDeviceGetUUID", library.handle(63)) == "GPU-0000003f"
