"""A document that is wrong: each fault one line, with file, line and key, and all of them at once."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from simnode.profile import Options, ProfileError, load_board, load_file
from simnode.profile.reading import MAX_BYTES
from tests.profile.documents import SMALL, faults

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
)
TOWER = "".join(f"a{i}: &a{i} {'[' * 20}{f'*a{i - 1}' if i else 'x'}{']' * 20}\n" for i in range(3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "p.yaml: is empty", id="empty"),
        pytest.param("# nothing\n", "p.yaml: is empty", id="only a comment"),
        pytest.param("- a\n", "p.yaml:1: must be a mapping, not a list", id="a list"),
        pytest.param("a: 1\n\tb: 2\n", "p.yaml:2: is not YAML: a tab cannot indent; use spaces", id="tab"),
        pytest.param("a: 1\n---\nb: 2\n", "p.yaml:2: holds more than one document", id="two documents"),
        pytest.param(b"a: 1\nb: \xff\n", "p.yaml:2: is not UTF-8: byte 0xff; save it as UTF-8", id="not UTF-8"),
        pytest.param(b"a: 1\nb: \x00\n", "p.yaml:2: is not YAML: control characters are not allowed", id="NUL"),
        pytest.param(BOMB, "p.yaml:5: a4[7]: holds more than 100000 values, aliases expanded", id="YAML bomb"),
        pytest.param("a: &a [*a]\n", 'p.yaml:1: a[0]: alias "a" refers to nothing before it', id="alias of itself"),
        pytest.param(TOWER, f"p.yaml:2: a1{'[0]' * 20}: is nested more than 32 deep", id="tower of aliases"),
        pytest.param("? [a]\n: 1\n", "p.yaml:1: a key must be a word, not a collection", id="a list as key"),
        pytest.param(
            "version: !!python/name:os.system x\n",
            'p.yaml:1: version: tag "tag:yaml.org,2002:python/name:os.system" does not fit "x"',
            id="foreign tag",
        ),
        pytest.param(
            "a: !!set {x, y}\n",
            'p.yaml:1: a: tag "tag:yaml.org,2002:set" is not one of YAML 1.2\'s core schema',
            id="foreign tag of a collection",
        ),
    ],
)
def test_what_cannot_be_read_is_one_fault(text: str | bytes, expected: str) -> None:
    assert faults(text) == [expected]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "architecture: ampere",
            "name: B\n  architecture: ampere",
            ["p.yaml:5: device_defaults.name: is given twice; the first is on line 4"],
            id="duplicate key",
        ),
        pytest.param(
            "memory:",
            "memroy:",
            [
                "p.yaml:3: device_defaults.memory.total_bytes: is missing",
                'p.yaml:6: device_defaults.memroy: is no known key; did you mean "memory"?',
            ],
            id="unknown key",
        ),
        pytest.param(
            "ampere",
            "amper",
            [
                "p.yaml:5: device_defaults.architecture: must be one of kepler, maxwell, pascal, volta, turing, "
                'ampere, ada, ada_lovelace, hopper, blackwell, not "amper"; did you mean "ampere"?'
            ],
            id="unknown word",
        ),
        pytest.param(
            "550.163.01",
            "../../x",
            ['p.yaml:2: system.driver_version: must be a driver version such as 550.163.01, not "../../x"'],
            id="driver version that is a path",
        ),
        pytest.param(
            "0000:0F:00.0",
            "00000000:07:00.0",
            ["p.yaml:14: devices[1].pci.bus_id: bus id 00000000:07:00.0 is already that of devices[0]"],
            id="two GPUs on one bus id",
        ),
        pytest.param(
            "00000000000b",
            "00000000000A",
            ["p.yaml:13: devices[1].uuid: UUID GPU-00000000-0000-0000-0000-00000000000A is already that of devices[0]"],
            id="two GPUs with one UUID",
        ),
        pytest.param(
            "index: 1",
            "index: 0",
            ["p.yaml:12: devices[1].index: index 0 is already that of devices[0]"],
            id="two GPUs with one index",
        ),
        pytest.param(
            "0000:0F:00.0",
            "../../../etc",
            ['p.yaml:14: devices[1].pci.bus_id: must be a PCI bus id such as 0000:1b:00.0, not "../../../etc"'],
            id="bus id that is a path",
        ),
        pytest.param(
            "42949672960",
            "-1",
            ["p.yaml:6: device_defaults.memory.total_bytes: must be an integer from 0 to 18446744073709551615, not -1"],
            id="negative",
        ),
        pytest.param(
            "42949672960",
            "40 GiB",
            [
                "p.yaml:6: device_defaults.memory.total_bytes: must be an integer from 0 to 18446744073709551615, "
                'not "40 GiB"'
            ],
            id="text for a number",
        ),
        pytest.param(
            "42949672960",
            "9" * 5000,
            ["p.yaml:6: device_defaults.memory.total_bytes: number of 5000 characters"],
            id="absurd number",
        ),
        pytest.param(
            "{total_bytes: 42949672960}",
            "{total_bytes: 10, used_bytes: 8, reserved_bytes: 4}",
            ["p.yaml:6: device_defaults.memory.used_bytes: 8 used and 4 reserved bytes are more than the total of 10"],
            id="memory that does not add up",
        ),
        pytest.param(
            "  name: NVIDIA A100-SXM4-40GB\n",
            "",
            ["p.yaml:3: device_defaults.name: is missing"],
            id="missing key",
        ),
        pytest.param('version: "1.0"\n', "", ["p.yaml:1: version: is missing"], id="missing version"),
        pytest.param(
            '"1.0"',
            '"2.0"',
            ['p.yaml:1: version: must be a schema version that is known: 1.0, not "2.0"'],
            id="version 2",
        ),
        pytest.param(
            "num_devices: 2",
            "num_devices: 65",
            ["p.yaml:2: system.num_devices: must be an integer from 0 to 64, not 65"],
            id="too many GPUs",
        ),
        pytest.param(
            "name: NVIDIA A100-SXM4-40GB",
            'name: "A\\nB"',
            ['p.yaml:4: device_defaults.name: must be printable text, not "A\\nB"'],
            id="line break in a name",
        ),
        pytest.param(
            "devices:\n",
            "pcie_topology: {root_complexes: [{id: pci0000:00, devices: [0000:08:00.0]}]}\ndevices:\n",
            [
                'p.yaml:8: pcie_topology.root_complexes[0].devices[0]: "0000:08:00.0" is the bus id of no device',
            ],
            id="root complex with an unknown device",
        ),
        pytest.param(
            "devices:\n",
            "pcie_topology: {root_complexes: [{id: ../x, cpu_affinity: 5-2}]}\ndevices:\n",
            [
                'p.yaml:8: pcie_topology.root_complexes[0].id: must be a PCI root such as pci0000:00, not "../x"',
                "p.yaml:8: pcie_topology.root_complexes[0].cpu_affinity: "
                'must list CPUs from 0 to 1279, the lower first, not "5-2"',
            ],
            id="root complex that is a path",
        ),
        pytest.param(
            "devices:\n",
            "nvlink: {switches: [{bdf: N/A}]}\n"
            "pcie_topology: {root_complexes: [{id: pci0000:00, devices: [~]}]}\n"
            "devices:\n",
            [
                "p.yaml:8: nvlink.switches[0].bdf: is missing",
                "p.yaml:9: pcie_topology.root_complexes[0].devices[0]: must be a PCI bus id such as 0000:1b:00.0, "
                "not ~",
            ],
            id="nothing where something must be",
        ),
        pytest.param(
            "devices:\n",
            "fabricmanager: {state_dir: /run/../etc}\ndevices:\n",
            ['p.yaml:8: fabricmanager.state_dir: must be an absolute path without . or .., not "/run/../etc"'],
            id="state directory that climbs",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_line_and_what_would_be_right(old: str, new: str, expected: list[str]) -> None:
    assert old in SMALL
    assert faults(SMALL.replace(old, new)) == expected


def test_all_faults_of_a_document_are_reported_at_once() -> None:
    text = (
        SMALL.replace("550.163.01", "../../x")
        .replace("architecture: ampere", "name: B\n  architcture: ampere")
        .replace("0000:0F", "0000:07")
        .replace("42949672960", "1024, used_bytes: 2048")
    )
    assert faults(text) == [
        'p.yaml:2: system.driver_version: must be a driver version such as 550.163.01, not "../../x"',
        "p.yaml:3: device_defaults.architecture: is missing",
        "p.yaml:5: device_defaults.name: is given twice; the first is on line 4",
        'p.yaml:6: device_defaults.architcture: is no known key; did you mean "architecture"?',
        "p.yaml:7: device_defaults.memory.used_bytes: 2048 used and 0 reserved bytes are more than the total of 1024",
        "p.yaml:15: devices[1].pci.bus_id: bus id 0000:07:00.0 is already that of devices[0]",
    ]


@pytest.mark.parametrize(
    ("old", "new", "key", "meant"),
    [
        ("devices:\n", "load: {pattern: steady}\ndevices:\n", "load", "device_defaults.load"),
        ("  name:", "  driver_version: x\n  name:", "device_defaults.driver_version", "system.driver_version"),
        ("  - index: 1", "  - index: 1\n    num_devices: 2", "devices[1].num_devices", "system.num_devices"),
        (
            "  - index: 1",
            "  - index: 1\n    temperature_gpu_c: 5",
            "devices[1].temperature_gpu_c",
            "devices[1].thermal.temperature_gpu_c",
        ),
        (
            "devices:\n",
            "temperatur_gpu_c: 5\ndevices:\n",
            "temperatur_gpu_c",
            "device_defaults.thermal.temperature_gpu_c",
        ),
    ],
)
def test_a_key_in_the_wrong_place_is_told_with_the_right_one(old: str, new: str, key: str, meant: str) -> None:
    (fault,) = faults(SMALL.replace(old, new, 1))
    assert fault.partition(": ")[2] == f'{key}: is no known key; did you mean "{meant}"?'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("ampere", "N/A", "p.yaml:5: device_defaults.architecture: must not be N/A: no device is without it"),
        (
            "  - index: 1",
            "  - index: 1\n    architecture: N/A",
            "p.yaml:13: devices[1].architecture: must not be N/A: no device is without it",
        ),
    ],
)
def test_a_key_that_may_not_be_nothing_is_told_with_its_whole_path(old: str, new: str, expected: str) -> None:
    assert faults(SMALL.replace(old, new)) == [expected]


def test_what_is_missing_is_told_beside_what_is_wrong() -> None:
    """But an option or a variable may say it, and a key that is told to be wrong is not missing, too."""
    text = SMALL.replace('version: "1.0"\n', "").replace("driver_version: 550.163.01, ", "")
    text = text.replace("{total_bytes: 42949672960}", "[1]").replace("  architecture: ampere\n", "")
    missing = ["version", "device_defaults.architecture"]
    assert [fault.split(": ")[1] for fault in faults(text)] == [
        "version",
        "system.driver_version",
        "device_defaults.architecture",
        "device_defaults.memory",
    ]
    for options, environ in (
        (Options(driver_version="550.163.01"), {}),
        (Options(), {"DRIVER_VERSION": "550.163.01"}),
    ):
        found = [fault.split(": ")[1] for fault in faults(text, options, **environ)]
        assert found == [*missing, "device_defaults.memory"]
    assert faults("[1]") == ["p.yaml:1: must be a mapping, not a list"]


@pytest.mark.parametrize("index", ["-3", "64", "99999999999999999999", "x", "[]"])
def test_a_wrong_index_is_a_fault_and_nothing_else(index: str) -> None:
    assert len(faults(SMALL.replace("index: 1", f"index: {index}"))) == 1


def test_a_fault_of_the_defaults_is_said_once_for_all_devices() -> None:
    text = SMALL.replace("42949672960", "0x400, used_bytes: 0x800")
    assert faults(text) == [
        "p.yaml:6: device_defaults.memory.used_bytes: 2048 used and 0 reserved bytes are more than the total of 1024"
    ]


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        (Options(gpus=-1), {}, "--gpus: must be a number of GPUs from 0 to 64, not -1"),
        (Options(gpus=65), {}, "--gpus: must be a number of GPUs from 0 to 64, not 65"),
        (
            Options(driver_version="../../x"),
            {},
            '--driver-version: must be a driver version such as 550.163.01, not "../../x"',
        ),
        (
            Options(driver_version=""),
            {},
            '--driver-version: must be a driver version such as 550.163.01, not ""',
        ),
        (
            Options(),
            {"DRIVER_VERSION": "550"},
            'environment: DRIVER_VERSION: must be a driver version such as 550.163.01, not "550"',
        ),
        (Options(), {"GPU_COUNT": "-3"}, 'environment: GPU_COUNT: must be a number of GPUs from 0 to 64, not "-3"'),
        (Options(), {"NODE_NAME": "a/b"}, 'environment: NODE_NAME: must be a host\'s name, not "a/b"'),
        (Options(), {"SIMNODE_IMEX": "yes"}, 'environment: SIMNODE_IMEX: must be true or false, not "yes"'),
        (
            Options(),
            {"SIMNODE_CAPS_MAJOR": "5000"},
            'environment: SIMNODE_CAPS_MAJOR: must be a device major from 1 to 4095, not "5000"',
        ),
        (Options(overrides=("thermal.tmp=1",)), {}, "--set: thermal.tmp: is no known key"),
        (
            Options(overrides=("utilization.gpuu=1",)),
            {},
            '--set: utilization.gpuu: is no known key; did you mean "gpu"?',
        ),
        (
            Options(overrides=("utilization.gpu=101",)),
            {},
            "--set: utilization.gpu: must be an integer from 0 to 100, not 101",
        ),
        (
            Options(overrides=("mig.max_gpu_instances=9",)),
            {},
            "--set: mig.max_gpu_instances: must be an integer from 0 to 8, not 9",
        ),
        (
            Options(overrides=("retired_pages.single_bit_retirement.count=65",)),
            {},
            "--set: retired_pages.single_bit_retirement.count: must be an integer from 0 to 64, not 65",
        ),
        (Options(overrides=("name=",)), {}, "--set: name: must not be unset: no device is without it"),
        (
            Options(overrides=("uuid=GPU-1",)),
            {},
            "--set: uuid: is what makes a GPU this one, and no runtime value: write it into `devices` of a profile",
        ),
        (Options(overrides=("name=N/A",)), {}, "--set: name: must not be N/A: no device is without it"),
        (Options(overrides=("memory=",)), {}, "--set: memory.total_bytes: must not be unset: no device is without it"),
        (Options(overrides=("gpu",)), {}, '--set: "gpu" must be KEY=VALUE, such as utilization.gpu=50'),
        (
            Options(overrides=("memory.used_bytes=99999999999",)),
            {},
            "--set: memory.used_bytes: 99999999999 used and 0 reserved bytes are more than the total of 42949672960",
        ),
    ],
)
def test_a_wrong_option_is_one_line(options: Options, environ: dict[str, str], expected: str) -> None:
    assert faults(SMALL, options, **environ) == [expected]


@pytest.mark.parametrize(
    ("keys", "option", "expected"),
    [
        (
            "power: {min_limit_mw: 200, max_limit_mw: 700, default_limit_mw: 600}",
            "power.max_limit_mw=300",
            "power.max_limit_mw: leaves power.default_limit_mw wrong: 600 must lie from power.min_limit_mw, 200, to "
            "power.max_limit_mw, 300",
        ),
        (
            "power: {min_limit_mw: 200, max_limit_mw: 700}",
            "power.max_limit_mw=100",
            "power.max_limit_mw: leaves power.min_limit_mw wrong: 200 is more than power.max_limit_mw, 100",
        ),
        (
            "bar1_memory: {total_bytes: 9, used_bytes: 5}",
            "bar1_memory.total_bytes=4",
            "bar1_memory.total_bytes: leaves bar1_memory.used_bytes wrong: 5 is more than the total of 4",
        ),
        (
            "thermal: {slowdown_threshold_c: 80, shutdown_threshold_c: 90}",
            "thermal.shutdown_threshold_c=70",
            "thermal.shutdown_threshold_c: leaves thermal.slowdown_threshold_c wrong: 80 is above "
            "thermal.shutdown_threshold_c, 70",
        ),
        ("load: {min: 50, max: 90}", "load.max=20", "load.max: leaves load.min wrong: 50 is more than load.max, 20"),
    ],
)
def test_an_option_that_contradicts_the_profile_is_blamed_itself(keys: str, option: str, expected: str) -> None:
    text = SMALL.replace("  architecture: ampere", f"  {keys}\n  architecture: ampere")
    assert faults(text, Options(overrides=(option,))) == [f"--set: {expected}"]


def test_a_number_of_gpus_that_is_none_is_the_only_fault() -> None:
    """No bus id is held against a number that nobody knows."""
    text = load_board("t4").text.replace("num_devices: 4", "num_devices: many")
    assert [fault.partition(": ")[2] for fault in faults(text)] == [
        'system.num_devices: must be an integer from 0 to 64, not "many"'
    ]


def test_an_unknown_board_names_the_nearest() -> None:
    with pytest.raises(ProfileError, match=r'^--board: "h10" is no known board; did you mean "h100"\?$'):
        load_board("h10")


def test_a_board_is_no_path() -> None:
    with pytest.raises(ProfileError):
        load_board("../boards/h100")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        expected = {
            "": "is a directory; a profile is a regular file",
            "fifo": "is a FIFO; a profile is a regular file",
            "socket": "is a socket; a profile is a regular file",
            "missing": "no such file or directory",
        }
        for name, message in expected.items():
            with pytest.raises(ProfileError) as raised:
                load_file(tmp_path / name)
            assert str(raised.value) == f"{tmp_path / name}: {message}"


def test_a_device_is_never_opened() -> None:
    with pytest.raises(ProfileError, match=r"^/dev/zero: is a device; a profile is a regular file$"):
        load_file("/dev/zero")


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(200 << 20)
    with pytest.raises(ProfileError, match=r"is larger than 4 MiB"):
        load_file(huge)


def test_a_file_that_says_it_is_empty_is_bounded_too() -> None:
    with pytest.raises(ProfileError) as raised:
        load_file("/proc/self/environ")
    assert len(str(raised.value)) < MAX_BYTES


def test_a_fault_stays_on_one_line_whatever_it_quotes() -> None:
    (line,) = faults(SMALL.replace("ampere", '"\\u2028\\e[31mred\\n"'))
    assert line.isprintable()
