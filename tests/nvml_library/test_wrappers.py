"""nvidia-ml-py's getters of one device on board h100: what answers, and what a real H100 refuses too."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simnode.profile import Options, compile_state, load_board
from tests.nvml_library import wrappers
from tests.nvml_library.conftest import LIBRARY, ROOT, Library, Scene
from tests.nvml_library.refusals import CODES, REASONS

PAGE = ROOT / "docs" / "nvml.md"
# Of nvidia-ml-py 13.615's 145.
ANSWERED = 104


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
    assert refused == CODES
    assert len(answers) - len(refused) == ANSWERED


def test_the_page_says_why_each_is_refused() -> None:
    section = PAGE.read_text().partition("## What an H100 refuses")[2].partition("\n## ")[0]
    items = re.findall(r"^- \*\*([^*]+)\*\*: ((?:`\w+`\s+)*`\w+`)\.", section, re.M)
    assert [(why, re.findall(r"\w+", names)) for why, names in items] == [
        (reason.why, reason.names.split()) for reason in REASONS
    ]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("GetName", "NVIDIA H100 80GB HBM3"), ("GetArchitecture", "9"), ("GetNumGpuCores", "16896"),
        ("GetMemoryBusWidth", "5120"), ("GetPowerUsage", "68920"), ("GetEnforcedPowerLimit", "700000"),
        ("GetSupportedMemoryClocks", "[2619, 1593]"), ("GetSupportedPerformanceStates", "[0]"), ("GetIrqNum", "128"),
        ("GetPcieSpeed", "32000"), ("GetMarginTemperature", "58"), ("GetModuleId", "7"),
        ("GetComputeRunningProcesses", "[]"), ("GetRemappedRows", "(0, 0, 0, 0)"), ("ValidateInforom", "None"),
        ("GetUnrepairableMemoryFlag_v1", "0"), ("GetFBCSessions", "[]"), ("GetNumFans", "0"),
    ],
)  # fmt: skip
def test_an_answer_is_the_boards(answers: dict[str, str | int], name: str, answer: str) -> None:
    assert answers[f"nvmlDevice{name}"] == answer
