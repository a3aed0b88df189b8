"""The tables of docs/boards.md are what the boards are."""

from __future__ import annotations

from pathlib import Path

from simnode.profile import Options, boards, compile_state, load_board
from simnode.state import State, Value

PAGE = Path(__file__).parents[2] / "docs" / "boards.md"
MIB = 1 << 20


def nvlink(state: State) -> str:
    """Links of a GPU, what each carries in a direction, and where they lead."""
    links = state.runtime.devices[0].links
    if not links:
        return "none"
    switches = len({link.remote_index for link in links})
    where = f"{switches} NVSwitches" if state.switches else f"{switches} NVSwitches off the PCI bus"
    return f"{len(links)} x {state.fabric.bandwidth_per_link_mbps / 1000:.3f} GB/s to {where}"


def limits(values: dict[str, Value]) -> str:
    """Shutdown, slowdown and highest operating temperature as nvidia-smi shows them."""
    names = ("shutdown", "slowdown", "max_operating")
    if "thermal.tlimit.shutdown_c" in values:
        return "T.Limit " + ", ".join(f"{values[f'thermal.tlimit.{name}_c']}" for name in names) + " °C"
    keys = ("thermal.shutdown_threshold_c", "thermal.slowdown_threshold_c", "thermal.max_operating_c")
    return ", ".join(str(values[key]) for key in keys) + " °C"


def rows(board: str) -> tuple[str, str]:
    """The lines of a board in the two tables."""
    state = compile_state(load_board(board), Options(), {})
    first, values = state.devices[0], dict(state.runtime.devices[0].values)
    draw = values["power.default_limit_mw"]
    assert isinstance(draw, int)
    node = (
        first.name,
        str(len(state.devices)),
        f"{first.memory_total_bytes // MIB} MiB",
        f"{state.software.driver_version}, CUDA {state.software.cuda_version}",
        " ".join(device.pci_bus_id.removeprefix("0000:").removesuffix(":00.0") for device in state.devices),
    )
    gpu = (nvlink(state), f"{draw // 1000} W", limits(values), "yes" if "mig.mode_current" in values else "no")
    return f"| `{board}` | {' | '.join(node)} |", f"| `{board}` | {' | '.join(gpu)} |"


def test_the_tables_are_what_the_boards_are() -> None:
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert shown == [line for table in zip(*map(rows, boards()), strict=True) for line in table]
