"""Every plain getter and every field id of the table of cells reads its own cell, and gives the cell's refusal."""

from __future__ import annotations

import ctypes

import pytest

from simnode.nvml.cells import CELLS, Cell
from simnode.state import Refusal, Value
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import INSUFFICIENT_SIZE, INVALID_ARGUMENT, SUCCESS, Library, Refused, Scene

# The encoder takes these from the device's identity, whatever the values say.
IDENTITY = {"name", "uuid", "minor_number", "board_id", "numa_node", "pci.domain", "pci.bus", "pci.device"}

GETTERS = [
    pytest.param(cell, name, id=name) for cell in CELLS for name in cell.getters if name and cell.key not in IDENTITY
]
FIELDS = [
    pytest.param(cell, number, scope, letter, id=f"{number}/{scope}")
    for cell in CELLS
    for number, scope, letter in cell.fields
]


def distinct(cell: Cell) -> int | str:
    """A value that only this cell has."""
    place = CELLS.index(cell) + 1
    if cell.kind == "text":
        return f"text {place}"
    return {"word": place, "int": -place, "wide": place << 33, "counter": place << 33}.get(cell.kind, place)


def everywhere() -> dict[str, Value]:
    """Each cell's own value, so that a getter of the wrong cell is found out."""
    return {cell.key: distinct(cell) for cell in CELLS if cell.key not in IDENTITY and cell.kind != "guid"}


def get(library: Library, cell: Cell, name: str) -> int | str:
    """What the getter answers."""
    handle = library.handle()
    if cell.kind == "text":
        return library.text(name, handle)
    if cell.kind in ("wide", "counter"):
        return library.wide(name, handle)
    number = library.number(name, handle)
    return ctypes.c_int(number).value if cell.kind == "int" else number


@pytest.mark.parametrize(("cell", "name"), GETTERS)
def test_a_getter_reads_its_cell(scene: Scene, cell: Cell, name: str) -> None:
    library = scene.start(node(runtime(everywhere())))
    assert get(library, cell, name) == distinct(cell)


@pytest.mark.parametrize(("cell", "name"), GETTERS)
def test_a_getter_gives_the_cells_refusal_and_writes_nothing(scene: Scene, cell: Cell, name: str) -> None:
    library = scene.start(node(runtime({cell.key: Refusal(4)})))
    out = ctypes.create_string_buffer(b"untouched", 96)
    assert library.code(name, library.handle(), out, 96) == 4
    assert out.value == b"untouched"


class FieldValue(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("code", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    ]


def field(library: Library, number: int, scope: int = 0, index: int = 0) -> FieldValue:
    """One field value of one device, the first if nothing else is said."""
    batch = (FieldValue * 1)(FieldValue(number, scope))
    library.call("nvmlDeviceGetFieldValues", library.handle(index), 1, batch)
    return batch[0]


@pytest.mark.parametrize(("cell", "number", "scope", "letter"), FIELDS)
def test_a_field_reads_its_cell(scene: Scene, cell: Cell, number: int, scope: int, letter: str) -> None:
    library = scene.start(node(runtime(everywhere()), driver="620.10"))
    read = field(library, number, 0xDEAD if scope < 0 else scope)
    expected = distinct(cell)
    assert isinstance(expected, int)
    assert read.code == SUCCESS
    assert read.type == {"u": 1, "i": 5, "l": 3}[letter]
    assert read.value == (expected & 0xFFFFFFFF if letter == "i" else expected)
    assert read.timestamp > 10**15


def test_a_field_of_another_scope_is_none(scene: Scene) -> None:
    library = scene.start(node(runtime({"power.current_draw_mw": 7})))
    assert [field(library, 186, scope).code for scope in (0, 1, 3)] == [SUCCESS, 3, 3]


def test_a_batch_answers_each_field_by_itself(scene: Scene) -> None:
    library = scene.start(node(runtime({"power.current_draw_mw": 7, "thermal.temperature_memory_c": Refusal(999)})))
    batch = (FieldValue * 4)(FieldValue(186, 0), FieldValue(82, 12345), FieldValue(65000, 0), FieldValue(226, 0))
    library.call("nvmlDeviceGetFieldValues", library.handle(), 4, batch)
    assert [entry.code for entry in batch] == [SUCCESS, 999, 3, SUCCESS]
    assert batch[0].value == 7


@pytest.mark.parametrize("count", [0, -1])
def test_a_batch_of_nothing_is_refused(scene: Scene, count: int) -> None:
    library = scene.start(node(runtime()))
    assert library.code("nvmlDeviceGetFieldValues", library.handle(), count, FieldValue()) == INVALID_ARGUMENT


@pytest.mark.parametrize(("length", "code"), [(0, INSUFFICIENT_SIZE), (5, INSUFFICIENT_SIZE), (6, SUCCESS)])
def test_a_text_fits_with_its_nul_or_not_at_all(scene: Scene, length: int, code: int) -> None:
    library = scene.start(node(runtime({"vbios_version": "12345"})))
    out = ctypes.create_string_buffer(b"untouched", 96)
    assert library.code("nvmlDeviceGetVbiosVersion", library.handle(), out, length) == code
    assert out.value == (b"12345" if code == SUCCESS else b"untouched")
    assert out.raw[length:9] == b"untouched"[length:]


def test_a_text_that_fills_its_cell_is_read_whole(scene: Scene) -> None:
    library = scene.start(node(runtime({"vbios_version": "x" * 31})))
    assert library.text("nvmlDeviceGetVbiosVersion", library.handle()) == "x" * 31
    with pytest.raises(Refused):
        library.text("nvmlDeviceGetVbiosVersion", library.handle(), length=31)
