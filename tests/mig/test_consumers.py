"""Real programs on a partitioned node: nvidia-smi 550 in every view that shows MIG, and pynvml."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from simnode.state import State
from tests.conftest import Obtain
from tests.consumers.conftest import Ended, Node
from tests.mig.documents import compiled, document

pytestmark = pytest.mark.consumer

SECTION = (
    "{gpus: [{index: 0, gpu_instances: [{profile: 3g.40gb, compute_instances: [2c.3g.40gb, 1c.3g.40gb]}, "
    "{profile: 2g.20gb}, {profile: 1g.10gb+me}]}, {index: 1}]}"
)
DRIVER = "550.163.01"
VIEWS = ("-L", "", "-q -x", "mig -lgi", "mig -lci", "mig -lgip", "mig -lgipp", "mig -lcip", "mig -lcipp", "dmon -c 1")
ERRORS = re.compile(
    r"ERR!|Unknown Error|Function Not Found|Invalid Argument|Insufficient|Not Found|Uninitialized|mismatch"
)
ENUMERATE = """
import json, pynvml as n
n.nvmlInit()
found = []
for gpu in range(n.nvmlDeviceGetCount()):
    device = n.nvmlDeviceGetHandleByIndex(gpu)
    for index in range(n.nvmlDeviceGetMaxMigDeviceCount(device)):
        try:
            mig = n.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
        except n.NVMLError_NotFound:
            break
        uuid = n.nvmlDeviceGetUUID(mig)
        assert n.nvmlDeviceIsMigDeviceHandle(mig) and not n.nvmlDeviceIsMigDeviceHandle(device)
        assert n.nvmlDeviceGetUUID(n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)) == n.nvmlDeviceGetUUID(device)
        assert n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByUUID(uuid)) == uuid
        attributes, memory = n.nvmlDeviceGetAttributes(mig), n.nvmlDeviceGetMemoryInfo(mig)
        assert memory.total == attributes.memorySizeMB << 20
        try:
            n.nvmlDeviceGetUtilizationRates(mig)
        except n.NVMLError_NotSupported:
            pass
        found.append([
            gpu, n.nvmlDeviceGetGpuInstanceId(mig), n.nvmlDeviceGetComputeInstanceId(mig), uuid,
            n.nvmlDeviceGetName(mig), attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount,
        ])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def state() -> State:
    """What the node is compiled to."""
    return compiled("h100", SECTION, gpus=3, driver=DRIVER)


@pytest.fixture(scope="module")
def options() -> Iterator[tuple[str, ...]]:
    """How the node is started, from a profile that everybody can read."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "profile.yaml")
        profile.write_bytes(document("h100", SECTION).raw)
        Path(folder).chmod(0o755)
        yield "--profile", str(profile), "--gpus", "3", "--driver-version", DRIVER


@pytest.fixture(scope="module")
def shown(ordinary: Node, program: Obtain, options: tuple[str, ...]) -> dict[str, Ended]:
    """Every view of the real program."""
    smi = program("nvidia-smi-550").path
    commands: list[list[str | Path]] = [[smi, *view.split()] for view in VIEWS]
    return dict(zip(VIEWS, ordinary.several(commands, options=options), strict=True))


def uuids(state: State) -> list[str]:
    """Of all MIG devices, in NVML's order."""
    instances = [instance for gpu in state.mig.gpus for instance in gpu.gpu_instances]
    return [compute.uuid for instance in instances for compute in instance.compute_instances]


def rows(output: str) -> list[list[str]]:
    """The cells of those lines of a table that begin with a GPU's index."""
    return [cells for line in output.splitlines() if (cells := line.strip("| ").split()) and cells[0].isdigit()]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_ends_well(shown: dict[str, Ended], view: str) -> None:
    ended = shown[view]
    assert (ended.status, ended.errors) == (0, ""), ended.output
    assert ERRORS.findall(ended.output) == []


def test_the_list_has_every_mig_device_below_its_gpu(shown: dict[str, Ended], state: State) -> None:
    names = ("MIG 2c.3g.40gb", "MIG 1c.3g.40gb", "MIG 2g.20gb", "MIG 1g.10gb+me")
    listed = [
        f"  {name:<16}Device {index:2}: (UUID: {uuid})"
        for index, (name, uuid) in enumerate(zip(names, uuids(state), strict=True))
    ]
    gpus = [f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})" for gpu in state.devices]
    assert [line.rstrip() for line in shown["-L"].output.splitlines()] == [gpus[0], *listed, *gpus[1:]]


def test_the_table_has_a_row_for_every_mig_device(shown: dict[str, Ended]) -> None:
    _, _, below = shown[""].output.partition("MIG devices:")
    below, _, _ = below.partition("Processes:")
    devices = [
        re.findall(r"\d+", line) for line in below.splitlines() if re.match(r"\|\s+\d+\s+\d+\s+\d+\s+\d+ ", line)
    ]
    assert devices == [
        ["0", "2", "0", "0", "0", "40448", "32", "0", "3", "0", "3", "0", "3"],
        ["0", "2", "1", "1", "16", "0", "3", "0", "3", "0", "3"],
        ["0", "4", "0", "2", "0", "20096", "32", "0", "2", "0", "2", "0", "2"],
        ["0", "7", "0", "3", "0", "9984", "16", "0", "1", "0", "1", "1", "1"],
    ]
    assert re.findall(r"\| +(Enabled|Disabled) \|$", shown[""].output, re.M) == ["Enabled", "Enabled", "Disabled"]
    assert re.findall(r"\| +(N/A|0%) +Default \|$", shown[""].output, re.M) == ["N/A", "N/A", "0%"]


