"""The NVLink fabric's information in each of its versions."""

from __future__ import annotations

import ctypes
import struct

import pytest

from simnode.state import Value
from tests.nvml_library.conftest import (
    NOT_SUPPORTED,
    Scene,
    filled,
    one,
)

FABRIC: dict[str, Value] = {
    "fabric.cluster_uuid": "00112233-4455-6677-8899-aabbccddeeff",
    "fabric.clique_id": 7,
    "fabric.state": "completed",
    "fabric.status": 0,
    "fabric.health_mask": 0x1AA,
}


def test_fabric_information_ends_where_its_version_ends(scene: Scene) -> None:
    library = scene.start(one(FABRIC))
    cluster = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert filled(library, "nvmlDeviceGetGpuFabricInfo", 28)[:25] == struct.pack("<16sIIB", cluster, 0, 7, 3)
    second = struct.pack("<I16sIIB3xI", 0x02000024, cluster, 0, 7, 3, 0x1AA)
    assert filled(library, "nvmlDeviceGetGpuFabricInfoV", 36, 0x02000024) == second
    third = filled(library, "nvmlDeviceGetGpuFabricInfoV", 40, 0x03000028)
    assert third[4:36] == second[4:]
    assert third[36] == 1


@pytest.mark.parametrize(
    ("mask", "pinned", "summary"),
    [(0, 0, 0), (0x1AA, 0, 1), (0x1AA ^ 3, 0, 3), (0x1AA ^ 0x30, 0, 2), (0x1AA ^ 0xC, 0, 2), (0x3AA, 0, 2),
     (0x1AA, 2, 2)],
)  # fmt: skip
def test_the_health_summary_follows_from_the_mask_unless_pinned(
    scene: Scene, mask: int, pinned: int, summary: int
) -> None:
    library = scene.start(one({**FABRIC, "fabric.health_mask": mask, "fabric.health_summary": pinned}))
    assert filled(library, "nvmlDeviceGetGpuFabricInfoV", 40, 0x03000028)[36] == summary


def test_no_fabric_comes_before_a_wrong_tag(scene: Scene) -> None:
    library = scene.start(one({}))
    assert (
        library.code("nvmlDeviceGetGpuFabricInfoV", library.handle(), ctypes.create_string_buffer(64)) == NOT_SUPPORTED
    )


def test_the_fourth_layout_has_a_list_of_cliques_and_no_tag(scene: Scene) -> None:
    library = scene.start(one(FABRIC))
    read = filled(library, "nvmlDeviceGetGpuFabricInfo_v4", 548)
    assert read[:28] == struct.pack("<16sIB3xI", bytes.fromhex("00112233445566778899aabbccddeeff"), 0, 0, 7)
    assert read[28:532] == bytes(504)
    assert struct.unpack_from("<IB3xIB", read, 532) == (1, 3, 0x1AA, 1)
