"""Board h100 under `load: {pattern: training}`: what every way of asking says moves, and moves together."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from simnode.profile import Options, compile_state, load_board
from simnode.state import State
from tests.conftest import Obtain
from tests.nvml_library.conftest import SUCCESS, Library, Scene, filled
from tests.nvml_library.test_cells import field
from tests.nvml_library.test_private import Slots
from tests.nvml_library.test_views import RELEASES, Smi

PERIOD_S = 0.43
TRAINING = ("load.pattern=training", f"load.period_s={PERIOD_S}")
STEADY = ("load.pattern=steady", "load.min=61", "load.max=61")
PROCESSES = "processes=[{pid: 1, type: C, name: a}, {pid: 2, type: C, name: b}, {pid: 3, type: G, name: c}]"
SHARES = "processes=[{pid: 1, type: C, name: a, sm_util: 40, mem_util: 10}]"


def loaded(*overrides: str) -> State:
    """One GPU under load."""
    return compile_state(load_board("h100"), Options(gpus=1, overrides=(*TRAINING, *overrides)), {})


@dataclass(frozen=True)
class Moment:
    """What a monitor reads in one go."""

    gpu: int
    memory: int
    milliwatts: int
    celsius: int
    sm_mhz: int
    sent_kbps: int


def moment(library: Library) -> Moment:
    """All of it within one tick, or again: the power tells loads apart that nothing else does."""
    device = library.handle()
    while True:
        milliwatts = library.number("nvmlDeviceGetPowerUsage", device)
        gpu, memory = struct.unpack("<II", filled(library, "nvmlDeviceGetUtilizationRates", 8))
        read = Moment(
            gpu,
            memory,
            milliwatts,
            library.number("nvmlDeviceGetTemperature", device, 0),
            library.number("nvmlDeviceGetClockInfo", device, 1),
            library.number("nvmlDeviceGetPcieThroughput", device, 0),
        )
        if library.number("nvmlDeviceGetPowerUsage", device) == milliwatts:
            return read


@pytest.fixture
def moments(scene: Scene) -> Iterator[list[Moment]]:
    """Two periods, in some 80 looks."""
    library = scene.start(loaded())
    found = []
    for _ in range(80):
        found.append(moment(library))
        time.sleep(PERIOD_S / 40)
    yield found


def test_the_readings_move_within_the_boards_limits(moments: list[Moment]) -> None:
    assert len({read.gpu for read in moments}) > 5
    for read in moments:
        assert 0 <= read.gpu <= 100
        assert 68_000 <= read.milliwatts <= 700_000
        assert 29 <= read.celsius < 87
        assert 345 <= read.sm_mhz <= 1980


def test_the_readings_move_together(moments: list[Moment]) -> None:
    """Each is a line over the same load; utilisation is in whole percents, so one percent of the line is let pass."""
    for read in moments:
        share = read.gpu / 100
        assert read.milliwatts == pytest.approx(68_920 + share * (665_000 - 68_920), abs=8_000)
        assert read.memory == pytest.approx(0.6 * read.gpu, abs=1.2)
    ordered = sorted(moments, key=lambda read: read.milliwatts)
    for name in ("celsius", "sent_kbps", "gpu"):
        values = [getattr(read, name) for read in ordered]
        assert values == sorted(values), name


def test_energy_is_the_power_over_time(scene: Scene) -> None:
    library = scene.start(loaded())
    device = library.handle()
    time.sleep(0.03)
    start, begun = library.wide("nvmlDeviceGetTotalEnergyConsumption", device), time.monotonic()
    watts = []
    while time.monotonic() < begun + PERIOD_S:
        watts.append(library.number("nvmlDeviceGetPowerUsage", device) / 1000)
        time.sleep(0.004)
    seconds = time.monotonic() - begun
    joules = (library.wide("nvmlDeviceGetTotalEnergyConsumption", device) - start) / 1000
    assert joules == pytest.approx(sum(watts) / len(watts) * seconds, rel=0.15)


def test_the_samples_are_the_past_of_the_gauge(scene: Scene) -> None:
    library = scene.start(loaded())
    kind, count = ctypes.c_int(), ctypes.c_uint(120)
    buffer = ctypes.create_string_buffer(16 * 120)
    seen = ctypes.c_ulonglong(0)
    library.call("nvmlDeviceGetSamples", library.handle(), 1, seen, ctypes.byref(kind), ctypes.byref(count), buffer)
    values = [struct.unpack_from("<QI", buffer, 16 * i)[1] for i in range(count.value)]
    assert len(values) > 100
    assert len(set(values)) > 3
    assert max(values) <= 100


def used(library: Library) -> dict[int, tuple[int, ...]]:
    """SM, memory, encoder and decoder percentages by process."""
    buffer, count = ctypes.create_string_buffer(32 * 8), ctypes.c_uint(8)
    seen = ctypes.c_ulonglong(0)
    library.call("nvmlDeviceGetProcessUtilization", library.handle(), buffer, ctypes.byref(count), seen)
    rows = [struct.unpack_from("<I4xQ4I", buffer, 32 * i) for i in range(count.value)]
    return {row[0]: row[2:] for row in rows}


def test_processes_that_compute_share_what_the_device_does(scene: Scene) -> None:
    library = scene.start(loaded(*STEADY, PROCESSES))
    assert used(library) == {1: (31, 19, 0, 0), 2: (30, 18, 0, 0), 3: (0, 0, 0, 0)}


def test_a_process_with_a_share_of_its_own_follows_the_load(scene: Scene) -> None:
    library = scene.start(loaded(*STEADY, SHARES))
    assert used(library) == {1: (24, 6, 0, 0)}


def test_without_load_a_process_uses_what_the_profile_says(scene: Scene) -> None:
    library = scene.start(compile_state(load_board("h100"), Options(gpus=1, overrides=(SHARES,)), {}))
    assert used(library) == {1: (40, 10, 0, 0)}


def test_pmons_samples_say_the_same(scene: Scene) -> None:
    """Four engines a sample as long as nobody in this program has asked for the MIG mode, six since."""
    library = scene.start(loaded(SHARES))
    outs = ctypes.c_uint(), ctypes.c_uint()
    library.call("nvmlDeviceGetMigMode", library.handle(), *map(ctypes.byref, outs))
    buffer = ctypes.create_string_buffer(b"\xa5" * 1000, 1000)
    kind, count = ctypes.c_uint(), ctypes.c_uint(100)
    arguments = (library.handle(), ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count), buffer)
    assert Slots(library)(145, *arguments) == SUCCESS
    assert count.value == 1
    percent, pid = struct.unpack_from("<I4xI", buffer, 8)
    assert pid == 1
    assert 0 <= percent <= 40
    assert buffer.raw[8 + 6 * 80 :] == b"\xa5" * (1000 - 488)


def test_lost_time_grows_while_a_reason_is_in_force(scene: Scene) -> None:
    library = scene.start(loaded("clocks_throttle_reasons.sw_power_cap=true"))
    time.sleep(0.03)
    first = field(library, 74).value
    time.sleep(0.05)
    second = field(library, 74).value
    time.sleep(0.01)
    assert second - first > 20_000_000
    assert field(library, 75).value == 0


@pytest.mark.consumer
@pytest.mark.parametrize("release", sorted(RELEASES))
def test_dmon_shows_a_board_at_work(program: Obtain, scene: Scene, release: str) -> None:
    """Power, temperature, SM and memory utilisation of two cycles, and NVLink counters that grow."""
    scene.publish(loaded())
    smi = Smi(release, program(release).path, scene)
    rows = [line.split() for line in smi("dmon -s pu -c 2").splitlines() if not line.startswith("#")]
    for row in rows:
        watts, celsius, _, sm, memory = map(int, row[1:6])
        assert watts == pytest.approx(68.9 + sm / 100 * (665 - 68.9), abs=9)
        assert 29 <= celsius < 87
        assert memory == pytest.approx(0.6 * sm, abs=1.2)
    counts = []
    for _ in range(2):
        line = next(line for line in smi("nvlink -gt d").splitlines() if "Link 0: Data Tx" in line)
        counts.append(int(line.split()[4]))
        time.sleep(PERIOD_S)
    assert counts[1] > counts[0] > 0