def test_the_document_has_every_mig_device(shown: dict[str, Ended]) -> None:
    gpu = ElementTree.fromstring(shown["-q -x"].output).findall("gpu")[0]
    found = [
        tuple(device.findtext(key) for key in ("index", "gpu_instance_id", "compute_instance_id"))
        for device in gpu.iter("mig_device")
    ]
    assert found == [("0", "2", "0"), ("1", "2", "1"), ("2", "4", "0"), ("3", "7", "0")]
    assert gpu.findtext("mig_mode/current_mig") == "Enabled"
    assert [device.findtext("bar1_memory_usage/total") for device in gpu.iter("mig_device")] == [
        "65535 MiB", "65535 MiB", "32767 MiB", "16383 MiB",
    ]  # fmt: skip


def test_gpu_instances_are_listed(shown: dict[str, Ended]) -> None:
    assert sorted(rows(shown["mig -lgi"].output)) == [
        ["0", "MIG", "1g.10gb+me", "20", "7", "0:1"],
        ["0", "MIG", "2g.20gb", "14", "4", "2:2"],
        ["0", "MIG", "3g.40gb", "9", "2", "4:4"],
    ]


def test_compute_instances_are_listed(shown: dict[str, Ended]) -> None:
    assert sorted(rows(shown["mig -lci"].output)) == [
        ["0", "2", "MIG", "1c.3g.40gb", "0", "1", "2:1"],
        ["0", "2", "MIG", "2c.3g.40gb", "1", "0", "0:2"],
        ["0", "4", "MIG", "2g.20gb", "1", "0", "0:2"],
        ["0", "7", "MIG", "1g.10gb+me", "0", "0", "0:1"],
    ]


def test_profiles_are_listed_with_what_still_fits(shown: dict[str, Ended]) -> None:
    """Of a GPU that is partitioned, one that is in MIG mode, and one that is not."""
    listed = [row for row in rows(shown["mig -lgip"].output) if row[1:2] == ["MIG"]]
    by_gpu = {gpu: [row[4] for row in listed if row[0] == gpu] for gpu in ("0", "1", "2")}
    assert by_gpu == {
        "0": ["1/7", "0/1", "0/4", "0/3", "0/2", "0/1", "0/1"],
        "1": ["7/7", "1/1", "4/4", "3/3", "2/2", "1/1", "1/1"],
        "2": ["0/7", "0/1", "0/4", "0/3", "0/2", "0/1", "0/1"],
    }
    assert listed[0][2:] == ["1g.10gb", "19", "1/7", "9.75", "No", "16", "1", "0"]


def test_placements_are_listed(shown: dict[str, Ended]) -> None:
    lines = [line for line in shown["mig -lgipp"].output.splitlines() if line.startswith("GPU  0")]
    assert lines == [
        "GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1",
        "GPU  0 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1",
        "GPU  0 Profile ID 15 Placements: {0,2,4,6}:2",
        "GPU  0 Profile ID 14 Placements: {0,2,4}:2",
        "GPU  0 Profile ID  9 Placements: {0,4}:4",
        "GPU  0 Profile ID  5 Placement : {0}:4",
        "GPU  0 Profile ID  0 Placement : {0}:8",
    ]


def test_compute_profiles_are_listed(shown: dict[str, Ended]) -> None:
    listed = [row[1:6] for row in rows(shown["mig -lcip"].output) if "MIG" in row]
    assert sorted(listed) == [
        ["2", "MIG", "1c.3g.40gb", "0", "0/3"],
        ["2", "MIG", "2c.3g.40gb", "1", "0/1"],
        ["2", "MIG", "3g.40gb", "2*", "0/1"],
        ["4", "MIG", "1c.2g.20gb", "0", "0/2"],
        ["4", "MIG", "2g.20gb", "1*", "0/1"],
        ["7", "MIG", "1g.10gb+me", "0*", "0/1"],
    ]


def test_pynvml_enumerates_the_mig_devices(ordinary: Node, options: tuple[str, ...], state: State) -> None:
    found = json.loads(ordinary.output(sys.executable, "-c", ENUMERATE, options=options))
    name = "NVIDIA H100 80GB HBM3 MIG"
    assert found == [
        [0, 2, 0, uuids(state)[0], f"{name} 2c.3g.40gb", 3, 2],
        [0, 2, 1, uuids(state)[1], f"{name} 1c.3g.40gb", 3, 1],
        [0, 4, 0, uuids(state)[2], f"{name} 2g.20gb", 2, 2],
        [0, 7, 0, uuids(state)[3], f"{name} 1g.10gb+me", 1, 1],
    ]


def test_our_nvidia_smi_lists_the_same(ordinary: Node, options: tuple[str, ...], shown: dict[str, Ended]) -> None:
    assert ordinary.output("nvidia-smi", "-L", options=options) == shown["-L"].output


def test_nvidia_smi_turns_the_mode_off_and_on(ordinary: Node, program: Obtain, options: tuple[str, ...]) -> None:
    """Without the mode there are no partitions, and no capabilities either; with it there are the profile's again."""
    smi = program("nvidia-smi-550").path
    shell = (
        f"for mode in 0 1; do {smi} -i 0 -mig $mode; nvidia-smi -L | grep -c MIG-; ls /dev/nvidia-caps | wc -l; done"
    )
    done = ordinary.run("sh", "-c", shell, options=options)
    assert done.stdout.split("\n") == [
        "Disabled MIG Mode for GPU 00000000:53:00.0", "All done.", "0", "0",
        "Enabled MIG Mode for GPU 00000000:53:00.0", "All done.", "4", "9", "",
    ]  # fmt: skip
