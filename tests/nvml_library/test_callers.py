"""Programs that use the library hard: forks, threads, little memory, a publisher at work, sanitizers."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simnode.nvml.cells import DEVICE, IMAGE, NODE, SLOT
from simnode.nvml.exports import EXPORTS
from simnode.nvml.image import encode
from simnode.partitions import MIGGPU, MIGComputeInstance, MIGGPUInstance
from simnode.state import ClockTable, Counter, Gauge, LinkSpec, LoadSpec, ProcessSpec, State, Value
from tests import sanitized
from tests.nvml.nodes import busy, node, partitions, runtime
from tests.nvml_library.conftest import LIBRARY, Compile, Scene
from tests.nvml_library.test_exports import prototypes

NATIVE = Path(__file__).parent / "native"


def waving() -> State:
    """Utilisation of GPU and memory are always the same, and move."""
    load = LoadSpec("wave", 0, 100, period_s=1.0)
    values: dict[str, Value] = {
        "thermal.temperature_gpu_c": Gauge(20, 60),
        "utilization.gpu": Gauge(0, 100),
        "utilization.memory": Gauge(0, 100),
    }
    return node(runtime(values, load=load))


@pytest.fixture(scope="module")
def poll(compile_c: Compile) -> Path:
    """native/poll.c as a program."""
    return compile_c("poll", NATIVE / "poll.c", flags=("-pthread", "-ldl"))


@contextmanager
def publishing(scene: Scene, first: State, second: State) -> Iterator[None]:
    """Publishes the two by turns, without a pause."""
    stop = threading.Event()
    images = encode(first), encode(second)

    def work() -> None:
        while not stop.is_set():
            for image in images:
                scene.publisher.publish(image)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.mark.parametrize("way", ["fork", "fork during init", "threads", "little memory", "little stack"])
def test_a_monitor_survives(scene: Scene, poll: Path, way: str) -> None:
    scene.publish(waving())
    environ = {**os.environ, "SIMNODE_IMAGE": str(scene.path)}
    done = subprocess.run([poll, LIBRARY, way], env=environ, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_monitor_never_sees_half_a_publish(scene: Scene, poll: Path) -> None:
    keys = ("thermal.temperature_gpu_c", "utilization.gpu", "utilization.memory")
    states = [node(runtime(dict.fromkeys(keys, number))) for number in (7, 93)]
    scene.publish(states[0])
    environ = {**os.environ, "SIMNODE_IMAGE": str(scene.path)}
    with publishing(scene, *states):
        done = subprocess.run([poll, LIBRARY, "threads"], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_poll_makes_no_system_call(scene: Scene, compile_c: Compile) -> None:
    program = compile_c("strict", NATIVE / "strict.c", flags=("-ldl",))
    scene.publish(waving())
    environ = {**os.environ, "SIMNODE_IMAGE": str(scene.path)}
    assert subprocess.run([program, LIBRARY], env=environ, check=False).returncode == 0


VISIBLE = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
assert library.nvmlInit_v2() == 0
count, handle, number, minor = ctypes.c_uint(), ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
library.nvmlDeviceGetCount_v2(ctypes.byref(count))
for i in range(count.value):
    assert library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)) == 0
    assert library.nvmlDeviceGetIndex(handle, ctypes.byref(number)) == 0
    assert library.nvmlDeviceGetMinorNumber(handle, ctypes.byref(minor)) == 0
    assert number.value == i
    print(minor.value)
print("uuid", library.nvmlDeviceGetHandleByUUID(sys.argv[2].encode(), ctypes.byref(handle)))
"""


@pytest.mark.parametrize(
    ("files", "minors", "code"),
    [
        pytest.param((), [0, 1, 2, 3], 0, id="none"),
        pytest.param((0, 1, 2, 3), [0, 1, 2, 3], 0, id="all"),
        pytest.param((1, 3), [1, 3], 0, id="two"),
        pytest.param((2,), [2], 6, id="not the one asked for"),
        pytest.param((9,), [0, 1, 2, 3], 0, id="another's"),
    ],
)
def test_the_names_in_dev_decide_what_is_visible(
    scene: Scene, tmp_path: Path, files: tuple[int, ...], minors: list[int], code: int
) -> None:
    scene.publish(node(*[runtime()] * 4))
    script = tmp_path / "visible.py"
    script.write_text(VISIBLE)
    names = " ".join(f"/dev/nvidia{number}" for number in files)
    shell = f"mount -t tmpfs none /dev && touch /dev/null {names} && exec {sys.executable} {script} {LIBRARY} {UUID_1}"
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", shell]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if "unshare failed" in done.stderr or "unshare: " in done.stderr:
        pytest.skip("namespaces are refused here")
    assert done.stderr == ""
    assert done.stdout.split() == [*map(str, minors), "uuid", str(code)]


