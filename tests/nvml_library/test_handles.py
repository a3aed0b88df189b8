"""Handles: how a device is found, and what becomes of a handle when its device goes."""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable

import pytest

from simnode.nvml.exports import DEVICE_FIRST
from simnode.state import DeviceSpec, State
from tests.nvml.nodes import device, node, runtime
from tests.nvml_library.conftest import (
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    UNINITIALIZED,
    WRONG_TAG,
    Handle,
    Library,
    Scene,
)

GPU_1 = "GPU-00000001-1111-2222-3333-444444444444"


def lookup(library: Library, name: str, key: object) -> tuple[int, int | None]:
    """Code and address of what a look-up function gives."""
    found = Handle()
    code = library.code(name, key, ctypes.byref(found))
    return code, found.value


def three() -> State:
    return node(runtime(), runtime(), runtime())


@pytest.mark.parametrize(
    ("name", "key"),
    [
        pytest.param("nvmlDeviceGetHandleByIndex", 1, id="index, old"),
        pytest.param("nvmlDeviceGetHandleByUUID", GPU_1.encode(), id="uuid"),
        pytest.param("nvmlDeviceGetHandleBySerial", b"1650000000001", id="serial"),
        pytest.param("nvmlDeviceGetHandleByPciBusId", b"0000:11:00.0", id="bus id, old"),
        pytest.param("nvmlDeviceGetHandleByPciBusId_v2", b"0000:11:00.0", id="4 digits of domain"),
        pytest.param("nvmlDeviceGetHandleByPciBusId_v2", b"00000000:11:00.0", id="8 digits"),
        pytest.param("nvmlDeviceGetHandleByPciBusId_v2", b"11:00.0", id="no domain"),
        pytest.param("nvmlDeviceGetHandleByPciBusId_v2", b"0:11:0", id="as short as can be"),
    ],
)
def test_every_way_leads_to_the_same_handle(scene: Scene, name: str, key: object) -> None:
    library = scene.start(three())
    assert lookup(library, name, key) == (SUCCESS, library.handle(1).value)


@pytest.mark.parametrize("text", ["0000:AB:1f.0", "0000:ab:1F.0"])
def test_a_bus_id_may_be_in_any_case(scene: Scene, text: str) -> None:
    spec = DeviceSpec(
        **{**{name: getattr(device(0), name) for name in DeviceSpec.__struct_fields__}, "pci_bus_id": "0000:ab:1f.0"}
    )
    library = scene.start(node(runtime(), devices=(spec,)))
    assert lookup(library, "nvmlDeviceGetHandleByPciBusId_v2", text.encode())[0] == SUCCESS


