"""What the file offers: every function of NVML and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import elf
from simnode.nvml.exports import DEVICE_FIRST, EXPORTS
from tests.nvml_library.conftest import LIBRARY

PROTOTYPE = re.compile(
    r"^\s*(?:DEPRECATED\([\d.]+\)\s*)?(?:nvmlReturn_t|const\s+DECLDIR\s+char\s*\*|const\s+char\s*\*)\s*(?:DECLDIR)?\s*"
    r"(nvml\w+)\s*\(([^)]*)\)",
    re.M,
)


# What real libraries export or exported and the newest header does not declare.
OLDER = {
    "nvmlDeviceCcuGetStreamState",
    "nvmlDeviceCcuSetStreamState",
    "nvmlDeviceGetPowerMode",
    "nvmlDeviceGetSupportedPowerModes",
    "nvmlDeviceSetPowerMode",
    "nvmlGetBlacklistDeviceCount",
    "nvmlGetBlacklistDeviceInfoByIndex",
    "nvmlInternalGetExportTable",
}


def prototypes(header: Path) -> dict[str, str]:
    """First parameter by function, unversioned names included."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.S)
    return {name: " ".join(parameters.split()) for name, parameters in PROTOTYPE.findall(text)}


def test_the_library_exports_the_list_and_nothing_else() -> None:
    assert elf.exports(LIBRARY) == set(EXPORTS)


def test_the_list_has_every_function_of_the_real_header(nvml_h: Path) -> None:
    declared = prototypes(nvml_h)
    assert set(EXPORTS) - set(declared) == OLDER
    assert set(declared) <= set(EXPORTS)


def test_what_takes_a_device_first_is_listed_so(nvml_h: Path) -> None:
    declared = prototypes(nvml_h)
    device_first = {name for name, parameters in declared.items() if parameters.startswith("nvmlDevice_t ")}
    assert device_first == set(DEVICE_FIRST) & set(declared)


def test_the_file_keeps_its_contract() -> None:
    assert elf.faults(LIBRARY) == []
