"""The table that nvidia-smi asks for: its form, its known slots, and that no other slot touches anything."""

from __future__ import annotations

import ctypes
import struct

import pytest

from simnode.nvml.exports import EXPORTS
from simnode.state import Counter, ProcessSpec, Refusal
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import INVALID_ARGUMENT, NO_PERMISSION, NOT_SUPPORTED, SUCCESS, Library, Scene
from tests.nvml_library.test_cells import FieldValue

GUID = bytes.fromhex("c4fe3e6cc98f6c4ea327ee696e12f7c4")
KNOWN = {12, 20, 23, 26, 72, 75, 81, 108, 138, 145, 165, 168, 169, 182, 183, 184, 192, 193, 194, 195, 196, 213, 214,
         215, 223, 225, 226, 230, 231, 237, 240, 241, 242, 243, 244, 249, 250, 251}  # fmt: skip
SLOTS = 256


class Slots:
    """The table's functions by number."""

    def __init__(self, library: Library) -> None:
        table = ctypes.POINTER(ctypes.c_size_t)()
        library.call("nvmlInternalGetExportTable", ctypes.byref(table), GUID)
        self.size = table[0]
        self.words = table[1 : self.size // 8]

    def __call__(self, number: int, *arguments: object) -> int:
        return int(ctypes.CFUNCTYPE(ctypes.c_int)(self.words[number - 1])(*arguments))

    def number(self, number: int, *arguments: object) -> int:
        """What a slot writes into its last argument, or its refusal's code, negative."""
        out = ctypes.c_uint(0xDEADBEEF)
        code = self(number, *arguments, ctypes.byref(out))
        return out.value if code == SUCCESS else -code


def test_the_table_is_whole_and_tells_its_size(scene: Scene) -> None:
    slots = Slots(scene.start(node(runtime())))
    assert slots.size == SLOTS * 8
    assert all(slots.words)


def test_another_table_is_not_there(scene: Scene) -> None:
    library = scene.start(node(runtime()))
    out = ctypes.c_void_p()
    assert library.code("nvmlInternalGetExportTable", ctypes.byref(out), bytes(16)) == NOT_SUPPORTED
    assert library.code("nvmlInternalGetExportTable", None, GUID) == INVALID_ARGUMENT


@pytest.mark.parametrize("number", sorted(set(range(1, SLOTS)) - KNOWN))
def test_a_slot_that_is_not_known_writes_nothing(library: Library, number: int) -> None:
    buffer = ctypes.create_string_buffer(b"\xa5" * 4096, 4096)
    assert Slots(library)(number, buffer, buffer, buffer, buffer) == NOT_SUPPORTED
    assert buffer.raw == b"\xa5" * 4096


def test_a_bus_id_is_parsed(scene: Scene) -> None:
    slots = Slots(scene.start(node(runtime())))
    outs = [ctypes.c_uint(99) for _ in range(4)]
    assert slots(12, b"0001:aB:1F.2", *map(ctypes.byref, outs)) == SUCCESS
    assert [out.value for out in outs] == [1, 0xAB, 0x1F, 2]
    assert slots(12, b"nonsense", *map(ctypes.byref, outs)) == INVALID_ARGUMENT


def test_an_index_has_an_address(scene: Scene) -> None:
    slots = Slots(scene.start(node(runtime(), runtime())))
    outs = [ctypes.c_uint(99) for _ in range(3)]
    assert slots(75, 1, *map(ctypes.byref, outs)) == SUCCESS
    assert [out.value for out in outs] == [0, 0x11, 0]
    text = ctypes.create_string_buffer(34)
    assert slots(81, 1, text, 34) == SUCCESS
    assert text.value == b"00000000:11:00.0"
    assert slots(81, 2, text, 34) == INVALID_ARGUMENT


def test_the_matrix_never_fails(scene: Scene) -> None:
    slots = Slots(scene.start(node(runtime(), runtime())))
    ids = (b"00000000:10:00.0", b"00000000:11:00.0", b"00000000:99:00.0", b"nonsense")
    assert {slots.number(23, a, b) >= 0 for a in ids for b in ids} == {True}


@pytest.mark.parametrize(
    ("number", "key", "value"),
    [(108, "power.enforced_limit_mw", 700000), (230, "pcie.host_max_link_gen", 5), (242, "addressing_mode", 1),
     (243, "sparse_operation_mode", 1), (249, "sparse_operation_mode", 1)],
)  # fmt: skip
def test_a_slot_reads_its_cell(scene: Scene, number: int, key: str, value: int) -> None:
    library = scene.start(node(runtime({key: value})))
    assert Slots(library).number(number, library.handle()) == value
    scene.publish(node(runtime({key: Refusal(4)})))
    assert Slots(library).number(number, library.handle()) == -4


@pytest.mark.parametrize(("number", "key"), [(231, "gpu_part_number"), (237, "gpu_fru_part_number")])
def test_a_part_number_is_text(scene: Scene, number: int, key: str) -> None:
    library = scene.start(node(runtime({key: "2330-885-A1"})))
    out = ctypes.create_string_buffer(0x50)
    assert Slots(library)(number, library.handle(), out, 0x50) == SUCCESS
    assert out.value == b"2330-885-A1"


class Settings(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint), ("what", ctypes.c_uint), ("value", ctypes.c_uint), ("behind", ctypes.c_uint)]


