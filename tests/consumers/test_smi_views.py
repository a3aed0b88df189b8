"""Every view of the real nvidia-smi, in three releases: it ends well, shows no error and says what the profile says."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from simnode.profile import boards
from tests.conftest import Obtain
from tests.consumers.conftest import Ended, Node
from tests.consumers.expected import gpus
from tests.consumers.screens import between, matrix, monitored

pytestmark = pytest.mark.consumer

DRIVERS = {"nvidia-smi-535": "535.261.03", "nvidia-smi-550": "550.163.01", "nvidia-smi-555": "555.58.02"}
SECTIONS = (
    *("MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "COMPUTE", "PIDS", "PERFORMANCE", "VOLTAGE"),
    *("SUPPORTED_CLOCKS", "PAGE_RETIREMENT", "ACCOUNTING", "ENCODER_STATS", "SUPPORTED_GPU_TARGET_TEMP", "FBC_STATS"),
    *("ROW_REMAPPER", "RESET_STATUS"),
)
VIEWS = (
    "-L",
    "-q",
    "-q -x",
    *(f"-q -d {section}" for section in SECTIONS),
    "--query-compute-apps=pid,name,used_memory --format=csv",
    "topo -m",
    "topo -p2p r",
    "nvlink -s",
    "nvlink -c",
    "nvlink -e",
    "nvlink -R",
    "dmon -c 2 -s pucvmet",
    "pmon -c 1 -s um",
)
# nvidia-smi's words for codes that nobody should meet; N/A is no error.
ERRORS = re.compile(
    r"ERR!|Unknown Error|Function Not Found|Invalid Argument|Insufficient (?:Size|Permissions)|Not Found|Timeout"
    r"|GPU is lost|Uninitialized|version mismatch|deprecated|not in ready state"
)
CLOCKS = re.compile(r"(?:Graphics +: |graphics_clock>)Unknown Error")
KEYS = re.compile(r'^"([^"\s]+)"(?: or "([^"\s]+)")?$', re.M)
# The same in the node, where nvidia-smi has the library that even its help needs.
EVERY_KEY = r"""
keys=$("$0" --help-query-gpu | sed -nE 's/^"([^" ]+)"( or "([^" ]+)")?$/\1,\3/p' | tr , '\n' | awk 'NF && !seen[$0]++')
exec "$0" "--query-gpu=$(echo $keys | tr ' ' ,)" --format=csv
"""


@dataclass(frozen=True)
class Shown:
    """What each view showed; the keys that `--help-query-gpu` names, old names by the new, as the view "keys" asked."""

    views: dict[str, Ended]
    keys: dict[str, str]


@pytest.fixture(scope="module", params=DRIVERS)
def shown(request: pytest.FixtureRequest, ordinary: Node, program: Obtain) -> Shown:
    """Every view on a node with the release's own driver."""
    smi, options = program(request.param).path, ("--board", "h100", "--driver-version", DRIVERS[request.param])
    commands: dict[str, list[str | Path]] = {view: [smi, *view.split()] for view in ("--help-query-gpu", *VIEWS)}
    commands["keys"] = ["sh", "-c", EVERY_KEY, smi]
    views = dict(zip(commands, ordinary.several(list(commands.values()), options=options), strict=True))
    named = KEYS.findall(views["--help-query-gpu"].output)
    return Shown(views, {key: names[0] for names in named for key in names if key})


@pytest.mark.parametrize("view", [*VIEWS, "keys"])
def test_a_view_ends_well(shown: Shown, view: str) -> None:
    """Status 0, something on the screen, nothing on standard error, and no word of an error."""
    ended = shown.views[view]
    assert (ended.status, ended.errors) == (0, ""), ended.output
    assert ended.output
    assert ERRORS.findall(ended.output) == []


