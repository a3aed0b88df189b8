"""A standing node that is partitioned anew: NVML, device nodes and /proc move together, and nothing is left behind."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from simnode.state import State
from tests.mig.documents import compiled, document, named
from tests.sandbox.running import Runner, until
from tests.standing.standing import refuse, succeed
from tests.users import as_user

FIRST = f"{{gpus: [{{index: 0, gpu_instances: [{named('3g.40gb', '2g.20gb')}]}}]}}"
SECOND = f"{{gpus: [{{index: 1, gpu_instances: [{named('7g.80gb')}]}}]}}"
OFF = "{}"
LOOK = """
nvidia-smi -L
find /dev/nvidia-caps /proc/driver/nvidia-caps /proc/driver/nvidia/capabilities -type f -o -type c 2>/dev/null | sort
"""
HOLD = """
import sys, pynvml as n
n.nvmlInit()
gpus = [n.nvmlDeviceGetHandleByIndex(index) for index in range(2)]
held = n.nvmlDeviceGetMigDeviceHandleByIndex(gpus[0], 0)
print("ready", flush=True)
for line in sys.stdin:
    try:
        print(n.nvmlDeviceGetUUID(held), flush=True)
    except n.NVMLError as error:
        found = n.nvmlDeviceGetUUID(n.nvmlDeviceGetMigDeviceHandleByIndex(gpus[1], 0))
        print(type(error).__name__, found, flush=True)
"""


def expected(state: State) -> tuple[list[str], set[str]]:
    """The UUIDs that NVML lists, and the files that capabilities have."""
    uuids = [
        compute.uuid
        for gpu in state.mig.gpus
        for instance in gpu.gpu_instances
        for compute in instance.compute_instances
    ]
    caps = state.mig.caps()
    paths = {f"/dev/nvidia-caps/nvidia-cap{cap.minor}" for cap in caps}
    for cap in caps:
        gpu, slash, rest = cap.name.partition("/")
        paths.add(f"/proc/driver/nvidia/capabilities/{f'{gpu}/mig/{rest}' if slash else f'mig/{cap.name}'}")
    return uuids, paths | ({"/proc/driver/nvidia-caps/mig-minors"} if caps else set())


def seen(runner: Runner) -> tuple[list[str], set[str]]:
    """The same in the node."""
    printed = succeed(runner, "exec", "--", "sh", "-c", LOOK)
    paths = {line for line in printed.splitlines() if line.startswith("/")}
    return re.findall(r"UUID: (MIG-[-0-9a-f]+)", printed), paths


def test_a_running_node_is_partitioned_anew_and_not_at_all(nodes: Runner) -> None:
    succeed(nodes, "up", "--gpus", "2")
    for section in (FIRST, SECOND, OFF, FIRST):
        succeed(nodes, "set", f"mig={section if section != OFF else ''}")
        assert seen(nodes) == expected(compiled("h100", section))
    wrong = "mig.gpus=[{index: 1, gpu_instances: [{profile: 9g.80gb}]}]"
    assert "no profile of this board" in refuse(nodes, 2, "set", wrong)
    succeed(nodes, "set", "--gpu", "0", "mig.mode_current=disabled")
    assert seen(nodes) == ([], set())
    succeed(nodes, "reset")
    assert seen(nodes) == ([], set())


@pytest.mark.either_user
def test_an_edit_of_the_section_partitions_the_node_anew(nodes: Runner) -> None:
    profile = nodes.scratch / "profile.yaml"
    profile.write_bytes(document("h100", FIRST).raw)
    profile.chmod(0o644)
    succeed(nodes, "up", "--profile", str(profile), "--gpus", "2")
    assert seen(nodes) == expected(compiled("h100", FIRST))
    for section in (SECOND, OFF):
        profile.write_bytes(document("h100", section).raw)
        wanted = expected(compiled("h100", section))
        until(lambda wanted=wanted: seen(nodes) == wanted)  # type: ignore[misc]


@pytest.mark.either_user
def test_a_running_process_sees_it(nodes: Runner) -> None:
    succeed(nodes, "up", "--gpus", "2")
    succeed(nodes, "set", f"mig={FIRST}")
    words = [sys.executable, "-P", "-m", "simnode", "exec", "--", sys.executable, "-P", "-c", HOLD]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, **as_user(nodes.uid), env=nodes.environ(), cwd=nodes.scratch, stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for section in (FIRST, SECOND):
            succeed(nodes, "set", f"mig={section}")
            process.stdin.write("\n")
            process.stdin.flush()
            (uuid, *_), _ = expected(compiled("h100", section))
            told = process.stdout.readline().split()
            assert told == ([uuid] if section == FIRST else ["NVMLError_GpuIsLost", uuid])
