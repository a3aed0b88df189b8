"""What each board answers through getters that no other room names: the numbers of its capture, refusals among them.

Every row is asked thrice more: without a place for the answer, of a GPU that is lost, and before nvmlInit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache

import pytest
from msgspec.structs import replace

from simnode.profile import Options, compile_state, load_board
from simnode.state import State
from tests.nvml_library.conftest import (
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    SUCCESS,
    UNINITIALIZED,
    Handle,
    Library,
    Scene,
)

BOARDS = ("a100", "b200", "gb200", "gb300", "h100", "l40s", "t4")
LINKED = ("a100", "b200", "gb200", "gb300", "h100")
REFUSED = NOT_SUPPORTED
PERIOD_US = 167_000

Answer = int | str | tuple[int, ...]
Row = tuple[str, str, tuple[object, ...], dict[str, Answer]]


@cache
def state(board: str) -> State:
    """Two GPUs of a board."""
    return compile_state(load_board(board), Options(gpus=2), {})


def everywhere(answer: Answer, boards: Iterable[str] = BOARDS) -> dict[str, Answer]:
    """The same on these boards, refused on the others."""
    return dict.fromkeys(BOARDS, REFUSED) | dict.fromkeys(boards, answer)


def by_board(*answers: Answer) -> dict[str, Answer]:
    return dict(zip(BOARDS, answers, strict=True))


ROWS: list[Row] = [
    ("GetCudaComputeCapability", "ii", (), by_board((8, 0), (10, 0), (10, 0), (10, 3), (9, 0), (8, 9), (7, 5))),
    ("GetGspFirmwareMode", "II", (), everywhere((1, 1))),
    ("GetGspFirmwareVersion", "s", (), by_board(
        "570.148.08", "580.105.08", "580.173.02", "580.173.02", "580.105.08", "595.91.07", "595.91.07")),
    ("GetLastBBXFlushTime", "QL", (), by_board(
        REFUSED, REFUSED, (1787268780497000, 61655), (1787262948288000, 69751), (1787237943740000, 93088),
        REFUSED, REFUSED)),
    # Since Hopper, says nvml.h, and so do the captures whose driver knows it: GB200, GB300, and L40S, which refuses.
    ("GetUnrepairableMemoryFlag_v1", "I", (), everywhere((0,), ("b200", "gb200", "gb300", "h100"))),
    ("GetBBXTimeData_v1", "I", (), everywhere(REFUSED)),
    # The driver keeps the memory of the Grace boards for itself: CoherentGPUMemoryMode in its params is "driver".
    ("GetNumaNodeId", "I", (), everywhere(REFUSED)),
    ("GetAdaptiveClockInfoStatus", "I", (), everywhere((1,), set(BOARDS) - {"t4"})),
    ("GetPowerSource", "I", (), everywhere((0,))),
    ("GetBusType", "I", (), everywhere((2,))),
    ("GetPcieLinkMaxSpeed", "I", (), by_board((4,), (5,), (5,), (6,), (5,), (4,), (3,))),
    *((name, "II", (), everywhere((0, PERIOD_US))) for name in (
        "GetEncoderUtilization", "GetDecoderUtilization", "GetJpgUtilization", "GetOfaUtilization")),
    *(("GetEncoderCapacity", "I", (codec,), everywhere((100,))) for codec in range(3)),
    # A pointer to no buffer is what asks for the number.
    *((name, "I-", (), everywhere((0,))) for name in (
        "GetEncoderSessions", "GetFBCSessions", "GetAccountingPids", "GetGraphicsRunningProcesses_v3",
        "GetMPSComputeRunningProcesses_v3")),
    ("GetFBCStats", "III", (), everywhere((0, 0, 0))),
    ("GetConfComputeProtectedMemoryUsage", "QQQ", (), everywhere((0, 0, 0))),
    # count; controller (the GPU's own), coldest, hottest, now, target (the GPU)
    *(("GetThermalSettings", "Iiiiii", (sensor,), by_board(*((1, 1, 0, most, now, 1) for most, now in (
        (85, 33), (88, 39), (87, 27), (87, 38), (87, 29), (88, 29), (85, 33))))) for sensor in (0, 15)),
    *(("GetNvLinkErrorCounter", "Q", (0, counter), everywhere((0,), LINKED)) for counter in range(5)),
]  # fmt: skip
IN_ONE = {"GetFBCStats", "GetConfComputeProtectedMemoryUsage", "GetThermalSettings"}
"""These fill one struct; the others have a parameter for each number."""
TYPES = {"i": ctypes.c_int, "I": ctypes.c_uint, "Q": ctypes.c_ulonglong, "L": ctypes.c_ulong}


def ask(library: Library, handle: Handle, row: Row, *, places: bool = True) -> Answer:
    """What a row's function answers, or its code; without places, with a null pointer for the last of them."""
    name, form, before, _ = row
    function, numbers = f"nvmlDevice{name}", form.rstrip("-")
    outs: Sequence[ctypes.Array[ctypes.c_char] | ctypes.Structure | ctypes._SimpleCData[int]]
    if form == "s":
        outs = [ctypes.create_string_buffer(b"?" * 64)]
    elif name in IN_ONE:
        fields = [(f"f{at}", TYPES[letter]) for at, letter in enumerate(numbers)]
        # Room behind it, as the real structs of sensors have.
        made = type(name, (ctypes.Structure,), {"_fields_": [*fields, ("rest", ctypes.c_char * 64)]})
        outs = [made()]
    else:
        outs = [TYPES[letter](0) for letter in numbers]
    pointers = [*map(ctypes.byref, outs)]
    given = [*pointers[:-1], pointers[-1] if places else None, *[None] * form.count("-")]
    code = library.code(function, handle, *before, *given)
    if code != SUCCESS:
        return code
    if form == "s":
        return str(outs[0].value.decode())  # type: ignore[union-attr]
    if name in IN_ONE:
        return tuple(int(getattr(outs[0], f"f{at}")) for at in range(len(numbers)))
    return tuple(int(out.value) for out in outs)