def test_the_document_is_well_formed(shown: Shown) -> None:
    """`-q -x` parses, and has every GPU."""
    document = ElementTree.fromstring(shown.views["-q -x"].output)
    assert document.findtext("attached_gpus") == str(len(gpus()))
    assert [element.findtext("uuid") for element in document.findall("gpu")] == [gpu.uuid for gpu in gpus()]


def test_every_key_has_a_column_and_every_gpu_a_row(shown: Shown) -> None:
    """All keys that `--help-query-gpu` names, with their old names, in one query."""
    header, *rows = shown.views["keys"].output.splitlines()
    assert len(shown.keys) > 140
    assert [name.partition(" ")[0] for name in header.split(", ")] == list(shown.keys.values())
    assert len(rows) == len(gpus())
    assert {len(row.split(", ")) for row in rows} == {len(shown.keys)}


def test_the_gpus_form_one_nvlink_domain(shown: Shown) -> None:
    """`topo -m`: eighteen links between any two, and CPUs of the nearer socket. `topo -p2p r`: all read one another."""
    topology = shown.views["topo -m"].output
    assert matrix(topology) == between(len(gpus()), "NV18")
    assert matrix(shown.views["topo -p2p r"].output) == between(len(gpus()), "OK")
    assert re.findall(r"\t(\d[-,\d]*)\t(\d)\t\tN/A$", topology, re.M) == [
        *[("0-55,112-167", "0")] * 4,
        *[("56-111,168-223", "1")] * 4,
    ]


def test_every_link_is_up(shown: Shown) -> None:
    """`nvlink`: speed, capabilities, errors and the far end of each of the eighteen."""
    links = len(gpus()) * 18
    assert re.findall(r"Link \d+: (.*)$", shown.views["nvlink -s"].output, re.M) == ["26.562 GB/s"] * links
    assert len(re.findall(r"Link \d+, P2P is supported: true$", shown.views["nvlink -c"].output, re.M)) == links
    assert (
        len(re.findall(r"Link \d+: (?:Replay|Recovery|CRC) Errors: 0$", shown.views["nvlink -e"].output, re.M))
        == 3 * links
    )
    assert (
        len(re.findall(r"Link \d+: Remote Device [0-9A-F:.]+: Link \d+$", shown.views["nvlink -R"].output, re.M))
        == links
    )


def test_monitors_show_an_idle_node(shown: Shown) -> None:
    """`dmon` and `pmon`: a row for every GPU and cycle, no load, no process."""
    rows = monitored(shown.views["dmon -c 2 -s pucvmet"].output)
    assert [(int(row["gpu"]), int(row["pwr"]), int(row["gtemp"])) for row in rows] == [
        (gpu.index, gpu.power // 1000, gpu.temperature) for gpu in gpus()
    ] * 2
    assert {row[column] for row in rows for column in ("sm", "mem", "enc", "dec", "pviol", "tviol")} == {"0"}
    rows = monitored(shown.views["pmon -c 1 -s um"].output)
    assert [row.pop("gpu") for row in rows] == [str(gpu.index) for gpu in gpus()]
    assert {cell for row in rows for cell in row.values()} == {"-"}


@pytest.mark.parametrize("board", boards())
def test_every_view_ends_well_on_every_board(ordinary: Node, program: Obtain, board: str) -> None:
    """The release in the middle, with the driver that the board has by default.

    Where a board has more graphics clocks than nvidia-smi has room for (256), `-q` itself says Unknown Error.
    """
    smi, clocks = program("nvidia-smi-550").path, "--query-supported-clocks=gr --format=csv,noheader -i 0"
    views = [*(view for view in VIEWS if "mon -c" not in view), "-q -d GSP_FIRMWARE_VERSION", clocks]
    ended = dict(
        zip(views, ordinary.several([[smi, *view.split()] for view in views], options=("--board", board)), strict=True)
    )
    if len(ended[clocks].output.splitlines()) > 256:
        ended = {view: replace(one, output=CLOCKS.sub("", one.output)) for view, one in ended.items()}
    assert {view: one for view, one in ended.items() if one.status or ERRORS.search(one.output)} == {}
