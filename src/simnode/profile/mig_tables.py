"""How each board with MIG can be partitioned: the rows of a real `nvidia-smi mig -lgip`, and the rules for placements.

Memory, multiprocessors and engines are those that real machines printed for the board; figures of the large Blackwell
profiles that nobody has published follow from the smaller ones and the board's memory. Numbers, ids and placements
depend only on whether the board has seven compute slices or four. Names alone mean nothing: boards share some.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from simnode.partitions import MIGComputeProfile, MIGProfile

MEMORY_SLICES = {7: 8, 4: 4}
"""Memory slices of a board by its compute slices."""

# by NVML_GPU_INSTANCE_PROFILE_*: id, compute slices, instances, memory slices, placements; in the order of -lgip
_SEVEN = {
    0x0: (19, 1, 7, 1, (0, 1, 2, 3, 4, 5, 6)),
    0x7: (20, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
    0x9: (15, 1, 4, 2, (0, 2, 4, 6)),
    0x1: (14, 2, 3, 2, (0, 2, 4)),
    0x2: (9, 3, 2, 4, (0, 4)),
    0x3: (5, 4, 1, 4, (0,)),
    0x4: (0, 7, 1, 8, (0,)),
}
_FOUR = {
    0x0: (14, 1, 4, 1, (0, 1, 2, 3)),
    0x7: (21, 1, 1, 1, (0, 1, 2, 3)),
    0x1: (5, 2, 2, 2, (0, 2)),
    0x8: (6, 2, 1, 2, (0, 2)),
    0x3: (0, 4, 1, 4, (0,)),
}
_FOUR_WITH_GRAPHICS = {
    0x0: (14, 1, 4, 1, (0, 1, 2, 3)),
    0x7: (21, 1, 1, 1, (0, 1, 2, 3)),
    0xA: (47, 1, 4, 1, (0, 1, 2, 3)),
    0xF: (65, 1, 1, 1, (0, 1, 2, 3)),
    0xD: (67, 1, 4, 1, (0, 1, 2, 3)),
    0x1: (5, 2, 2, 2, (0, 2)),
    0xB: (35, 2, 2, 2, (0, 2)),
    0x10: (64, 2, 1, 2, (0, 2)),
    0xE: (66, 2, 2, 2, (0, 2)),
    0x3: (0, 4, 1, 4, (0,)),
    0xC: (32, 4, 1, 4, (0,)),
}
_Geometry = Mapping[int, tuple[int, int, int, int, tuple[int, ...]]]

# of a GPU instance with so many compute slices: number, slices, placements of each compute-instance profile
_COMPUTE = {
    1: ((0, 1, (0,)),),
    2: ((0, 1, (0, 1)), (1, 2, (0,))),
    3: ((0, 1, (0, 1, 2)), (1, 2, (0,)), (2, 3, (0,))),
    4: ((0, 1, (0, 1, 2, 3)), (1, 2, (0, 2)), (3, 4, (0,))),
    7: ((0, 1, (0, 1, 2, 3, 4, 5, 6)), (1, 2, (0, 2, 4)), (2, 3, (0, 4)), (3, 4, (0,)), (4, 7, (0,))),
}


class Board(Struct, frozen=True, eq=False):
    """Rows in the order of its geometry: name, MiB, multiprocessors, decoders, copy engines, JPEG, OFA, encoders.

    `devices` are PCI device ids; `before_550` is the memory that drivers before 550 told, where it was another.
    """

    devices: tuple[int, ...]
    geometry: _Geometry
    rows: tuple[tuple[str, int, int, int, int, int, int, int], ...]
    before_550: tuple[int, ...] = ()

    @property
    def compute_slices(self) -> int:
        """Compute slices of the whole board."""
        return max(slices for _, slices, *_ in self.geometry.values())


def _ampere(names: str, memory: tuple[int, int, int, int]) -> tuple[tuple[str, int, int, int, int, int, int, int], ...]:
    one, me, double, two, three, four, seven = names.split()
    eighth, quarter, half, full = memory
    return (
        (one, eighth, 14, 0, 1, 0, 0, 0),
        (me, eighth, 14, 1, 1, 1, 1, 0),
        (double, quarter, 14, 1, 1, 0, 0, 0),
        (two, quarter, 28, 1, 2, 0, 0, 0),
        (three, half, 42, 2, 3, 0, 0, 0),
        (four, half, 56, 2, 4, 0, 0, 0),
        (seven, full, 98, 5, 7, 1, 1, 0),
    )


def _hopper(
    names: str, memory: tuple[int, int, int, int], processors: str = "16 26 32 60 64 132", copy: str = "1 1 2 3 4 8"
) -> tuple[tuple[str, int, int, int, int, int, int, int], ...]:
    one, me, double, two, three, four, seven = names.split()
    eighth, quarter, half, full = memory
    sm = [int(number) for number in processors.split()]
    ce = [int(number) for number in copy.split()]
    return (
        (one, eighth, sm[0], 1, ce[0], 1, 0, 0),
        (me, eighth, sm[0], 1, ce[0], 1, 1, 0),
        (double, quarter, sm[1], 1, ce[1], 1, 0, 0),
        (two, quarter, sm[2], 2, ce[2], 2, 0, 0),
        (three, half, sm[3], 3, ce[3], 3, 0, 0),
        (four, half, sm[4], 4, ce[4], 4, 0, 0),
        (seven, full, sm[5], 7, ce[5], 7, 1, 0),
    )


_80GB = "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"
_94GB = "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"
_H100, _H100_BEFORE = (9984, 20096, 40448, 81152), (9856, 9856, 19968, 19968, 40192, 40192, 80896)
_BLACKWELL_COPY = "2 2 4 6 8 16"

BOARDS = (
    Board(  # A100 40GB, A800 40GB
        (0x20B0, 0x20B1, 0x20F1, 0x20F6),
        _SEVEN,
        _ampere("1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb", (4864, 9856, 19968, 40192)),
    ),
    Board(  # A100 80GB, A800 80GB
        (0x20B2, 0x20B5, 0x20F3, 0x20F5),
        _SEVEN,
        _ampere(_80GB, (9728, 19968, 40192, 80896)),
    ),
    Board(  # A30
        (0x20B7,),
        _FOUR,
        (
            ("1g.6gb", 5952, 14, 1, 1, 0, 0, 0),
            ("1g.6gb+me", 5952, 14, 1, 1, 1, 1, 0),
            ("2g.12gb", 11968, 28, 2, 2, 0, 0, 0),
            ("2g.12gb+me", 11968, 28, 2, 2, 1, 1, 0),
            ("4g.24gb", 24000, 56, 4, 4, 1, 1, 0),
        ),
    ),
    Board((0x2330, 0x2322, 0x2324), _SEVEN, _hopper(_80GB, _H100), _H100_BEFORE),  # H100 and H800 80GB, SXM
    Board((0x2331,), _SEVEN, _hopper(_80GB, _H100, "14 14 30 46 62 114"), _H100_BEFORE),  # H100 PCIe
    Board(  # H100 NVL, H800 NVL
        (0x2321, 0x233A),
        _SEVEN,
        _hopper(_94GB, (11008, 22144, 47488, 95360)),
    ),
    Board(  # H200, H200 NVL
        (0x2335, 0x233B),
        _SEVEN,
        _hopper("1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb", (16384, 33024, 71168, 143360)),
    ),
    Board(  # B200
        (0x2901,),
        _SEVEN,
        _hopper(
            "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
            (22528, 45312, 91136, 182784),
            "18 30 36 70 72 148",
            _BLACKWELL_COPY,
        ),
    ),
    Board(  # GB200
        (0x2941,),
        _SEVEN,
        _hopper(
            "1g.23gb 1g.23gb+me 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb",
            (22528, 46592, 94208, 188416),
            "18 32 38 72 76 152",
            _BLACKWELL_COPY,
        ),
    ),
    Board(  # GB300
        (0x31C2,),
        _SEVEN,
        _hopper(
            "1g.35gb 1g.35gb+me 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
            (34816, 70400, 141312, 283648),
            "20 34 40 76 80 160",
            _BLACKWELL_COPY,
        ),
    ),
    Board(  # RTX PRO 6000 Blackwell
        (0x2BB5,),
        _FOUR_WITH_GRAPHICS,
        (
            ("1g.24gb", 24192, 46, 1, 1, 1, 0, 1),
            ("1g.24gb+me", 24192, 46, 1, 1, 1, 1, 1),
            ("1g.24gb+gfx", 24192, 46, 1, 1, 1, 0, 1),
            ("1g.24gb+me.all", 24192, 46, 4, 1, 4, 1, 4),
            ("1g.24gb-me", 24192, 46, 0, 1, 0, 0, 0),
            ("2g.48gb", 48512, 94, 2, 2, 2, 0, 2),
            ("2g.48gb+gfx", 48512, 94, 2, 2, 2, 0, 2),
            ("2g.48gb+me.all", 48512, 94, 4, 2, 4, 1, 4),
            ("2g.48gb-me", 48512, 94, 0, 2, 0, 0, 0),
            ("4g.96gb", 97280, 188, 4, 4, 4, 1, 4),
            ("4g.96gb+gfx", 97280, 188, 4, 4, 4, 1, 4),
        ),
    ),
)
_VENDOR = 0x10DE
_DRIVER_OF_NEWER_MEMORY = 550
_BY_DEVICE = {device: board for board in BOARDS for device in board.devices}


def board_of(pci_device_id: int) -> Board | None:
    """The board of that PCI id (`device << 16 | vendor`); None if it has no MIG."""
    return _BY_DEVICE.get(pci_device_id >> 16) if pci_device_id & 0xFFFF == _VENDOR else None


@cache
def profiles_of(board: Board, driver: int) -> tuple[MIGProfile, ...]:
    """The profiles of a board under that release of the driver, the very same value each time."""
    older = board.before_550 if board.before_550 and driver < _DRIVER_OF_NEWER_MEMORY else ()
    memory = older or tuple(row[1] for row in board.rows)
    slice_processors = board.rows[0][2]
    made = []
    for (number, (profile_id, slices, instances, size, places)), row, mib in zip(
        board.geometry.items(), board.rows, memory, strict=True
    ):
        name, _, processors, decoders, copy_engines, jpegs, ofas, encoders = row
        made.append(
            MIGProfile(
                number=number,
                id=profile_id,
                name=name,
                slices=slices,
                instances=instances,
                size=size,
                placements=places,
                memory_mib=mib,
                multiprocessors=processors,
                copy_engines=copy_engines,
                decoders=decoders,
                encoders=encoders,
                jpegs=jpegs,
                ofas=ofas,
                compute=tuple(
                    MIGComputeProfile(
                        number=compute,
                        name=name if part == slices else f"{part}c.{name}",
                        slices=part,
                        instances=len(starts),
                        multiprocessors=processors if part == slices else part * slice_processors,
                        placements=starts,
                    )
                    for compute, part, starts in _COMPUTE[slices]
                ),
            )
        )
    return tuple(made)
