"""In a node of one's own NVML's setters change it: the agent carries them out, and who set a value reads it back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Obtain
from tests.consumers.conftest import Node
from tests.nvml_library import ordering
from tests.nvml_library.conftest import INVALID_ARGUMENT, NO_PERMISSION, NOT_SUPPORTED, WRONG_TAG

ERRORS = "ecc.errors.{}.double_bit.device_memory=5"
NODE = ("--board", "h100", "--gpus", "2")
WITH_ERRORS = (*NODE, "--set", ERRORS.format("volatile"), "--set", ERRORS.format("aggregate"))
READ = {
    "persistence": [1, 0, 1],
    "compute": [0, 3, 0],
    "ecc": [[1, 1], [1, 0], [1, 1]],
    "power": [[700_000, 700_000], [400_000, 400_000], [700_000, 700_000]],
    "power of the GPU": [[700_000, 700_000], [500_000, 500_000], [700_000, 700_000]],
    "application clocks": [[1980, 2619], [1200, 1593], [1980, 2619]],
    "locked clocks": [[345, 345], [1200, 1200], [345, 345]],
    "locked memory clocks": [2619, 1593, 2619],
    "accounting": [0, 1, 0],
    "accounted processes": [[], [], []],
    "mig": [[0, 0], [1, 1], [0, 0]],
    "ecc counts": [[5, 5], [0, 5], [0, 0]],
}
CODES = {
    "below the least limit": INVALID_ARGUMENT,
    "above the highest limit": INVALID_ARGUMENT,
    "below the least limit of the GPU": INVALID_ARGUMENT,
    "the module's limit": NOT_SUPPORTED,
    "a limit of another version": WRONG_TAG,
    "no such mode": INVALID_ARGUMENT,
    "no such clocks": INVALID_ARGUMENT,
    "a range upside down": INVALID_ARGUMENT,
    "no such counters": INVALID_ARGUMENT,
    "not on this board": NOT_SUPPORTED,
    "an administrator's": NO_PERMISSION,
}


@pytest.mark.parametrize("fallback", [False, True], ids=["namespaces", "fallback"])
def test_what_is_set_is_read_back_and_can_be_taken_back(uid: int, fallback: bool) -> None:
    program = (sys.executable, Path(ordering.__file__))
    done = Node(uid, fallback).run(*program, options=WITH_ERRORS)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert {name: seen for name, (seen, _) in said["read"].items()} == READ
    assert [name for name, (_, untouched) in said["read"].items() if not untouched] == []
    assert said["codes"] == CODES


@pytest.mark.consumer
@pytest.mark.parametrize("release", ["nvidia-smi-535", "nvidia-smi-555"])
def test_nvidia_smi_sets_a_power_limit_and_the_persistence_mode(uid: int, program: Obtain, release: str) -> None:
    smi = program(release).path
    query = "--query-gpu=power.limit,enforced.power.limit,persistence_mode --format=csv,noheader"
    script = f"{smi} -i 1 -pl 400 >&2 && {smi} -i 1 -pm 0 >&2 && {smi} {query}"
    done = Node(uid).run("sh", "-c", script, options=NODE)
    assert done.returncode == 0, done.stderr
    assert "was set to 400.00 W from 700.00 W" in done.stderr
    assert done.stdout.splitlines() == ["700.00 W, 700.00 W, Enabled", "400.00 W, 400.00 W, Disabled"]


@pytest.mark.consumer
def test_a_reset_clears_the_errors_and_brings_the_pending_ecc_mode_into_force(uid: int, program: Obtain) -> None:
    smi = program("nvidia-smi-550").path
    query = "--query-gpu=ecc.mode.current,ecc.errors.uncorrected.volatile.total --format=csv,noheader"
    script = f"{smi} -i 0 -r >&2 && {smi} -i 1 -e 0 >&2 && {smi} -i 1 -r >&2 && {smi} {query}"
    done = Node(uid).run("sh", "-c", script, options=WITH_ERRORS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Enabled, 0", "Disabled, [N/A]"]


@pytest.mark.consumer
def test_a_gpu_in_use_is_not_reset(uid: int, program: Obtain) -> None:
    processes = "processes=[{pid: 4242, type: C, name: trainer}]"
    done = Node(uid).run(program("nvidia-smi-550").path, "-i", "1", "-r", options=(*NODE, "--set", processes))
    assert (done.returncode, done.stdout) == (19, "GPU reset unavailable: In use by another client\n")
