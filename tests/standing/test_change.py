"""A standing node that changes is what a fresh one would be, and running processes see it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from simnode.profile import load_board
from tests.sandbox.running import Runner, until
from tests.standing.standing import listed, refuse, succeed
from tests.users import as_user

LOOK = """
nvidia-smi -L; nvidia-smi | sed 1d
find /proc/driver/nvidia -type f | sort | xargs tail -n +1
stat -c '%n %F %a %t:%T' /dev/nvidia* | sort
cd $(dirname $(readlink -f /usr/bin/nvidia-smi))/../.. && find . -path ./dev -prune -o -printf '%p %y %m %l\\n' | sort
find . -path ./dev -prune -o -type f ! -name 'image*' -print | sort | xargs md5sum
"""

POLL = """
import sys, pynvml as n
n.nvmlInit()
handle = n.nvmlDeviceGetHandleByIndex(3)
print("ready", flush=True)
for line in sys.stdin:
    try:
        print(n.nvmlDeviceGetTemperature(handle, 0), flush=True)
    except n.NVMLError as error:
        print(type(error).__name__, flush=True)
"""


def _fresh(runner: Runner, *words: str) -> str:
    return succeed(runner, "run", *words, "--", "sh", "-c", LOOK)


def _seen(runner: Runner) -> str:
    return succeed(runner, "exec", "--", "sh", "-c", LOOK)


def _polling(runner: Runner) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "simnode", "exec", "--", sys.executable, "-P", "-c", POLL],
        **as_user(runner.uid),
        env=runner.environ(),
        cwd=runner.scratch,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ask(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_number_of_gpus(nodes: Runner) -> None:
    """8 -> 4 -> 0 -> 8."""
    succeed(nodes, "up", "--gpus", "8")
    fresh = {"8": _seen(nodes), **{count: _fresh(nodes, "--gpus", count) for count in ("4", "0")}}
    for count in ("4", "0", "8"):
        succeed(nodes, "set", f"system.num_devices={count}")
        assert _seen(nodes) == fresh[count]


def test_driver_version(nodes: Runner) -> None:
    """550 -> 580 -> 550."""
    succeed(nodes, "up", "--gpus", "1", "--driver-version", "550.163.01")
    fresh = {"550.163.01": _seen(nodes), "580.65.06": _fresh(nodes, "--gpus", "1", "--driver-version", "580.65.06")}
    for version in ("580.65.06", "550.163.01"):
        succeed(nodes, "set", f"system.driver_version={version}")
        assert _seen(nodes) == fresh[version]


def test_running_process_sees_each_value_by_the_time_set_returns(nodes: Runner) -> None:
    """The very next read has it; and a GPU that goes leaves its handles lost, for good."""
    succeed(nodes, "up", "--gpus", "8")
    with _polling(nodes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for value in (91, 45, 77, 30, 91):
            succeed(nodes, "set", "--gpu", "3", f"thermal.temperature_gpu_c={value}")
            assert _ask(process) == str(value)
        succeed(nodes, "set", "system.num_devices=2")
        assert _ask(process) == "NVMLError_GpuIsLost"
        succeed(nodes, "set", "system.num_devices=8", "system.driver_version=550.163.01")
        assert _ask(process) == "NVMLError_GpuIsLost"
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0


def test_edited_profile_is_followed(nodes: Runner) -> None:
    """A node of a file becomes what the file says; a mistake in it is told, and the last good one stays."""
    profile = nodes.scratch / "mine.yaml"
    text = load_board("h100").text
    profile.write_text(text)
    succeed(nodes, "up", "--profile", "mine.yaml", "--set", "thermal.temperature_gpu_c=40")
    assert listed(nodes)["default"]["board"] == "mine.yaml"
    version = listed(nodes)["default"]["driver_version"]
    _replace(profile, text.replace(version, "550.163.01"))
    until(lambda: listed(nodes)["default"]["driver_version"] == "550.163.01")
    until(lambda: succeed(nodes, "exec", "--", "nvidia-smi").count("550.163.01"))
    assert succeed(nodes, "exec", "--", "nvidia-smi").count(" 40C ") == 8
    _replace(profile, "system: [")
    until(lambda: "mine.yaml" in succeed(nodes, "status"))
    assert listed(nodes)["default"]["driver_version"] == "550.163.01"
    _replace(profile, text)
    until(lambda: listed(nodes)["default"]["driver_version"] == version)


def test_profile_that_is_wrong_brings_nothing_up(nodes: Runner) -> None:
    """The launcher reads it first."""
    (nodes.scratch / "mine.yaml").write_text("system: {driver_version: 5}\n")
    assert "mine.yaml" in nodes.run("up", "--profile", "mine.yaml").stderr
    assert "no node default stands" in refuse(nodes, 1, "down")


def _replace(profile: Path, text: str) -> None:
    fresh = profile.with_name(".fresh")
    fresh.write_text(text)
    fresh.rename(profile)
