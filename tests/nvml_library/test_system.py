"""What belongs to the system: the driver's branch, the texts of codes, and counts of what no simulated node has."""

from __future__ import annotations

import ctypes
import struct

import pytest

from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    INSUFFICIENT_SIZE,
    INVALID_ARGUMENT,
    LIBRARY,
    SUCCESS,
    UNINITIALIZED,
    WRONG_TAG,
    Library,
    Scene,
)

NONE = ["nvmlUnitGetCount", "nvmlSystemGetHicVersion", "nvmlGetExcludedDeviceCount", "nvmlGetBlacklistDeviceCount"]
BRANCH_TAG = 0x01000054


@pytest.mark.parametrize("name", NONE)
def test_what_no_node_has_counts_as_none(scene: Scene, name: str) -> None:
    """The one that fills a list is asked without one."""
    library = scene.start(node(runtime()))
    count = ctypes.c_uint(7)
    assert (library.code(name, ctypes.byref(count), None), count.value) == (SUCCESS, 0)
    assert library.code(name, None, None) == INVALID_ARGUMENT
    library.stop()
    assert library.code(name, ctypes.byref(count), None) == UNINITIALIZED


@pytest.mark.parametrize(
    ("driver", "branch"), [("535.261.03", b"r535_00"), ("580.105.08", b"r580_00"), ("1000.1", b"r1000_00")]
)
def test_a_release_has_a_branch(scene: Scene, driver: str, branch: bytes) -> None:
    library = scene.start(node(runtime(), driver=driver))
    out = ctypes.create_string_buffer(struct.pack("<I", BRANCH_TAG) + b"?" * 80, 88)
    library.call("nvmlSystemGetDriverBranch", out, 80)
    assert struct.unpack("<I80s", out.raw[:84])[1].partition(b"\0")[0] == branch
    assert out.raw[84:] == bytes(4)


@pytest.mark.parametrize(
    ("tag", "length", "code"),
    [
        pytest.param(BRANCH_TAG, 8, SUCCESS, id="just long enough"),
        pytest.param(BRANCH_TAG, 1 << 20, SUCCESS, id="longer than there is room"),
        pytest.param(BRANCH_TAG, 7, INSUFFICIENT_SIZE, id="no room for the end"),
        pytest.param(BRANCH_TAG, 0, INSUFFICIENT_SIZE, id="no room"),
        pytest.param(0x02000054, 80, WRONG_TAG, id="another version"),
        pytest.param(None, 80, INVALID_ARGUMENT, id="nowhere"),
    ],
)
def test_a_branch_needs_its_struct_and_room(scene: Scene, tag: int | None, length: int, code: int) -> None:
    library = scene.start(node(runtime()))
    out = None if tag is None else ctypes.create_string_buffer(struct.pack("<I", tag), 84)
    assert library.code("nvmlSystemGetDriverBranch", out, length) == code
    if out is not None and code != SUCCESS:
        assert out.raw[4:] == bytes(80)


@pytest.mark.parametrize("code", [31, 998, 1000, -1, 1 << 31])
def test_a_code_that_there_is_not_has_the_text_of_an_unknown_error(library: Library, code: int) -> None:
    """nvmlErrorString never gives a null pointer."""
    assert library.error_text(code) == library.error_text(999) == "Unknown Error"


def test_a_text_stays_where_it_is(scene: Scene) -> None:
    """Callers keep the pointer, across nvmlShutdown too."""
    texts = ctypes.CDLL(str(LIBRARY)).nvmlErrorString
    texts.restype = ctypes.c_void_p
    library = scene.start(node(runtime()))
    before = texts(15)
    library.stop()
    assert (texts(15), ctypes.string_at(before)) == (before, b"GPU is lost")
