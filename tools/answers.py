"""Asks the library what it answers on each built-in board: every function, every field id, every nvidia-ml-py getter.

Each board is published once as it is and, if it can be partitioned, once more with one MIG device on its first GPU. A
function is called with each small number where it takes numbers, and with the tag that it accepts where it takes a
versioned struct, until it answers; what counts is that it answers at all. There is no agent behind the image, so what
would change a GPU ends with NO_PERMISSION. Run it in a process of its own: a loaded library stays loaded.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pynvml

from simnode.nvml.cells import IMAGE
from simnode.nvml.exports import EXPORTS
from simnode.nvml.field_ids import LIMITS, canonical, driver_number
from simnode.nvml.image import Publisher, encode
from simnode.nvml.layout import IMAGE_NAME
from simnode.profile import Options, boards, compile_state, load_board, load_text
from simnode.state import State
from tests.nvml_library.wrappers import getters
from tools.arguments import KINDS

LIBRARY = Path(__file__).resolve().parents[1] / "src" / "simnode" / "_native" / "libnvidia-ml.so"
SUCCESS, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, INSUFFICIENT_SIZE, TIMEOUT, VERSION_MISMATCH = 0, 3, 4, 6, 7, 10, 25
ANSWERS = {SUCCESS, INSUFFICIENT_SIZE, TIMEOUT}
"""INSUFFICIENT_SIZE comes with the count, TIMEOUT from whoever waits for an event."""

LAST = ("nvmlEventSetFree", "nvmlGpmSampleFree", "nvmlShutdown")
"""They end what the others need."""

# A refusal that says more goes before one that says less: this may not, this cannot, there is none.
_TELLING = (NO_PERMISSION, NOT_SUPPORTED, NOT_FOUND)
_ROOM = 1 << 16
_LENGTH = 16
_FEW = 5
_TAGS = [1] + [version << 24 | size for version in range(1, 6) for size in range(8, 8192, 4)]
_PRIVATE_TABLE = bytes.fromhex("c4fe3e6cc98f6c4ea327ee696e12f7c4")
_PROCESS = "processes=[{{pid: {pid}, name: python3, type: C, used_memory_mib: 512, sm_util: 50}}]"

Pointer = ctypes.c_void_p


@dataclass(frozen=True)
class Answers:
    """Of one board: the code of each function, on a partitioned GPU too (none if it cannot be partitioned); the fields
    (id, scope) that have a value; how many of nvidia-ml-py's getters of one handle answer, and how many there are."""

    codes: Mapping[str, int]
    partitioned: Mapping[str, int]
    fields: frozenset[tuple[int, int]]
    getters: tuple[int, int]


