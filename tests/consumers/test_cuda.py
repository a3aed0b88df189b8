"""Programs that list CUDA devices see the node's GPUs, and are refused where they would compute."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simnode.profile import Options, compile_state, load_board
from tests.consumers.conftest import Ended, Node

pytestmark = pytest.mark.consumer

BINDINGS = """
import json
from cuda.bindings import driver as cuda

def ask(answer):
    code, *values = answer
    assert code == cuda.CUresult.CUDA_SUCCESS, code
    return values[0] if values else None

def text(raw):
    return raw.partition(bytes(1))[0].decode()

ask(cuda.cuInit(0))
rows = []
for ordinal in range(ask(cuda.cuDeviceGetCount())):
    gpu = ask(cuda.cuDeviceGet(ordinal))
    kind = cuda.CUdevice_attribute
    rows.append([
        text(ask(cuda.cuDeviceGetName(96, gpu))), ask(cuda.cuDeviceGetUuid(gpu)).bytes.hex(),
        ask(cuda.cuDeviceTotalMem(gpu)), text(ask(cuda.cuDeviceGetPCIBusId(16, gpu))),
        ask(cuda.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu)),
        ask(cuda.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu)),
    ])
print(json.dumps([ask(cuda.cuDriverGetVersion()), rows]))
"""

COMPUTE = """
from cuda.bindings import driver as cuda
print(cuda.cuInit(0)[0].name)
gpu = cuda.cuDeviceGet(0)[1]
refused = {cuda.cuDevicePrimaryCtxRetain(gpu)[0], cuda.cuMemAlloc(1)[0], cuda.cuModuleLoadData(b"x")[0],
           cuda.cuStreamCreate(0)[0], cuda.cuDeviceGetDefaultMemPool(gpu)[0]}
print(*[error.name for error in refused])
print(cuda.cuGetErrorString(*refused)[1].decode())
"""


def expected(board: str = "h100", count: int | None = None) -> list[list[object]]:
    """What lists the devices: name, UUID, bytes, bus, major compute capability, multiprocessors."""
    state = compile_state(load_board(board), Options(gpus=count), {}, generation=1)
    rows: list[list[object]] = []
    for device, runtime in zip(state.devices, state.runtime.devices, strict=True):
        values = dict(runtime.values)
        reserved = values["memory.reserved_bytes"]
        assert isinstance(reserved, int)
        uuid = device.uuid.removeprefix("GPU-").replace("-", "")
        rows.append([device.name, uuid, device.memory_total_bytes - reserved, device.pci_bus_id.upper(),
                     device.compute_cap_major, values["multiprocessor_count"]])  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def devices() -> Iterator[Path]:
    """devices.c, compiled where every user can run it."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        output, source = Path(directory) / "devices", Path(__file__).with_name("devices.c")
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", output, source, "-ldl"], check=True)
        yield output


@pytest.fixture(scope="module")
def ended(anywhere: Node, devices: Path) -> dict[str, Ended]:
    """How each program ended, all in one node, which costs more than they do."""
    (_, uuid, *_) = expected()[2]
    visible = f"CUDA_VISIBLE_DEVICES=7,GPU-{str(uuid)[:8]}-0000-0000-0000-{str(uuid)[20:]}"
    commands: dict[str, list[str | Path]] = {
        "bindings": [sys.executable, "-c", BINDINGS],
        "compute": [sys.executable, "-c", COMPUTE],
        "c": ["env", *([] if anywhere.fallback else ["-i"]), devices],
        "visible": ["env", visible, devices],
    }
    return dict(zip(commands, anywhere.several(list(commands.values())), strict=True))


def output(ended: Ended) -> str:
    """What it printed, having ended well."""
    assert (ended.status, ended.errors) == (0, "")
    return ended.output


def test_cuda_bindings_list_the_devices_of_the_profile(ended: dict[str, Ended]) -> None:
    """In every kind of node, as every kind of user."""
    assert json.loads(output(ended["bindings"])) == [13000, expected()]


def test_cuda_bindings_meet_an_older_driver(ordinary: Node) -> None:
    """Its functions are looked up by the version that the driver has."""
    options = ("--board", "h100", "--gpus", "2", "--driver-version", "550.163.01")
    version, rows = json.loads(ordinary.output(sys.executable, "-c", BINDINGS, options=options))
    assert (version, rows) == (12040, expected(count=2))


def test_nothing_computes(ended: dict[str, Ended]) -> None:
    assert output(ended["compute"]).splitlines() == [
        "CUDA_SUCCESS",
        "CUDA_ERROR_NOT_SUPPORTED",
        "operation not supported",
    ]


def test_a_node_without_gpus_has_no_device(ordinary: Node) -> None:
    """cuInit says so, before anything can be listed."""
    script = "from cuda.bindings import driver as cuda; print(cuda.cuInit(0)[0].name)"
    options = ("--board", "h100", "--gpus", "0")
    assert ordinary.output(sys.executable, "-c", script, options=options) == "CUDA_ERROR_NO_DEVICE\n"


def test_a_program_in_c_lists_the_devices(ended: dict[str, Ended]) -> None:
    """By dlopen, in namespaces without any setting."""
    rows = [f"{name}, {uuid}, {size}, {bus}" for name, uuid, size, bus, *_ in expected()]
    assert output(ended["c"]).splitlines() == rows


def test_the_list_of_visible_devices_is_the_programs(ended: dict[str, Ended]) -> None:
    """CUDA_VISIBLE_DEVICES by index and by UUID, as schedulers set it."""
    chosen = [expected()[7][1], expected()[2][1]]
    assert [line.split(", ")[1] for line in output(ended["visible"]).splitlines()] == chosen
