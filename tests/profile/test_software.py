"""Which driver a node runs, and what follows from it."""

from __future__ import annotations

import pytest

from simnode.profile import Options, boards, compile_state, load_board, load_text
from simnode.profile.software import cuda_of, of_another_driver
from simnode.state import SoftwareVersions
from tests.profile.documents import SMALL, faults, h100, readings


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
    ("system", "told"),
    [
        pytest.param("driver_version: 570.148.08", "", id="nothing else"),
        pytest.param(
            "driver_version: 570.148.08, nvml_version: 12.570.148.08, cuda_version: 12.8.1, cuda_version_major: 12, "
            "cuda_version_minor: 8",
            "",
            id="all its own",
        ),
        pytest.param(
            "driver_version: 570.148.08, nvml_version: 13.580.105.08, cuda_version: 13.0, cuda_version_major: 13, "
            "cuda_version_minor: 0",
            "versions not of driver 570.148.08: system.nvml_version (line 2) should be 12.570.148.08, "
            "system.cuda_version (line 2) should be 12.8, system.cuda_version_major (line 2) should be 12, "
            "system.cuda_version_minor (line 2) should be 8; what is left out follows it",
            id="another driver's",
        ),
        pytest.param(
            "driver_version: 990.10, nvml_version: 17.980.10, cuda_version: 17.1",
            "versions not of driver 990.10: system.nvml_version (line 2) should be 17.990.10; "
            "what is left out follows it",
            id="a branch whose CUDA version nobody knows",
        ),
    ],
)
def test_a_version_of_another_driver_than_the_profiles_is_told_with_what_is_right(system: str, told: str) -> None:
    root = load_text(SMALL.replace("driver_version: 550.163.01", system).encode(), "p.yaml").root
    assert of_another_driver(root, system.split(", ", maxsplit=1)[0].removeprefix("driver_version: ")) == told
    assert of_another_driver(root, "550.163.01") == ""


def test_firmware_of_another_driver_is_told_of_every_place() -> None:
    text = SMALL.replace("  name:", "  gsp_firmware: {version: 550.163.01}\n  name:")
    text = text.replace("  - index: 1", "  - index: 1\n    gsp_firmware: {version: 535.261.03}")
    assert of_another_driver(load_text(text.encode(), "p.yaml").root, "550.163.01") == (
        "versions not of driver 550.163.01: devices[1].gsp_firmware.version (line 14) should be 550.163.01; "
        "what is left out follows it"
    )


@pytest.mark.parametrize("board", boards())
def test_the_versions_of_a_board_are_its_drivers(board: str) -> None:
    document = load_board(board)
    assert of_another_driver(document.root, compile_state(document, Options(), {}).software.driver_version) == ""


@pytest.mark.parametrize(
    "driver", ["550", "550.1", "550.163.1", "x550.163.01", "550.163.01\n", "\u0665\u0665\u0660.163.01", "a/b"]
)
def test_what_is_no_driver_version_is_a_fault(driver: str) -> None:
    (fault,) = faults(h100().config_raw, DRIVER_VERSION=driver)
    assert fault.startswith("environment: DRIVER_VERSION: must be a driver version such as 550.163.01, not")
