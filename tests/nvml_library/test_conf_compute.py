"""Confidential computing: boards since Hopper say that they could and do not, older ones that they cannot."""

from __future__ import annotations

import ctypes
import struct

import pytest

from simnode.state import State, Value
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    SUCCESS,
    UNINITIALIZED,
    WRONG_TAG,
    Scene,
    filled,
)

SYSTEM = [
    pytest.param("nvmlSystemGetConfComputeCapabilities", (0xA5A5A5A5, 0xA5A5A5A5), (0, 1), id="capabilities"),
    pytest.param("nvmlSystemGetConfComputeState", (9, 9, 9), (0, 0, 0), id="state"),
    pytest.param("nvmlSystemGetConfComputeGpusReadyState", (9,), (0,), id="ready"),
    pytest.param("nvmlSystemGetConfComputeSettings", (0x01000014, 9, 9, 9, 9), (0x01000014, 0, 0, 0, 0), id="settings"),
]
MEMORY: dict[str, Value] = {"memory.total_bytes": 4096 << 10}


def with_gpus(*architectures: int) -> State:
    return node(*[runtime(MEMORY | {"architecture": architecture}) for architecture in architectures])


@pytest.mark.parametrize(("name", "before", "after"), SYSTEM)
def test_a_node_with_one_board_that_could_says_that_it_does_not(
    scene: Scene, name: str, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    library = scene.start(with_gpus(7, 9))
    buffer = (ctypes.c_uint * len(before))(*before)
    assert library.code(name, buffer) == SUCCESS
    assert tuple(buffer) == after
    assert library.code(name, None) == INVALID_ARGUMENT
    scene.publish(with_gpus(7, 8))
    assert library.code(name, buffer) == NOT_SUPPORTED
    library.stop()
    assert library.code(name, buffer) == UNINITIALIZED


def test_the_settings_carry_their_tag(scene: Scene) -> None:
    library = scene.start(with_gpus(9))
    assert library.code("nvmlSystemGetConfComputeSettings", (ctypes.c_uint * 6)(0x01000018)) == WRONG_TAG


def test_no_memory_is_protected(scene: Scene) -> None:
    library = scene.start(with_gpus(9))
    assert struct.unpack("<QQ", filled(library, "nvmlDeviceGetConfComputeMemSizeInfo", 16)) == (0, 4096)
    scene.publish(with_gpus(8))
    out = ctypes.create_string_buffer(16)
    assert library.code("nvmlDeviceGetConfComputeMemSizeInfo", library.handle(), out) == NOT_SUPPORTED
