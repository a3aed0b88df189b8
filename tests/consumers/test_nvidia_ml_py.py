"""nvidia-ml-py, release by release, on a node with the driver of that release: every wrapper is called."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.conftest import Obtain
from tests.consumers.conftest import USERS, Ended, Node
from tests.consumers.expected import MIB, gpus
from tests.consumers.wrappers import STRUCTURES
from tests.nvml_library.refusals import CODES

pytestmark = pytest.mark.consumer

# The last driver of each branch whose symbols the bindings of that branch look up.
DRIVERS = {
    "418": "418.226.00",
    "450": "450.248.02",
    "470": "470.256.02",
    "510": "510.108.03",
    "525": "525.147.05",
    "535": "535.261.03",
    "550": "550.163.01",
    "555": "555.58.02",
    "560": "560.35.05",
    "570": "570.172.08",
    "580": "580.126.09",
    "595": "595.45.04",
    "615": "615.71.01",
}
WRAPPERS = Path(__file__).with_name("wrappers.py")
GETTERS = {
    name
    for name, wrapper in vars(pynvml).items()
    if name.startswith("nvmlDeviceGet") and tuple(inspect.signature(wrapper).parameters) in {("handle",), ("device",)}
}
NOT_SUPPORTED = 3
FUNCTION_NOT_FOUND = 13
# What a library may answer to whoever asks for what a board has not or may not: invalid argument, not supported, no
# permission, not found, timeout, argument version mismatch.
REFUSALS = {2, 3, 4, 6, 10, 25}


def watts(milliwatts: int) -> str:
    """As nvidia-smi prints a power."""
    return f"{milliwatts / 1000:.2f}"


def switch(state: int) -> str:
    """As nvidia-smi prints a mode that is on or off."""
    return ["Disabled", "Enabled"][state]


def field(fields: list[dict[str, Any]], way: Callable[[int], str]) -> str:
    """The only one of `fields`, an unsigned int, as nvidia-smi prints it; a driver may not have it yet."""
    return "[N/A]" if fields[0]["nvmlReturn"] == NOT_SUPPORTED else way(fields[0]["value"]["uiVal"])


# Key of --query-gpu, the wrapper with what follows the handle, and how nvidia-smi prints the value.
AGREEING: tuple[tuple[str, list[Any], Callable[[Any], str]], ...] = (
    ("index", ["nvmlDeviceGetIndex"], str),
    ("name", ["nvmlDeviceGetName"], str),
    ("uuid", ["nvmlDeviceGetUUID"], str),
    ("serial", ["nvmlDeviceGetSerial"], str),
    ("vbios_version", ["nvmlDeviceGetVbiosVersion"], str),
    ("inforom.ecc", ["nvmlDeviceGetInforomVersion", 1], str),
    ("pci.bus_id", ["nvmlDeviceGetPciInfo"], lambda pci: str(pci["busId"])),
    ("pcie.link.gen.current", ["nvmlDeviceGetCurrPcieLinkGeneration"], str),
    ("pcie.link.gen.max", ["nvmlDeviceGetMaxPcieLinkGeneration"], str),
    ("pcie.link.width.current", ["nvmlDeviceGetCurrPcieLinkWidth"], str),
    ("pcie.link.width.max", ["nvmlDeviceGetMaxPcieLinkWidth"], str),
    ("memory.total", ["nvmlDeviceGetMemoryInfo"], lambda memory: str(memory["total"] // MIB)),
    ("utilization.gpu", ["nvmlDeviceGetUtilizationRates"], lambda rates: str(rates["gpu"])),
    ("utilization.memory", ["nvmlDeviceGetUtilizationRates"], lambda rates: str(rates["memory"])),
    ("temperature.gpu", ["nvmlDeviceGetTemperature", 0], str),
    ("power.draw", ["nvmlDeviceGetPowerUsage"], watts),
    ("power.limit", ["nvmlDeviceGetPowerManagementLimit"], watts),
    ("enforced.power.limit", ["nvmlDeviceGetEnforcedPowerLimit"], watts),
    ("power.default_limit", ["nvmlDeviceGetPowerManagementDefaultLimit"], watts),
    ("power.min_limit", ["nvmlDeviceGetPowerManagementLimitConstraints"], lambda limits: watts(limits[0])),
    ("power.max_limit", ["nvmlDeviceGetPowerManagementLimitConstraints"], lambda limits: watts(limits[1])),
    ("clocks.current.sm", ["nvmlDeviceGetClockInfo", 1], str),
    ("clocks.current.memory", ["nvmlDeviceGetClockInfo", 2], str),
    ("clocks.max.sm", ["nvmlDeviceGetMaxClockInfo", 1], str),
    ("clocks.max.memory", ["nvmlDeviceGetMaxClockInfo", 2], str),
    ("pstate", ["nvmlDeviceGetPerformanceState"], lambda state: f"P{state}"),
    ("persistence_mode", ["nvmlDeviceGetPersistenceMode"], switch),
    ("display_active", ["nvmlDeviceGetDisplayActive"], switch),
    ("display_mode", ["nvmlDeviceGetDisplayMode"], switch),
    ("compute_mode", ["nvmlDeviceGetComputeMode"], lambda mode: {0: "Default"}[mode]),
    ("ecc.mode.current", ["nvmlDeviceGetCurrentEccMode"], switch),
    ("ecc.mode.pending", ["nvmlDeviceGetPendingEccMode"], switch),
    ("ecc.errors.uncorrected.volatile.total", ["nvmlDeviceGetTotalEccErrors", 1, 0], str),
    ("ecc.errors.corrected.aggregate.total", ["nvmlDeviceGetTotalEccErrors", 0, 1], str),
    ("ecc.errors.uncorrected.volatile.dram", ["nvmlDeviceGetMemoryErrorCounter", 1, 0, 2], str),
    ("ecc.errors.corrected.volatile.sram", ["nvmlDeviceGetMemoryErrorCounter", 0, 0, 7], str),
    ("retired_pages.pending", ["nvmlDeviceGetRetiredPagesPendingStatus"], switch),
    ("mig.mode.current", ["nvmlDeviceGetMigMode"], lambda modes: switch(modes[0])),
    ("mig.mode.pending", ["nvmlDeviceGetMigMode"], lambda modes: switch(modes[1])),
    ("inforom.img", ["nvmlDeviceGetInforomImageVersion"], str),
    ("inforom.oem", ["nvmlDeviceGetInforomVersion", 0], str),
    ("inforom.pwr", ["nvmlDeviceGetInforomVersion", 2], str),
    ("accounting.mode", ["nvmlDeviceGetAccountingMode"], switch),
    ("accounting.buffer_size", ["nvmlDeviceGetAccountingBufferSize"], str),
    ("fan.speed", ["nvmlDeviceGetFanSpeed"], str),
    ("driver_model.current", ["nvmlDeviceGetCurrentDriverModel"], str),
    ("gom.current", ["nvmlDeviceGetCurrentGpuOperationMode"], str),
    ("compute_cap", ["nvmlDeviceGetCudaComputeCapability"], lambda version: ".".join(map(str, version))),
    ("clocks_event_reasons.supported", ["nvmlDeviceGetSupportedClocksThrottleReasons"], "0x{:016X}".format),
    ("clocks_event_reasons.active", ["nvmlDeviceGetCurrentClocksThrottleReasons"], "0x{:016X}".format),
    ("pci.domain", ["nvmlDeviceGetPciInfo"], lambda pci: f"0x{pci['domain']:04X}"),
    ("pci.bus", ["nvmlDeviceGetPciInfo"], lambda pci: f"0x{pci['bus']:02X}"),
    ("pci.device_id", ["nvmlDeviceGetPciInfo"], lambda pci: f"0x{pci['pciDeviceId']:08X}"),
    ("pci.sub_device_id", ["nvmlDeviceGetPciInfo"], lambda pci: f"0x{pci['pciSubSystemId']:08X}"),
    ("pcie.link.gen.gpumax", ["nvmlDeviceGetGpuMaxPcieLinkGeneration"], str),
    ("memory.free", ["nvmlDeviceGetMemoryInfo"], lambda memory: str(-(-memory["free"] // MIB))),
    ("protected_memory.total", ["nvmlDeviceGetConfComputeProtectedMemoryUsage"], lambda memory: str(memory["total"])),
    ("utilization.encoder", ["nvmlDeviceGetEncoderUtilization"], lambda use: str(use[0])),
    ("utilization.decoder", ["nvmlDeviceGetDecoderUtilization"], lambda use: str(use[0])),
    ("utilization.jpeg", ["nvmlDeviceGetJpgUtilization"], lambda use: str(use[0])),
    ("utilization.ofa", ["nvmlDeviceGetOfaUtilization"], lambda use: str(use[0])),
    ("encoder.stats.sessionCount", ["nvmlDeviceGetEncoderStats"], lambda stats: str(stats[0])),
    ("power.management", ["nvmlDeviceGetPowerManagementMode"], switch),
    ("clocks.current.graphics", ["nvmlDeviceGetClockInfo", 0], str),
    ("clocks.current.video", ["nvmlDeviceGetClockInfo", 3], str),
    ("clocks.max.graphics", ["nvmlDeviceGetMaxClockInfo", 0], str),
    ("clocks.applications.graphics", ["nvmlDeviceGetApplicationsClock", 0], str),
    ("clocks.default_applications.memory", ["nvmlDeviceGetDefaultApplicationsClock", 2], str),
    ("temperature.memory", ["nvmlDeviceGetFieldValues", [82]], lambda fields: field(fields, str)),
    ("power.draw.average", ["nvmlDeviceGetFieldValues", [185]], lambda fields: field(fields, watts)),
    ("power.draw.instant", ["nvmlDeviceGetFieldValues", [186]], lambda fields: field(fields, watts)),
)


@dataclass(frozen=True)
class Release:
    """What one release found on its driver, and what nvidia-smi says of the same node."""

    driver: str
    read: Ended
    asked: Ended
    called: Ended

    def answers(self) -> dict[str, dict[str, Any]]:
        """How each wrapper ended."""
        answers: dict[str, dict[str, Any]] = json.loads(self.called.output)
        return answers


@pytest.fixture(
    scope="module",
    params=[(branch, "ordinary") for branch in DRIVERS] + [("615", "root")] * ("root" in USERS),
    ids="-".join,
)
def release(request: pytest.FixtureRequest, program: Obtain) -> Release:
    """The wrappers that are compared, nvidia-smi, and then every wrapper, on one node.

    An ordinary user may change little; so the newest release is root's too.
    """
    branch, user = request.param
    bindings = program(f"nvidia-ml-py-{branch}").root
    python: list[str | Path] = ["env", f"PYTHONPATH={bindings}", sys.executable, "-W", "ignore", WRAPPERS]
    keys = ",".join(key for key, _, _ in AGREEING)
    commands: list[list[str | Path]] = [
        [*python, "read", json.dumps([call for _, call, _ in AGREEING])],
        [program("nvidia-smi-550").path, f"--query-gpu={keys}", "--format=csv,noheader,nounits"],
        [*python, "call"],
    ]
    driver = DRIVERS[branch]
    options = ("--board", "h100", "--driver-version", driver)
    return Release(driver, *Node(USERS[user]).several(commands, options=options, at_once=1))


def test_no_wrapper_crashes(release: Release) -> None:
    """All were called, to the last."""
    assert release.called.status == 0, release.called.errors
    assert release.called.errors.splitlines()[-1] == "nvmlShutdown"


def test_every_symbol_of_the_driver_is_there(release: Release) -> None:
    """A wrapper raises FunctionNotFound where its symbol is missing."""
    assert [name for name, ended in release.answers().items() if ended.get("error") == FUNCTION_NOT_FOUND] == []


def test_a_wrapper_answers_or_refuses(release: Release) -> None:
    """It never fails itself, and refuses with a code that tells why."""
    answers = release.answers().items()
    assert [f"{name}: {ended['python']}" for name, ended in answers if "python" in ended] == []
    assert {name: ended["error"] for name, ended in answers if "error" in ended} == {
        name: ended["error"] for name, ended in answers if ended.get("error") in REFUSALS
    }


def test_a_structure_with_the_releases_own_tag_is_filled_in(release: Release) -> None:
    """Or refused because the board has no such thing; never because of its tag."""
    answers = {name: ended for name, ended in release.answers().items() if name in STRUCTURES}
    assert {name: ended for name, ended in answers.items() if ended.get("error") not in {None, NOT_SUPPORTED}} == {}
    if "nvmlDeviceGetPciInfoExt" in answers:
        assert answers["nvmlDeviceGetPciInfoExt"]["value"]["busId"] == gpus()[0].bus_id


def test_the_getters_refuse_what_an_h100_refuses_and_answer_all_else(release: Release) -> None:
    """Those that want a device and nothing else; an old release has fewer of them."""
    getters = {name: ended for name, ended in release.answers().items() if name in GETTERS | CODES.keys()}
    assert {name: ended["error"] for name, ended in getters.items() if "error" in ended} == {
        name: CODES[name] for name in CODES.keys() & getters
    }


def test_the_versions_are_the_drivers(release: Release) -> None:
    """The library's, too: the bindings' major number before the driver's."""
    answers = release.answers()
    assert answers["nvmlSystemGetDriverVersion"] == {"value": release.driver}
    assert answers["nvmlSystemGetNVMLVersion"]["value"].partition(".")[2] == release.driver
    assert answers["nvmlDeviceGetCount"] == {"value": len(gpus())}


