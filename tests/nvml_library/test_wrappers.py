"""nvidia-ml-py's getters of one device on board h100: what answers, and what a real H100 refuses too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simnode.profile import Options, compile_state, load_board
from tests.nvml_library import wrappers
from tests.nvml_library.conftest import INVALID_ARGUMENT, LIBRARY, NOT_SUPPORTED, Library, Scene

ANSWERED_AT_LEAST = 100
# By the reason why an idle, unpartitioned H100 without fans, in a Linux machine that is no vGPU host, has no answer.
REFUSED = {
    "no vGPU host": (
        "GetActiveVgpus GetCreatableVgpus GetSupportedVgpus GetHostVgpuMode GetPgpuMetadataString GetVgpuMetadata "
        "GetVgpuHeterogeneousMode GetVgpuSchedulerCapabilities GetVgpuSchedulerLog GetVgpuSchedulerState"
    ),
    "no MIG device": "GetAttributes GetAttributes_v2 GetComputeInstanceId GetGpuInstanceId",
    "no fan": "GetCoolerInfo GetFanSpeed GetFanSpeedRPM GetMinMaxFanSpeed",
    "Windows": ("GetCurrentDriverModel GetDriverModel GetDriverModel_v1 GetDriverModel_v2 GetPendingDriverModel"),
    "boards before Maxwell": "GetCurrentGpuOperationMode GetGpuOperationMode GetPendingGpuOperationMode",
    "boards before Ampere": "GetRetiredPagesPendingStatus",
    "boards after it": (
        "GetCurrentDramEncryptionMode GetDramEncryptionMode GetPendingDramEncryptionMode GetHostname_v1 "
        "GetUnrepairableMemoryFlag_v1 GetBBXTimeData_v1"
    ),
    "no overclocking": "GetGpcClkMinMaxVfOffset GetGpcClkVfOffset GetMemClkMinMaxVfOffset GetMemClkVfOffset",
    "no such part": "GetAutoBoostedClocksEnabled GetBridgeChipInfo GetNumaNodeId",
    "no confidential computing": "GetConfComputeGpuCertificate",
}
OTHER_CODES = {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle": INVALID_ARGUMENT}


@pytest.fixture(scope="module")
def answers(library: Library, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | int]:
    """What wrappers.py prints on board h100."""
    scene = Scene(library, tmp_path_factory.mktemp("wrappers"))
    scene.path.with_name("libnvidia-ml.so.1").symlink_to(LIBRARY)
    scene.publish(compile_state(load_board("h100"), Options(gpus=1), {}))
    environ = {"LD_LIBRARY_PATH": str(scene.folder), "SIMNODE_IMAGE": str(scene.path), "PATH": os.environ["PATH"]}
    words = [sys.executable, str(Path(wrappers.__file__))]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, str | int] = json.loads(done.stdout)
    return found


def test_the_getters_refuse_what_a_real_board_refuses_and_answer_all_else(answers: dict[str, str | int]) -> None:
    refused = {name: code for name, code in answers.items() if isinstance(code, int)}
    expected = {f"nvmlDevice{name}": NOT_SUPPORTED for names in REFUSED.values() for name in names.split()}
    assert refused == expected | OTHER_CODES
    assert len(answers) - len(refused) >= ANSWERED_AT_LEAST


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("GetName", "NVIDIA H100 80GB HBM3"), ("GetArchitecture", "9"), ("GetNumGpuCores", "16896"),
        ("GetMemoryBusWidth", "5120"), ("GetPowerUsage", "68920"), ("GetEnforcedPowerLimit", "700000"),
        ("GetSupportedMemoryClocks", "[2619, 1593]"), ("GetSupportedPerformanceStates", "[0]"), ("GetIrqNum", "128"),
        ("GetPcieSpeed", "32000"), ("GetMarginTemperature", "58"), ("GetModuleId", "7"),
        ("GetComputeRunningProcesses", "[]"), ("GetRemappedRows", "(0, 0, 0, 0)"), ("ValidateInforom", "None"),
    ],
)  # fmt: skip
def test_an_answer_is_the_boards(answers: dict[str, str | int], name: str, answer: str) -> None:
    assert answers[f"nvmlDevice{name}"] == answer