UUID_1 = "GPU-00000001-1111-2222-3333-444444444444"


KINDS = {
    "nvmlDevice_t": "d",
    "nvmlGpuInstance_t": "g",
    "nvmlComputeInstance_t": "c",
    "nvmlEventSet_t": "s",
    "nvmlGpmSample_t": "m",
}
UNDECLARED = "-Wno-builtin-declaration-mismatch"
BRACKETS = ("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown")


def kinds(parameters: str) -> str:
    """A letter for every parameter: that of its handle, p for a pointer, n for a number."""
    words = [] if parameters in ("", "void") else parameters.split(",")
    return "".join("p" if "*" in word else KINDS.get(word.split()[0], "n") for word in words)


@pytest.fixture(scope="module")
def every(compile_c: Compile, nvml_h: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """native/every_call.c with the library inside, under AddressSanitizer and UndefinedBehaviorSanitizer."""
    folder = tmp_path_factory.mktemp("every")
    declared = prototypes(nvml_h)
    (folder / "every.h").write_text(
        "".join(
            f'X({name}, "{kinds(declared[name])}")\n' for name in EXPORTS if name in declared and name not in BRACKETS
        )
    )
    return compile_c(
        "every",
        NATIVE / "every_call.c",
        *sanitized.objects(("nvml",), folder),
        flags=(f"-I{folder}", *sanitized.FLAGS, UNDECLARED),
    )


def run_every(program: Path, scene: Scene) -> tuple[str, str]:
    """Standard output and the end of standard error."""
    environ = {**os.environ, "SIMNODE_IMAGE": str(scene.path)}
    done = subprocess.run([program], env=environ, capture_output=True, text=True, timeout=50, check=False)
    return done.stdout, done.stderr[-2000:]


def full() -> State:
    """A GPU with as much of everything as there is room for, a partitioned one, and a lost one."""
    loaded = runtime(
        {"utilization.gpu": Gauge(0, 100), "ecc.mode_current": 1, "fabric.state": 3},
        load=LoadSpec("wave", 0, 100, period_s=1.0),
        clocks=(ClockTable(2, (3, 2, 1)), ClockTable(1, tuple(range(320, 0, -1)))),
        processes=tuple(ProcessSpec(i + 1, "C+G", "x" * 200, i) for i in range(256)),
        links=tuple(LinkSpec(True, "switch", "") for _ in range(18)),
    )
    mig = partitions(MIGGPU(1, (MIGGPUInstance(3, (MIGComputeInstance(0, "MIG-1"),)),)))
    return node(loaded, runtime({"mig.mode_current": 1}), runtime(lost=15), mig=mig)


def test_every_call_is_clean_under_the_sanitizers(scene: Scene, every: Path) -> None:
    scene.publish(full())
    assert run_every(every, scene) == ("done\n", "")


@pytest.mark.parametrize("filling", ["ones", "noise"])
def test_an_image_full_of_nonsense_harms_nobody(scene: Scene, every: Path, filling: str) -> None:
    """Its header is good, its device is there; every other byte is not what it should be."""
    scene.publish(node(runtime()))
    noise = random.Random(7).randbytes(SLOT.size) if filling == "noise" else b"\xff" * SLOT.size
    with scene.path.open("r+b") as file:
        for slot in range(2):
            start = IMAGE.offsets["slot"] + slot * SLOT.size
            file.seek(start)
            file.write(noise)
            file.seek(start + NODE.offsets["device_count"])
            file.write(struct.pack("<I", 1))
            file.seek(start + NODE.offsets["init_code"])
            file.write(struct.pack("<I", 0))
            for index in range(2):
                file.seek(start + SLOT.offsets["device"] + index * DEVICE.size)
                file.write(struct.pack("<III", 1, 1, 0))
    assert run_every(every, scene) == ("done\n", "")


def test_energy_never_falls_whatever_is_published(scene: Scene) -> None:
    library = scene.start(busy(Counter(1000, 50.0, 900.0), LoadSpec("wave", 0, 100, period_s=0.2)))
    other = busy(Counter(5, 0.5, 90000.0), LoadSpec("bursty", 10, 90, period_s=0.1))
    handle, name, last = library.handle(), "nvmlDeviceGetTotalEnergyConsumption", 0
    with publishing(scene, other, busy(Counter(7, 9000.0, 0.0))):
        for _ in range(30000):
            now = library.wide(name, handle)
            assert now >= last
            last = now