@pytest.mark.parametrize(
    ("number", "architecture", "expected"),
    [(193, 7, (0, 0)), (194, 9, (0, 5)), (195, 9, (0, 0)), (194, 10, None), (195, 7, None)],
    ids=["policies", "slider limits", "sliders", "no slider on blackwell", "no slider on ampere"],
)
def test_settings_are_listed(scene: Scene, number: int, architecture: int, expected: tuple[int, int] | None) -> None:
    library = scene.start(node(runtime({"architecture": architecture})))
    settings = Settings(behind=99)
    code = Slots(library)(number, library.handle(), ctypes.byref(settings))
    assert code == (NOT_SUPPORTED if expected is None else SUCCESS)
    assert (settings.count, settings.what, settings.value, settings.behind) == (
        (0, 0, 0, 99) if expected is None else (1, *expected, 99)
    )


@pytest.mark.parametrize(
    ("number", "key"),
    [(192, "name"), (196, "architecture"), (244, "sparse_operation_mode"), (250, "sparse_operation_mode"),
     (251, "persistence_mode")],
)  # fmt: skip
def test_a_setting_is_the_administrators(scene: Scene, number: int, key: str) -> None:
    library = scene.start(node(runtime({key: 9 if key == "architecture" else 1} if key != "name" else {})))
    buffer = ctypes.create_string_buffer(64)
    assert Slots(library)(number, library.handle(), buffer, buffer) == NO_PERMISSION
    assert buffer.raw == bytes(64)


def test_a_reset_goes_as_far_as_the_act_itself(scene: Scene) -> None:
    library = scene.start(node(runtime()))
    slots, handle = Slots(library), library.handle()
    assert slots.number(20, handle) == 0
    assert slots.number(169) == 0
    group, count = ctypes.c_void_p(), ctypes.c_uint(99)
    assert slots(182, ctypes.byref(group), ctypes.byref(handle), 1, 1) == SUCCESS
    assert slots(183, group, None, ctypes.byref(count)) == SUCCESS
    assert count.value == 0
    assert slots(184, group) == SUCCESS
    assert slots(168, 1, ctypes.byref(handle)) == NO_PERMISSION


def test_a_violation_time_is_of_sixteen_bytes(scene: Scene) -> None:
    """nvidia-smi 550 has no room for more."""
    key = "clocks_throttle_reasons.counters.sw_thermal_slowdown_us"
    library = scene.start(node(runtime({key: Counter(7, 0, 0)})))
    buffer = ctypes.create_string_buffer(b"\xa5" * 24, 24)
    assert Slots(library)(138, library.handle(), buffer) == SUCCESS
    assert struct.unpack_from("<QQ", buffer)[1] == 7000
    assert buffer.raw[16:] == b"\xa5" * 8


def test_internal_fields_tell_the_reset_state(scene: Scene) -> None:
    library = scene.start(node(runtime({"gpu_reset.required": 1, "gpu_reset.drain_recommended": Refusal(3)})))
    batch = (FieldValue * 3)(FieldValue(1), FieldValue(4), FieldValue(5))
    assert Slots(library)(165, library.handle(), 3, batch) == SUCCESS
    assert [(entry.code, entry.value) for entry in batch] == [(3, 0), (SUCCESS, 1), (3, 0)]


LISTED = (ProcessSpec(1, "C", "compute", 10), ProcessSpec(2, "G", "graphics", 20), ProcessSpec(3, "C+G", "both", 30))


@pytest.mark.parametrize(("number", "pids"), [(213, [1, 3]), (214, []), (215, [2, 3])])
def test_process_lists_have_names_and_are_cut_to_the_room(scene: Scene, number: int, pids: list[int]) -> None:
    library = scene.start(node(runtime(processes=LISTED)))
    buffer = ctypes.create_string_buffer(b"\xa5" * 4128 * 4, 4128 * 4)
    for room in (250, 1, 0):
        count = ctypes.c_uint(room)
        assert Slots(library)(number, library.handle(), ctypes.byref(count), buffer) == SUCCESS
        assert count.value == min(room, len(pids))
        rows = [buffer.raw[4128 * i : 4128 * (i + 1)] for i in range(count.value)]
        assert [struct.unpack_from("<I", row)[0] for row in rows] == pids[:room]
        for row in rows:
            process = next(process for process in LISTED if process.pid == row[0])
            assert row[32 : 32 + len(process.name) + 1] == process.name.encode() + b"\0"


def test_the_table_is_no_secret_export() -> None:
    assert "nvmlInternalGetExportTable" in EXPORTS
