"""MIG devices: found on their GPU, by UUID; what they answer; what becomes of them when they go."""

from __future__ import annotations

import ctypes

import pytest

from simnode.partitions import MIGGPU, MIGComputeInstance, MIGGPUInstance
from simnode.state import State
from tests.nvml.nodes import node, partitions, runtime
from tests.nvml_library.conftest import (
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    Handle,
    Library,
    Scene,
)

UUIDS = [f"MIG-0000000{i}-1111-2222-3333-444444444444" for i in range(4)]


def partitioned(*uuids: str) -> State:
    """Two GPUs, the second with a GPU instance of its own for each MIG device."""
    instances = tuple(MIGGPUInstance(i + 3, (MIGComputeInstance(0, uuid),)) for i, uuid in enumerate(uuids))
    return node(runtime(), runtime({"mig.mode_current": 1}), mig=partitions(MIGGPU(1, instances)))


def mig_device(library: Library, index: int, gpu: int = 1) -> Handle:
    """The MIG device at a place on a GPU."""
    found = Handle()
    library.call("nvmlDeviceGetMigDeviceHandleByIndex", library.handle(gpu), index, ctypes.byref(found))
    return found


def test_a_partitioned_gpu_lists_its_devices(scene: Scene) -> None:
    library = scene.start(partitioned(*UUIDS[:2]))
    for index in range(2):
        device = mig_device(library, index)
        assert library.text("nvmlDeviceGetUUID", device) == UUIDS[index]
        assert library.number("nvmlDeviceGetGpuInstanceId", device) == index + 3
        assert library.number("nvmlDeviceGetComputeInstanceId", device) == 0
        assert library.number("nvmlDeviceGetIndex", device) == index
        assert library.number("nvmlDeviceIsMigDeviceHandle", device) == 1


@pytest.mark.parametrize(("gpu", "index"), [(1, 2), (1, 7), (1, 8), (1, 1000), (0, 0)])
def test_where_there_is_none_the_iteration_ends(scene: Scene, gpu: int, index: int) -> None:
    """A device plugin takes NOT_FOUND for the end, anything else for a fault."""
    library = scene.start(partitioned(*UUIDS[:2]))
    out = ctypes.byref(Handle())
    assert library.code("nvmlDeviceGetMigDeviceHandleByIndex", library.handle(gpu), index, out) == NOT_FOUND


def test_a_uuid_finds_the_device_and_the_device_its_gpu(scene: Scene) -> None:
    library = scene.start(partitioned(*UUIDS[:2]))
    found, parent = Handle(), Handle()
    library.call("nvmlDeviceGetHandleByUUID", UUIDS[1].encode(), ctypes.byref(found))
    assert found.value == mig_device(library, 1).value
    library.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", found, ctypes.byref(parent))
    assert parent.value == library.handle(1).value
    code = library.code("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", parent, ctypes.byref(found))
    assert code == INVALID_ARGUMENT


def test_what_only_whole_gpus_have_is_not_supported(scene: Scene) -> None:
    library = scene.start(partitioned(*UUIDS[:2]))
    device, out = mig_device(library, 0), ctypes.create_string_buffer(96)
    for name in ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetSerial"):
        assert library.code(name, device, out, 96) == NOT_SUPPORTED
    whole = library.handle(1)
    for name in ("nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetAttributes_v2"):
        assert library.code(name, whole, out) == NOT_SUPPORTED


def test_a_mig_handle_dies_with_its_device_and_no_sooner(scene: Scene) -> None:
    library = scene.start(partitioned(*UUIDS[:2]))
    kept, gone = mig_device(library, 0), mig_device(library, 1)
    scene.publish(partitioned(UUIDS[0], UUIDS[3]))
    out = ctypes.create_string_buffer(96)
    assert library.code("nvmlDeviceGetUUID", kept, out, 96) == SUCCESS
    assert library.code("nvmlDeviceGetUUID", gone, out, 96) == GPU_IS_LOST
    assert library.text("nvmlDeviceGetUUID", mig_device(library, 1)) == UUIDS[3]


def test_a_lost_gpu_takes_its_mig_devices_along(scene: Scene) -> None:
    library = scene.start(partitioned(*UUIDS[:2]))
    device = mig_device(library, 0)
    scene.publish(node(runtime(), runtime(lost=GPU_IS_LOST), mig=partitioned(*UUIDS[:2]).mig))
    assert library.code("nvmlDeviceGetUUID", device, ctypes.create_string_buffer(96), 96) == GPU_IS_LOST
