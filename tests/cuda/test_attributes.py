"""cuDeviceGetAttribute: the image's values, a compute capability's limits, and a refusal for what nobody knows."""

from __future__ import annotations

import re

import msgspec
import pytest
from cuda.bindings.driver import CUdevice_attribute

from simnode.state import RootComplex, Value
from tests.cuda.conftest import INVALID_VALUE, NOT_SUPPORTED, ROOT, Scene
from tests.nvml.nodes import device, node, runtime

CODES = {name.removeprefix("CU_DEVICE_ATTRIBUTE_"): int(code) for name, code in CUdevice_attribute.__members__.items()}

H100: dict[str, Value] = {
    "multiprocessor_count": 132,
    "clocks.sm_max": 1980,
    "clocks.memory_max": 2619,
    "memory.memory_bus_width": 5120,
    "ecc.mode_current": "enabled",
    "compute_mode": "exclusive_process",
    "addressing_mode": "hmm",
    "c2c.mode": "disabled",
}
READ = {
    "CLOCK_RATE": 1980000,
    "MULTIPROCESSOR_COUNT": 132,
    "COMPUTE_MODE": 3,
    "ECC_ENABLED": 1,
    "PCI_BUS_ID": 0x10,
    "PCI_DEVICE_ID": 0,
    "PCI_DOMAIN_ID": 0,
    "MEMORY_CLOCK_RATE": 2619000,
    "GLOBAL_MEMORY_BUS_WIDTH": 5120,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MULTI_GPU_BOARD": 0,
    "HOST_NATIVE_ATOMIC_SUPPORTED": 0,
    "PAGEABLE_MEMORY_ACCESS": 1,
    "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES": 0,
    "GPU_PCI_DEVICE_ID": 0x233010DE,
    "GPU_PCI_SUBSYSTEM_ID": 0x16C110DE,
    "NUMA_CONFIG": 0,
    "HOST_NUMA_ID": -1,
    "MAX_THREADS_PER_BLOCK": 1024,
    "WARP_SIZE": 32,
    "L2_CACHE_SIZE": [NOT_SUPPORTED],
    "ASYNC_ENGINE_COUNT": [NOT_SUPPORTED],
    "NUMA_ID": [NOT_SUPPORTED],
}


def attributes(*names: str) -> str:
    return f"[attribute(which) for which in {[CODES[name] for name in names]}]"


def test_what_an_h100_answers(scene: Scene) -> None:
    answers = scene.show(node(runtime(H100)), attributes(*READ))
    assert dict(zip(READ, answers, strict=True)) == READ


def test_a_gpu_with_memory_of_its_own_node(scene: Scene) -> None:
    """As in a GB200: the GPU's memory is a NUMA node, and both sides use the host's page tables."""
    state = node(
        runtime({"numa_node": 4, "addressing_mode": "ats", "c2c.mode": "enabled"}),
        roots=(RootComplex("pci0000:00", 1, ("0000:10:00.0",), "0-3"),),
    )
    names = (
        "NUMA_CONFIG",
        "NUMA_ID",
        "HOST_NUMA_ID",
        "PAGEABLE_MEMORY_ACCESS",
        "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES",
        "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST",
        "HOST_NATIVE_ATOMIC_SUPPORTED",
    )
    assert scene.show(state, attributes(*names)) == [1, 4, 1, 1, 1, 1, 1]


LIMITS = (
    "MAX_THREADS_PER_MULTIPROCESSOR",
    "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "RESERVED_SHARED_MEMORY_PER_BLOCK",
    "CLUSTER_LAUNCH",
    "MEM_SYNC_DOMAIN_COUNT",
)


@pytest.mark.parametrize(
    ("major", "minor", "answer"),
    [
        pytest.param(7, 5, [1024, 16, 65536, 65536, 0, 0, 1], id="t4"),
        pytest.param(8, 0, [2048, 32, 167936, 166912, 1024, 0, 1], id="a100"),
        pytest.param(8, 9, [1536, 24, 102400, 101376, 1024, 0, 1], id="l40s"),
        pytest.param(9, 0, [2048, 32, 233472, 232448, 1024, 1, 4], id="h100"),
        pytest.param(10, 0, [2048, 32, 233472, 232448, 1024, 1, 4], id="b200"),
        pytest.param(10, 3, [2048, 32, 233472, 232448, 1024, 1, 4], id="gb300"),
        pytest.param(42, 0, [*[[NOT_SUPPORTED]] * 5, 1, 4], id="one-that-nobody-knows"),
    ],
)
def test_the_limits_of_a_compute_capability(scene: Scene, major: int, minor: int, answer: list[object]) -> None:
    one = msgspec.structs.replace(device(0), compute_cap_major=major, compute_cap_minor=minor)
    assert scene.show(node(runtime(), devices=(one,)), attributes(*LIMITS)) == answer


def test_what_is_no_attribute_is_an_invalid_value(scene: Scene) -> None:
    """Every number that is one answers something or that it is not known."""
    answers = scene.show(node(runtime()), f"[attribute(which) for which in (0, -1, {CODES['MAX']}, 9999)]")
    assert answers == [[INVALID_VALUE]] * 4
    known = sorted({code for name, code in CODES.items() if name != "MAX"})
    answers = scene.show(node(runtime(H100)), f"[attribute(which) for which in {known}]")
    assert all(answer == [NOT_SUPPORTED] or isinstance(answer, int) for answer in answers)
    assert sum(isinstance(answer, int) for answer in answers) > 100


def test_the_numbers_are_those_of_the_real_api() -> None:
    """Names and numbers of attributes.h."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "native/cuda/attributes.h").read_text(), flags=re.S)
    number, ours = 0, {}
    for name, value in re.findall(r"^ +ATTR_(\w+)(?: = (\d+))?,", text, re.M):
        number = int(value) if value else number + 1
        ours[name] = number
    assert ours.pop("COUNT") == CODES["MAX"]
    renamed = {"VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED": "VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED"}
    assert len(ours) > 100
    assert {name: CODES.get(renamed.get(name, name)) for name in ours} == ours


def test_older_questions_have_the_same_answers(scene: Scene) -> None:
    """cuDeviceGetProperties and cuDeviceComputeCapability, from before there were attributes."""
    program = """[cuda.cuDeviceGetProperties(byref(old := (c_int * 14)()), 0), list(old),
        cuda.cuDeviceComputeCapability(byref(major := c_int()), byref(minor := c_int()), 0),
        major.value, minor.value]"""
    names = (
        "MAX_THREADS_PER_BLOCK", "MAX_BLOCK_DIM_X", "MAX_BLOCK_DIM_Y", "MAX_BLOCK_DIM_Z", "MAX_GRID_DIM_X",
        "MAX_GRID_DIM_Y", "MAX_GRID_DIM_Z", "MAX_SHARED_MEMORY_PER_BLOCK", "TOTAL_CONSTANT_MEMORY", "WARP_SIZE",
        "MAX_PITCH", "MAX_REGISTERS_PER_BLOCK", "CLOCK_RATE", "TEXTURE_ALIGNMENT",
    )  # fmt: skip
    state = node(runtime(H100))
    new = scene.show(state, attributes(*names))
    assert scene.show(state, program) == [0, new, 0, 9, 0]