@pytest.mark.parametrize(
    ("name", "key", "code"),
    [
        ("nvmlDeviceGetHandleByIndex_v2", 3, INVALID_ARGUMENT),
        ("nvmlDeviceGetHandleByIndex_v2", 0xFFFFFFFF, INVALID_ARGUMENT),
        ("nvmlDeviceGetHandleByUUID", GPU_1[:-1].encode(), NOT_FOUND),
        ("nvmlDeviceGetHandleByUUID", b"", NOT_FOUND),
        ("nvmlDeviceGetHandleByUUID", b"MIG-00000000-0000-0000-0000-000000000000", NOT_FOUND),
        ("nvmlDeviceGetHandleByUUID", None, INVALID_ARGUMENT),
        ("nvmlDeviceGetHandleBySerial", b"7", NOT_FOUND),
        ("nvmlDeviceGetHandleByPciBusId_v2", b"0000:11:00.1", NOT_FOUND),
        ("nvmlDeviceGetHandleByPciBusId_v2", b"0001:11:00.0", NOT_FOUND),
        *(("nvmlDeviceGetHandleByPciBusId_v2", text, INVALID_ARGUMENT)
          for text in (b"", b"11", b":", b"0:11:", b"11:0.", b"x:y.z", b"0:0:0:0", b"11:0.0 ", b"123456789:0:0.0")),
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_found(scene: Scene, name: str, key: object, code: int) -> None:
    assert lookup(scene.start(three()), name, key)[0] == code


class Uuid(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("type", ctypes.c_uint), ("value", ctypes.c_char * 41)]


@pytest.mark.parametrize(
    ("tag", "kind", "value", "code"),
    [
        pytest.param(0x01000034, 1, GPU_1.encode(), SUCCESS, id="ascii"),
        pytest.param(0x01000034, 2, uuid.UUID(GPU_1[4:]).bytes, SUCCESS, id="binary"),
        pytest.param(0x01000034, 3, GPU_1.encode(), INVALID_ARGUMENT, id="other kind"),
        pytest.param(0x02000034, 1, GPU_1.encode(), WRONG_TAG, id="other tag"),
    ],
)
def test_a_uuid_may_come_in_a_struct(scene: Scene, tag: int, kind: int, value: bytes, code: int) -> None:
    library = scene.start(three())
    key = Uuid(tag, kind)
    ctypes.memmove(ctypes.addressof(key) + 8, value, len(value))
    expected = library.handle(1).value if code == SUCCESS else None
    assert lookup(library, "nvmlDeviceGetHandleByUUIDV", ctypes.byref(key)) == (code, expected)


def test_a_serial_that_two_boards_share_names_neither(scene: Scene) -> None:
    library = scene.start(node(runtime({"serial": "7"}), runtime({"serial": "7"})))
    assert lookup(library, "nvmlDeviceGetHandleBySerial", b"7")[0] == INVALID_ARGUMENT


def _others(library: Library, handle: Handle, *codes: int) -> dict[str, int]:
    """The functions that answer something else for this device, all other arguments null."""
    answers = {name: library.code(name, handle, *[None] * 6) for name in DEVICE_FIRST}
    return {name: code for name, code in answers.items() if code not in codes}


def test_before_init_every_function_says_so(scene: Scene) -> None:
    handle = scene.start(three()).handle()
    scene.library.stop()
    assert _others(scene.library, handle, UNINITIALIZED) == {}


@pytest.mark.parametrize("offset", [None, 1, 4, -4, 1 << 20, 1 << 40], ids=str)
def test_a_pointer_that_is_no_handle_is_refused_and_never_followed(scene: Scene, offset: int | None) -> None:
    library = scene.start(three())
    first = library.handle(0).value or 0
    handle = Handle(None if offset is None else first + offset)
    assert _others(library, handle, INVALID_ARGUMENT) == {}


def test_null_arguments_are_refused(scene: Scene) -> None:
    library = scene.start(three())
    assert _others(library, library.handle(), INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION) == {}


@pytest.mark.parametrize("code", [15, 16, 999])
def test_every_function_refuses_a_lost_device(scene: Scene, code: int) -> None:
    library = scene.start(three())
    handle = library.handle(1)
    scene.publish(node(runtime(), runtime(lost=code), runtime()))
    assert _others(library, handle, code) == {}
    assert library.code("nvmlDeviceGetName", library.handle(0), ctypes.create_string_buffer(96), 96) == SUCCESS


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("nvmlDeviceGetHandleByIndex_v2", 1),
        ("nvmlDeviceGetHandleByUUID", GPU_1.encode()),
        ("nvmlDeviceGetHandleByPciBusId_v2", b"11:00.0"),
        ("nvmlDeviceGetHandleBySerial", b"1650000000001"),
    ],
)
def test_who_looks_a_lost_device_up_learns_that_it_is_lost(scene: Scene, name: str, key: object) -> None:
    library = scene.start(node(runtime(), runtime(lost=GPU_IS_LOST), runtime()))
    assert lookup(library, name, key)[0] == GPU_IS_LOST


def _gone() -> State:
    return node(runtime())


def _replaced() -> State:
    return node(runtime(), runtime(), devices=(device(0), device(1, "GPU-ffffffff-1111-2222-3333-444444444444")))


@pytest.mark.parametrize("change", [_gone, _replaced])
def test_a_handle_dies_with_its_device(scene: Scene, change: Callable[[], State]) -> None:
    library = scene.start(three())
    handle = library.handle(1)
    scene.publish(change())
    assert _others(library, handle, GPU_IS_LOST) == {}
    assert lookup(library, "nvmlDeviceGetHandleByIndex_v2", 1)[0] == GPU_IS_LOST
    assert library.number("nvmlDeviceGetCount_v2") == 3


def test_a_device_that_comes_back_is_another_one(scene: Scene) -> None:
    library = scene.start(three())
    handle = library.handle(1)
    scene.publish(node(runtime()))
    scene.publish(three())
    assert library.code("nvmlDeviceGetIndex", handle, ctypes.byref(ctypes.c_uint())) == GPU_IS_LOST
    library.call("nvmlShutdown")
    library.call("nvmlInit_v2")
    assert library.number("nvmlDeviceGetIndex", library.handle(1)) == 1
    assert library.code("nvmlDeviceGetIndex", handle, ctypes.byref(ctypes.c_uint())) == GPU_IS_LOST
