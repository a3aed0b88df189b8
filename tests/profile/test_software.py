"""Which driver a node runs, and what follows from it."""

from __future__ import annotations

import pytest

from simnode.profile.software import cuda_of
from simnode.state import SoftwareVersions
from tests.profile.documents import faults, h100, readings


def test_the_profile_says_its_own() -> None:
    assert h100().software == SoftwareVersions("580.105.08", "13.580.105.08", "13.0")


def test_another_driver_brings_its_nvml_cuda_and_firmware() -> None:
    state = h100(driver="550.163.01")
    assert state.software == SoftwareVersions("550.163.01", "12.550.163.01", "12.4")
    assert readings(state)["gsp_firmware.version"] == "550.163.01"


def test_option_before_environment_before_profile() -> None:
    assert h100(DRIVER_VERSION="535.261.03").software.driver_version == "535.261.03"
    assert h100(driver="570.86.15", DRIVER_VERSION="535.261.03").software.driver_version == "570.86.15"
    assert h100(DRIVER_VERSION="").software.driver_version == "580.105.08"


def test_an_override_of_the_firmware_holds_against_another_driver() -> None:
    state = h100("gsp_firmware.version=1.2.3", driver="550.163.01")
    assert readings(state)["gsp_firmware.version"] == "1.2.3"


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("470.256.02", "11.4"),
        ("535.261.03", "12.2"),
        ("550.54.15", "12.4"),
        ("555.58.02", "12.5"),
        ("560.35.03", "12.6"),
        ("565.57.01", "12.7"),
        ("570.148.08", "12.8"),
        ("575.57.08", "12.9"),
        ("580.65.06", "13.0"),
        ("590.48", "13.1"),
        ("595.91.07", "13.2"),
        ("599.10", "13.2"),
        ("340.108", "10.1"),
    ],
)
def test_cuda_follows_the_driver_branch(driver: str, cuda: str) -> None:
    assert cuda_of(driver) == cuda


@pytest.mark.parametrize(
    "driver", ["550", "550.1", "550.163.1", "x550.163.01", "550.163.01\n", "\u0665\u0665\u0660.163.01", "a/b"]
)
def test_what_is_no_driver_version_is_a_fault(driver: str) -> None:
    (fault,) = faults(h100().config_raw, DRIVER_VERSION=driver)
    assert fault.startswith("environment: DRIVER_VERSION: must be a driver version such as 550.163.01, not")
