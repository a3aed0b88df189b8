"""Which MIG devices a container sees: those whose capabilities' device files it was given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mig.documents import one_gpu
from tests.nvml_library.conftest import LIBRARY, Scene

INSTANCES = "{profile: 3g.40gb, compute_instances: [2c.3g.40gb, 1c.3g.40gb]}, {profile: 2g.20gb}, {profile: 1g.10gb}"
ALL = [(2, 0), (2, 1), (4, 0), (7, 0)]
LOOK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
assert library.nvmlInit_v2() == 0
gpu, mig, again, number, uuid = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint(), bytes(96)
assert library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu)) == 0
index = 0
while library.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index, ctypes.byref(mig)) == 0:
    assert library.nvmlDeviceGetIndex(mig, ctypes.byref(number)) == 0
    assert number.value == index
    assert library.nvmlDeviceGetUUID(mig, uuid, 96) == 0
    assert library.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(again)) == 0
    assert again.value == mig.value
    ids = []
    for name in ("nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId"):
        assert getattr(library, name)(mig, ctypes.byref(number)) == 0
        ids.append(str(number.value))
    print(":".join(ids))
    index += 1
print(library.nvmlDeviceGetHandleByUUID(sys.argv[2].encode(), ctypes.byref(again)))
"""


@pytest.mark.parametrize(
    ("minors", "visible"),
    [
        pytest.param((), ALL, id="none"),
        pytest.param((21, 22, 23, 39, 40, 66, 67), ALL, id="all"),
        pytest.param((39, 40), [(4, 0)], id="one"),
        pytest.param((21, 23), [(2, 1)], id="one of two compute instances"),
        pytest.param((1, 2, 21, 22, 23, 66, 67), [(2, 0), (2, 1), (7, 0)], id="two instances"),
        pytest.param((21, 39, 40), [(4, 0)], id="an instance without its compute instances"),
        pytest.param((156, 157), ALL, id="another GPU's"),
    ],
)
def test_the_names_in_dev_decide(
    scene: Scene, tmp_path: Path, minors: tuple[int, ...], visible: list[tuple[int, int]]
) -> None:
    state = one_gpu("h100", INSTANCES)
    scene.publish(state)
    last = state.mig.gpus[0].gpu_instances[-1].compute_instances[0].uuid
    script = tmp_path / "look.py"
    script.write_text(LOOK)
    names = " ".join(f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in minors)
    shell = (
        "mount -t tmpfs none /dev && mkdir /dev/nvidia-caps && "
        f"touch /dev/null /dev/nvidia0 {names} && exec {sys.executable} {script} {LIBRARY} {last}"
    )
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", shell]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if "unshare failed" in done.stderr or "unshare: " in done.stderr:
        pytest.skip("namespaces are refused here")
    assert done.stderr == ""
    *found, code = done.stdout.split()
    assert found == [f"{gpu_instance}:{compute}" for gpu_instance, compute in visible]
    assert code == ("0" if (7, 0) in visible else "6")
