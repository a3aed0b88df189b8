"""Every built-in board through libcuda: what its profile says, and nothing refused that the profile has to tell."""

from __future__ import annotations

import pytest
from cuda.bindings.driver import CUdevice_attribute

from simnode.profile import Options, boards, compile_state, load_board
from tests.cuda.conftest import Scene

_A = CUdevice_attribute
READ = {
    _A.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: ("multiprocessor_count", 1),
    _A.CU_DEVICE_ATTRIBUTE_CLOCK_RATE: ("clocks.sm_max", 1000),
    _A.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: ("clocks.memory_max", 1000),
    _A.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: ("memory.memory_bus_width", 1),
}
TOLD = (
    _A.CU_DEVICE_ATTRIBUTE_ECC_ENABLED,
    _A.CU_DEVICE_ATTRIBUTE_COMPUTE_MODE,
    _A.CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
    _A.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
    _A.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    _A.CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
)


@pytest.mark.parametrize("board", boards())
def test_a_board_is_listed_as_its_profile_says(scene: Scene, board: str) -> None:
    state = compile_state(load_board(board), Options(), {}, generation=1)
    attributes = [which.value for which in (*READ, *TOLD)]
    row_of = f"[name(i), bus_id(i), *[attribute(which, i) for which in {attributes}]]"
    listed = scene.show(state, f"[{row_of} for i in range({len(state.devices)})]")
    for row, device, runtime in zip(listed, state.devices, state.runtime.devices, strict=True):
        values = dict(runtime.values)
        read = [scale * value if isinstance(value := values[key], int) else value for key, scale in READ.values()]
        assert row[: 2 + len(READ)] == [device.name, device.pci_bus_id.upper(), *read]
        assert all(isinstance(told, int) for told in row[2 + len(READ) :])
