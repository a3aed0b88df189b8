"""What the file offers, by dlsym and by cuGetProcAddress, and what everything answers that would compute."""

from __future__ import annotations

import re

import msgspec
import pytest
from cuda.bindings.driver import CUresult

import elf
from simnode.state import SoftwareVersions
from tests.cuda.conftest import INVALID_VALUE, LIBRARY, NOT_FOUND, NOT_INITIALIZED, NOT_SUPPORTED, ROOT, SUCCESS, Scene
from tests.nvml.nodes import node, runtime

ENTRIES = [
    (name, int(version))
    for name, version in re.findall(r"^ENTRY\((\w+), (\d+)\)$", (ROOT / "native/cuda/entries.inc").read_text(), re.M)
]
ANSWERED = {
    "cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuGetProcAddress", "cuGetProcAddress_v2",
    "cuDeviceGet", "cuDeviceGetCount", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceGetUuid_v2", "cuDeviceTotalMem",
    "cuDeviceTotalMem_v2", "cuDeviceGetAttribute", "cuDeviceGetProperties", "cuDeviceComputeCapability",
    "cuDeviceGetPCIBusId", "cuDeviceGetByPCIBusId", "cuDeviceCanAccessPeer", "cuDeviceGetP2PAttribute",
    "cuDevicePrimaryCtxGetState", "cuCtxGetCurrent", "cuCtxGetDevice",
}  # fmt: skip
FOUND, ABSENT, NEWER = 0, 1, 2

ONE = node(runtime())
OLD = msgspec.structs.replace(ONE, software=SoftwareVersions("550.163.01", "12.550.163.01", "12.4"))


def test_the_file_exports_the_list_and_nothing_else() -> None:
    """The list is in the order in which it is searched."""
    names = [name for name, _ in ENTRIES]
    assert names == sorted(set(names))
    assert elf.exports(LIBRARY) == set(names)


def test_whatever_would_compute_is_refused(scene: Scene) -> None:
    """Before cuInit like everything, and afterwards for good."""
    refused = sorted({name for name, _ in ENTRIES} - ANSWERED)
    scene.publish(ONE)
    program = f"""
names = {refused}
before = {{cuda[name]() for name in names}}
seen()
show([sorted(before), sorted({{cuda[name]() for name in names}})])"""
    assert scene.run(program) == [[NOT_INITIALIZED], [NOT_SUPPORTED]]


LOOK = """
def look(symbol, version, flags=0, v2=True):
    "The code, the symbol whose address it is, and the status."
    found, status = c_void_p(77), c_int(-1)
    arguments = [symbol.encode(), byref(found), version, c_uint64(flags)]
    code = cuda.cuGetProcAddress_v2(*arguments, byref(status)) if v2 else cuda.cuGetProcAddress(*arguments)
    if found.value in (None, 77):
        return [code, None, status.value]
    ours = [name for name in NAMES if cast(cuda[name], c_void_p).value == found.value]
    return [code, ours, status.value]
"""


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param("'cuInit', 13000", [SUCCESS, ["cuInit"], FOUND], id="plain"),
        pytest.param("'cuDeviceTotalMem', 2000", [SUCCESS, ["cuDeviceTotalMem"], FOUND], id="the-first-variant"),
        pytest.param("'cuDeviceTotalMem', 3020", [SUCCESS, ["cuDeviceTotalMem_v2"], FOUND], id="the-second-variant"),
        pytest.param("'cuGetProcAddress', 11080", [SUCCESS, ["cuGetProcAddress"], FOUND], id="itself"),
        pytest.param("'cuGetProcAddress', 12040", [SUCCESS, ["cuGetProcAddress_v2"], FOUND], id="itself-since-12"),
        pytest.param("'cuMemcpyHtoD_v2_ptds', 13000, 2", [SUCCESS, [], FOUND], id="streams-of-each-thread"),
        pytest.param("'cuDeviceGetUuid', 9000", [SUCCESS, None, NEWER], id="not-yet-in-that-version"),
        pytest.param("'cuNoSuchThing', 13000", [SUCCESS, None, ABSENT], id="nothing"),
        pytest.param("'cuDeviceGetU', 13000", [SUCCESS, None, ABSENT], id="only-a-beginning"),
        pytest.param("'', 13000", [INVALID_VALUE, None, -1], id="no-name"),
        pytest.param("'cuInit', 13000, 3", [INVALID_VALUE, None, -1], id="no-such-flag"),
        pytest.param("'cuInit', 13010", [INVALID_VALUE, None, -1], id="a-version-after-the-driver's"),
        pytest.param("'cuNoSuchThing', 11030, 0, False", [NOT_FOUND, None, -1], id="nothing-without-a-status"),
        pytest.param("'cuInit', 11030, 0, False", [SUCCESS, ["cuInit"], -1], id="plain-without-a-status"),
    ],
)
def test_a_function_by_its_base_name_and_version(scene: Scene, call: str, answer: list[object]) -> None:
    """It answers before cuInit, too."""
    scene.publish(ONE)
    assert scene.run(f"NAMES = {sorted(ANSWERED)}\n{LOOK}\nshow(look({call}))") == answer


def test_what_the_driver_did_not_have_yet_is_absent(scene: Scene) -> None:
    """The one came with 12.4, the other with 13.1."""
    scene.publish(OLD)
    answers = "[look(name, 12040)[2] for name in ('cuDevResourceGenerateDesc', 'cuGraphGetId')]"
    assert scene.run(f"NAMES = []\n{LOOK}\nshow({answers})") == [FOUND, ABSENT]


def test_every_error_of_the_real_api_has_its_name_and_a_text(scene: Scene) -> None:
    codes = {error.value: error.name for error in CUresult}
    program = f"""
def text(function, code):
    out = c_char_p(b"untouched")
    return [cuda[function](code, byref(out)), out.value and out.value.decode()]
show([[[code, *text("cuGetErrorName", code), *text("cuGetErrorString", code)] for code in {[*codes, 31337]}]])"""
    scene.publish(ONE)
    (*known, unknown) = scene.run(program)[0]
    assert {code: name for code, _, name, _, _ in known} == codes
    assert {(first, second) for _, first, _, second, _ in known} == {(SUCCESS, SUCCESS)}
    assert all(text for *_, text in known)
    assert unknown == [31337, INVALID_VALUE, None, INVALID_VALUE, None]