def answers(library: Library, handle: Handle, **how: bool) -> dict[tuple[str, tuple[object, ...]], Answer]:
    return {(row[0], row[2]): ask(library, handle, row, **how) for row in ROWS}


def expected(board: str) -> dict[tuple[str, tuple[object, ...]], Answer]:
    return {(name, before): answer[board] for name, _, before, answer in ROWS}


@pytest.mark.parametrize("board", BOARDS)
def test_a_board_answers_what_its_capture_says(scene: Scene, board: str) -> None:
    library = scene.start(state(board))
    assert answers(library, library.handle()) == expected(board)


@pytest.mark.parametrize("board", ["gb300", "t4"])
def test_without_a_place_for_the_answer_nothing_is_answered(scene: Scene, board: str) -> None:
    library = scene.start(state(board))
    found = answers(library, library.handle(), places=False)
    assert {key: code for key, code in found.items() if code not in (INVALID_ARGUMENT, REFUSED)} == {}
    answering = {key for key, answer in expected(board).items() if answer != REFUSED}
    assert {key for key in answering if found[key] != INVALID_ARGUMENT} == set()


def lost(made: State) -> State:
    """The same with its first GPU off the bus."""
    first, *others = made.runtime.devices
    return replace(made, runtime=replace(made.runtime, devices=(replace(first, lost=GPU_IS_LOST), *others)))


def test_a_lost_gpu_answers_that_it_is(scene: Scene) -> None:
    library = scene.start(state("gb200"))
    handle, other = library.handle(), library.handle(1)
    scene.publish(lost(state("gb200")))
    assert set(answers(library, handle).values()) == {GPU_IS_LOST}
    assert ask(library, other, ROWS[0]) == (10, 0)


def test_before_init_nothing_is_answered(scene: Scene) -> None:
    handle = scene.start(state("gb200")).handle()
    scene.library.stop()
    assert set(answers(scene.library, handle).values()) == {UNINITIALIZED}


@pytest.mark.parametrize(
    ("name", "before", "code"),
    [
        ("GetEncoderCapacity", (3,), INVALID_ARGUMENT),
        ("GetEncoderCapacity", (255,), INVALID_ARGUMENT),
        ("GetThermalSettings", (1,), INVALID_ARGUMENT),
        ("GetThermalSettings", (16,), INVALID_ARGUMENT),
        ("GetNvLinkErrorCounter", (0, 5), INVALID_ARGUMENT),
        ("GetNvLinkErrorCounter", (36, 0), INVALID_ARGUMENT),
        ("GetNvLinkErrorCounter", (18, 0), NOT_SUPPORTED),
    ],
)
def test_what_no_board_has_is_a_wrong_argument(scene: Scene, name: str, before: tuple[int, ...], code: int) -> None:
    library = scene.start(state("gb200"))
    assert library.code(f"nvmlDevice{name}", library.handle(), *before, ctypes.create_string_buffer(64)) == code


@pytest.mark.parametrize("board", BOARDS)
def test_two_gpus_are_two_boards_and_reach_each_other_over_nvlink(scene: Scene, board: str) -> None:
    library = scene.start(state(board))
    first, second = library.handle(0), library.handle(1)
    same = "nvmlDeviceOnSameBoard"
    assert [library.number(same, first, other) for other in (first, second)] == [1, 0]
    peers = {library.number("nvmlDeviceGetP2PStatus", first, second, capability) for capability in range(5)}
    assert (peers == {0}) is (board in LINKED)
    assert {library.number("nvmlDeviceGetP2PStatus", first, first, capability) for capability in range(5)} == {0}


def test_a_board_whose_memory_is_a_numa_node_says_which(scene: Scene) -> None:
    """As a Grace tray does whose driver puts the GPUs' memory on line: 2 and 10 in a public capture."""
    made = compile_state(load_board("gb200"), Options(gpus=2, overrides=("numa_node=2",)), {})
    library = scene.start(made)
    assert [library.number("nvmlDeviceGetNumaNodeId", library.handle(index)) for index in range(2)] == [2, 2]
