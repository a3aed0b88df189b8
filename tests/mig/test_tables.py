"""The tables against what real machines printed (lgip.tsv), and what must hold of any of them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from simnode.partitions import Cap, MIGProfile, mig_cap
from simnode.profile import Options, boards, compile_state, load_board
from simnode.profile.mig_tables import BOARDS, Board, board_of, profiles_of

with Path(__file__).with_name("lgip.tsv").open() as file:
    LISTED = list(csv.DictReader(file, delimiter="\t"))
IDS = [f"{row['board']} {row['name']}" for row in LISTED]
WITHOUT_MIG = {"l40s", "t4"}


def profiles(device: int, driver: int = 580) -> dict[str, MIGProfile]:
    """The profiles of the board with that PCI device id, by name."""
    board = board_of(device << 16 | 0x10DE)
    assert board is not None
    return {profile.name: profile for profile in profiles_of(board, driver)}


@pytest.mark.parametrize("row", LISTED, ids=IDS)
def test_a_profile_is_what_nvidia_smi_lists(row: dict[str, str]) -> None:
    profile = profiles(int(row["device"], 16))[row["name"]]
    assert f"{profile.memory_mib / 1024:.2f}" == row["gib"]
    numbers = (
        profile.id, profile.instances, profile.multiprocessors, profile.decoders, profile.encoders,
        profile.copy_engines, profile.jpegs, profile.ofas,
    )  # fmt: skip
    assert numbers == tuple(int(row[name]) for name in ("id", "instances", "sm", "dec", "enc", "ce", "jpeg", "ofa"))


def test_a_driver_before_550_tells_less_memory_of_an_h100() -> None:
    assert [profile.memory_mib for profile in profiles(0x2330, 535).values()][:3] == [9856, 9856, 19968]


def test_the_built_in_boards_with_mig_are_in_the_tables_and_no_other_is() -> None:
    for name in boards():
        state = compile_state(load_board(name), Options(gpus=2), {})
        assert bool(state.mig.profiles(0)) == (name not in WITHOUT_MIG)
        assert [table.minors for table in state.mig.tables] == ([] if name in WITHOUT_MIG else [(0, 1)])


@pytest.mark.parametrize("name", sorted(set(boards()) - WITHOUT_MIG))
def test_the_largest_instance_fits_the_board(name: str) -> None:
    state = compile_state(load_board(name), Options(gpus=1), {})
    largest = max(profile.memory_mib for profile in state.mig.profiles(0))
    assert largest << 20 <= state.devices[0].memory_total_bytes


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: f"{board.devices[0]:04X}")
def test_as_many_instances_as_are_told_fit(board: Board) -> None:
    made = profiles_of(board, 580)
    memory = max(profile.memory_mib for profile in made)
    for profile in made:
        assert profile.instances * profile.memory_mib <= memory * 1.02
        assert profile.instances * profile.slices <= board.compute_slices
        assert profile.instances <= len(profile.placements)
        assert max(profile.placements) + profile.size <= max(other.size for other in made)
        assert profile.compute[-1].multiprocessors == profile.multiprocessors
    assert len({profile.id for profile in made}) == len({profile.number for profile in made}) == len(made)


@pytest.mark.parametrize(
    ("device", "starts"),
    [
        (0x2330, {19: "0123456:1", 20: "0123456:1", 15: "0246:2", 14: "024:2", 9: "04:4", 5: "0:4", 0: "0:8"}),
        (0x20B7, {14: "0123:1", 21: "0123:1", 5: "02:2", 6: "02:2", 0: "0:4"}),
    ],
    ids=["seven slices", "A30"],
)
def test_placements(device: int, starts: dict[int, str]) -> None:
    """`nvidia-smi mig -lgipp`."""
    made = {
        profile.id: f"{''.join(map(str, profile.placements))}:{profile.size}" for profile in profiles(device).values()
    }
    assert made == starts


def test_compute_instances_of_each_size() -> None:
    """`nvidia-smi mig -lcip`: profile id, how many, multiprocessors."""
    made = profiles(0x2330)
    listed = {
        name: [(compute.number, compute.instances, compute.multiprocessors) for compute in made[name].compute]
        for name in ("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
    }
    assert listed == {
        "1g.10gb": [(0, 1, 16)],
        "2g.20gb": [(0, 2, 16), (1, 1, 32)],
        "3g.40gb": [(0, 3, 16), (1, 1, 32), (2, 1, 60)],
        "4g.40gb": [(0, 4, 16), (1, 2, 32), (3, 1, 64)],
        "7g.80gb": [(0, 7, 16), (1, 3, 32), (2, 2, 48), (3, 1, 64), (4, 1, 132)],
    }


@pytest.mark.parametrize(
    ("instance", "cap"),
    [
        ((0, 0), Cap("gpu0/gi0/access", 3)),
        ((0, 0, 0), Cap("gpu0/gi0/ci0/access", 4)),
        ((3, 3, 3), Cap("gpu3/gi3/ci3/access", 439)),
        ((6, 11, 7), Cap("gpu6/gi11/ci7/access", 920)),
        ((31, 14, 7), Cap("gpu31/gi14/ci7/access", 4322)),
    ],
    ids=str,
)
def test_minors_are_the_kernel_modules(instance: tuple[int, ...], cap: Cap) -> None:
    assert mig_cap(*instance) == cap