class _FieldValue(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("times", ctypes.c_longlong * 2),
        ("type", ctypes.c_uint),
        ("code", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    )


class Session:
    """The library, initialised on one State, and one of everything that its functions take."""

    def __init__(self, library: ctypes.CDLL, state: State, tags: dict[str, int | None]) -> None:
        self._library = library
        self._tags = tags
        self._memory = [ctypes.create_string_buffer(_ROOM) for _ in range(4)]
        library.nvmlInit_v2()
        first = state.devices[0]
        address = [int(part, 16) for part in first.pci_bus_id.partition(".")[0].split(":")]
        self._gpu = self._made("nvmlDeviceGetHandleByIndex_v2", 0)
        self._handles = [self._gpu]
        mig = self._made("nvmlDeviceGetMigDeviceHandleByIndex", self._gpu, 0)
        if mig:
            self._handles.append(mig)
        instance = state.mig.gpus[0].gpu_instances[0].id if state.mig.gpus else 0
        self._numbers = (*range(_FEW), instance)
        gpu_instance = self._made("nvmlDeviceGetGpuInstanceById", self._gpu, instance)
        clocks = (ctypes.c_uint * 8)()
        library.nvmlDeviceGetSupportedMemoryClocks(self._gpu, ctypes.byref(ctypes.c_uint(8)), clocks)
        samples = [self._made("nvmlGpmSampleAlloc") for _ in range(2)]
        for sample in samples:
            library.nvmlGpmSampleGet(self._gpu, sample)
        self._given: dict[str, object] = {
            "d": self._made("nvmlDeviceGetHandleByIndex_v2", 1),
            "i": gpu_instance,
            "I": self._made("nvmlGpuInstanceGetComputeInstanceById", gpu_instance, 0),
            "e": self._made("nvmlEventSetCreate"),
            "g": samples[0],
            "m": _metrics(*samples),
            "c": clocks[0],
            "p": bytes(16) + b"".join(part.to_bytes(4, "little") for part in address) + bytes(40),
            "S": first.serial.encode(),
            "U": first.uuid.encode(),
            "V": (0x01000034).to_bytes(4, "little") + (1).to_bytes(4, "little") + first.uuid.encode() + bytes(8),
            "P": first.pci_bus_id.encode(),
            "T": _PRIVATE_TABLE,
            "L": _LENGTH,
            "#": os.getpid(),
            "-": None,
            "0": 0,
            "1": 1,
        }

    def _made(self, name: str, *arguments: object) -> Pointer:
        out = Pointer()
        getattr(self._library, name)(*arguments, ctypes.byref(out))
        return out

    def ask(self, name: str) -> int:
        """SUCCESS or alike if it answers for any of the numbers and handles, else its most telling refusal."""
        kinds = KINDS.get(name, "")
        refusals: list[int] = []
        for handle in self._handles if "h" in kinds else self._handles[:1]:
            for numbers in itertools.product(self._numbers, repeat=kinds.count("n")):
                code = self._tagged(name, kinds, handle, numbers)
                if code in ANSWERS:
                    return code
                refusals.append(code)
        return next((code for code in _TELLING if code in refusals), refusals[0])

    def _tagged(self, name: str, kinds: str, handle: Pointer, numbers: tuple[int, ...]) -> int:
        tag = self._tags.get(name)
        code = self._call(name, kinds, handle, numbers, tag or 0)
        if code != VERSION_MISMATCH or name in self._tags:
            return code
        for tag in _TAGS:
            if (code := self._call(name, kinds, handle, numbers, tag)) != VERSION_MISMATCH:
                self._tags[name] = tag
                return code
        self._tags[name] = None
        return code

    def _call(self, name: str, kinds: str, handle: Pointer, numbers: tuple[int, ...], tag: int) -> int:
        rest, memory = iter(numbers), iter(self._memory)
        arguments: list[object] = []
        for kind in kinds:
            if kind == "*":
                room = next(memory)
                ctypes.memset(room, 0, 64)
                if tag and not any(isinstance(argument, ctypes.Array) for argument in arguments):
                    ctypes.memmove(room, tag.to_bytes(4, "little"), 4)
                arguments.append(room)
            elif kind in "hn":
                arguments.append(handle if kind == "h" else next(rest))
            else:
                arguments.append(self._given[kind])
        function = getattr(self._library, name)
        if name == "nvmlErrorString":
            function.restype = ctypes.c_char_p
            return SUCCESS if function(*arguments) else NOT_SUPPORTED
        return int(function(*arguments))

    def fields(self, driver: int, scopes: Mapping[int, frozenset[int]]) -> Iterator[tuple[int, int]]:
        """The fields that have a value, by the newest header's numbers; `scopes` are the ones to ask for, else 0."""
        for number in range(1, max(limit for first, limit in LIMITS if first <= driver)):
            newest = canonical(driver, number)
            for scope in sorted(scopes.get(newest or 0, frozenset({0}))):
                value = _FieldValue(number, scope)
                self._library.nvmlDeviceGetFieldValues(self._gpu, 1, ctypes.byref(value))
                if newest is not None and value.code == SUCCESS:
                    yield newest, scope

    def end(self) -> dict[str, int]:
        """What every function gives; after this there is no session."""
        codes = {name: self.ask(name) for name in [*sorted(set(EXPORTS) - set(LAST)), *LAST]}
        while self._library.nvmlShutdown() == SUCCESS:
            pass
        return codes

    def getters(self) -> tuple[int, int]:
        """How many of nvidia-ml-py's getters of one handle answer, and how many there are."""
        pynvml.nvmlLib = self._library
        pynvml.nvmlInit()
        device, answered, refused = pynvml.nvmlDeviceGetHandleByIndex(0), 0, 0
        for name in getters():
            try:
                getattr(pynvml, name)(device)
            except pynvml.NVMLError_FunctionNotFound:
                continue  # of a release that is newer than the library's functions
            except pynvml.NVMLError:
                refused += 1
            else:
                answered += 1
        return answered, answered + refused


def _metrics(first: Pointer, second: Pointer) -> ctypes.Array[ctypes.c_char]:
    """A request for one GPM metric, the utilisation of the GPU."""
    head = (1).to_bytes(4, "little") + (1).to_bytes(4, "little")
    samples = b"".join((sample.value or 0).to_bytes(8, "little") for sample in (first, second))
    return ctypes.create_string_buffer(head + samples + (1).to_bytes(4, "little"), 256)


def states(board: str) -> tuple[State, State | None]:
    """The board with a process on each GPU; and so with its first GPU partitioned, if it can be."""
    options = Options(overrides=(_PROCESS.format(pid=os.getpid()),))
    document = load_board(board)
    state = compile_state(document, options, {})
    if not state.mig.tables:
        return state, None
    section = f"mig: {{gpus: [{{gpu_instances: [{{profile: {state.mig.tables[0].profiles[0].name}}}]}}]}}\n"
    return state, compile_state(load_text(document.raw + section.encode(), "board"), options, {})


def collect(folder: Path, scopes: Mapping[int, frozenset[int]]) -> dict[str, Answers]:
    """Every board's, with images in `folder`; `scopes` has the scopes to ask for of the field ids that have several."""
    os.environ["SIMNODE_IMAGE"] = str(folder)
    path = folder / IMAGE_NAME
    with path.open("wb") as file:
        file.truncate(IMAGE.size)
    publisher, library = Publisher(path), ctypes.CDLL(str(LIBRARY))
    tags: dict[str, int | None] = {}
    found = {}
    for board in boards():
        plain, partitioned = states(board)
        publisher.publish(encode(plain))
        session = Session(library, plain, tags)
        fields = frozenset(session.fields(driver_number(plain.software.driver_version), scopes))
        of_getters, codes, more = session.getters(), session.end(), {}
        if partitioned is not None:
            publisher.publish(encode(partitioned))
            more = Session(library, partitioned, tags).end()
        found[board] = Answers(codes, more, fields, of_getters)
    publisher.close()
    return found
