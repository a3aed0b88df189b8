"""The document of -q in the words of the simulated driver, and of each board as a real one told it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from simnode.nvml.cells import CELLS
from simnode.profile import Options, compile_state, load_board
from simnode.state import Refusal, State, Value
from tests.boards import leaves
from tests.conftest import Obtain
from tests.smi.conftest import Smi
from tests.smi.documents import BUILT, COUNTS, FORMS, PLENTY, RETIRED, SECTIONS, same
from tests.smi.nodes import change, node, process, running

BOARDS = ("a100", "b200", "gb200", "gb300", "h100", "l40s", "t4")
Publish = Callable[[State], Path]


@pytest.fixture
def real_of(program: Obtain, libraries: Path) -> Callable[[str], Smi]:
    """Gives the real nvidia-smi of a release."""
    return lambda release: Smi(program(f"nvidia-smi-{release}").path, libraries)


@pytest.mark.parametrize("form", [*FORMS, "sections"])
@pytest.mark.parametrize("release", ["535.261.03", "555.58.02"])
@pytest.mark.parametrize("what", ["idle", "turing", "legacy", "plenty", "erring"])
def test_other_releases_speak_their_dialect(
    what: str, release: str, form: str, publish_state: Publish, real_of: Callable[[str], Smi]
) -> None:
    """Of the releases whose nvidia-smi can be run, each is told as its own tells it."""
    values: dict[str, dict[str, Value]] = {
        "idle": {},
        "turing": COUNTS | RETIRED | {"architecture": 6},
        "legacy": COUNTS | {"architecture": 5},
        "plenty": PLENTY | {"fabric.health_mask": 1},
        "erring": {cell.key: Refusal(999) for cell in CELLS if not cell.key.startswith("pci.")},
    }
    image = publish_state(change(node(2, release), values[what]))
    same(BUILT, real_of(release[:3]), image, *FORMS.get(form, ("-q", "-d", SECTIONS)))


@pytest.mark.parametrize("board", BOARDS)
def test_a_boards_document_is_its_capture(board: str, publish_state: Publish) -> None:
    """Every leaf of every GPU, in order, as a real node with the board's default driver told it."""
    captured = leaves.load(board)
    image = publish_state(compile_state(load_board(board), Options(gpus=len(captured.gpus)), {}))
    told = leaves.parse(BUILT.run("-q", "-x", image=image).output)
    assert (told.driver, told.cuda, len(told.gpus)) == (captured.driver, captured.cuda, len(captured.gpus))
    for ours, theirs in zip(told.gpus, captured.gpus, strict=True):
        # made up in captures, and by us
        assert [leaf for leaf in ours.items() if leaf[0] != "uuid"] == [
            leaf for leaf in theirs.items() if leaf[0] != "uuid"
        ]


ALWAYS = ""
# element: the first release that has it, the first that has it no more
ELEMENTS = {
    "display_attached": ("575.57.08", ALWAYS),
    "pdi": ("580.65.06", ALWAYS),
    "gpu_module_id": (ALWAYS, "565.57.01"),
    "platformInfo": ("565.57.01", ALWAYS),
    "gpu_reset_status": (ALWAYS, "580.65.06"),
    "gpu_recovery_action": ("565.57.01", ALWAYS),
    "clocks_event_reasons_counters": ("575.57.08", ALWAYS),
    "dram_encryption_mode": ("570.124.06", ALWAYS),
    "power_smoothing": ("570.124.06", ALWAYS),
    "edpp_multiplier": ("595.58.03", ALWAYS),
    "voltage": (ALWAYS, "580.65.06"),
    "capabilities": ("555.58.02", ALWAYS),
    "c2c_mode": ("550.163.01", ALWAYS),
    "gpu_memory_power_readings": ("550.163.01", ALWAYS),
    "fabric/health/route_unhealthy": ("570.124.06", ALWAYS),
    "fabric/health/summary": ("580.65.06", ALWAYS),
    "fabric/health/partition_assigned": ("580.173.02", ALWAYS),
    "remapped_rows/remapped_row_corr_inactive": ("580.173.02", ALWAYS),
    "ecc_errors/channel_repair_pending": ("580.65.06", ALWAYS),
    "ecc_errors/unrepairable_memory": ("580.173.02", ALWAYS),
}
RELEASES = (
    *("535.261.03", "550.163.01", "555.58.02", "560.35.03", "565.57.01"),
    *("570.124.06", "575.57.08", "580.65.06", "580.173.02", "595.58.03"),
)


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[: at + 1]) for at in range(len(parts))]


@pytest.mark.parametrize("release", RELEASES)
def test_a_driver_has_its_elements(release: str, publish_state: Publish) -> None:
    """Elements come and go with the driver, and with them the document type."""
    output = BUILT.run("-q", "-x", image=publish_state(node(1, release))).output
    told = {path for leaf in leaves.parse(output).gpus[0] for path in _above(leaf)}
    place = RELEASES.index(release)
    expected = {
        element
        for element, (first, without) in ELEMENTS.items()
        if (first == ALWAYS or place >= RELEASES.index(first))
        and (without == ALWAYS or place < RELEASES.index(without))
    }
    assert told & set(ELEMENTS) == expected
    assert f"nvsmi_device_v{13 if place >= RELEASES.index('580.65.06') else 12}.dtd" in output


@pytest.mark.parametrize(("release", "column"), [("575.57.08", 42), ("580.65.06", 55)])
def test_lines_are_wider_since_580(release: str, column: int, publish_state: Publish) -> None:
    """Labels got more room; those of processes kept to what they had."""
    lines = BUILT.run("-q", image=publish_state(node(1, release))).output.splitlines()
    assert {line.index(": ") for line in lines if ": " in line} == {column}
    busy = msgspec.structs.replace(node(1, release), runtime=running(process(4242), gpus=1).runtime)
    lines = BUILT.run("-q", image=publish_state(busy)).output.splitlines()
    assert {line.index(": ") for line in lines[lines.index("    Processes") + 1 :][:6]} == {42}