def test_values_agree_with_those_of_nvidia_smi(release: Release) -> None:
    """Identity, bus, memory, power, clocks and modes of every GPU."""
    assert release.asked.status == release.read.status == 0, release.asked.errors + release.read.errors
    shown = [dict(zip([key for key, _, _ in AGREEING], line.split(", "), strict=True)) for line in rows(release.asked)]
    read = json.loads(release.read.output)
    differing = {
        (index, key): (printed(ended[name], way), line[key])
        for index, (line, ended) in enumerate(zip(shown, read, strict=True))
        for key, name, way in present(ended)
        if printed(ended[name], way) != line[key]
    }
    assert differing == {}
    assert all(len(ended) > 0.9 * len({str(call) for _, call, _ in AGREEING}) for ended in read)


def rows(asked: Ended) -> list[str]:
    """The lines of a csv output."""
    return asked.output.splitlines()


def present(ended: dict[str, dict[str, Any]]) -> list[tuple[str, str, Callable[[Any], str]]]:
    """Key, name in the answers and way to print of what this release has a wrapper for."""
    named = [(key, " ".join(map(str, call)), way) for key, call, way in AGREEING]
    return [(key, name, way) for key, name, way in named if name in ended]


def printed(ended: dict[str, Any], way: Callable[[Any], str]) -> str:
    """A wrapper's answer as nvidia-smi prints it."""
    return way(ended["value"]) if "value" in ended else {NOT_SUPPORTED: "[N/A]"}.get(ended.get("error", 0), str(ended))
