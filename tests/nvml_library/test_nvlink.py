"""NVLinks: state, neighbours, counters, and the field ids that count or sum them."""

from __future__ import annotations

import ctypes
import struct

import pytest

from simnode.state import LinkSpec, LoadSpec, State
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS, Library, Scene
from tests.nvml_library.test_cells import field

SWITCHED = LinkSpec(True, "switch", "")
DOWN = LinkSpec(False, "switch", "")
PEER = LinkSpec(True, "gpu", "0000:11:00.0", 1)
ALL = 0xFFFFFFFF
SPEED = 26562


def linked() -> State:
    return node(runtime(links=(SWITCHED, DOWN, PEER)), runtime())


def of(library: Library, name: str, link: int, *more: int) -> int:
    """A number of a link, or its refusal's code, negative."""
    out = ctypes.c_uint()
    code = library.code(name, library.handle(), link, *more, ctypes.byref(out))
    return out.value if code == SUCCESS else -code


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("nvmlDeviceGetNvLinkState", (), (1, 0, 1)),
        ("nvmlDeviceGetNvLinkVersion", (), (6, 6, 6)),
        ("nvmlDeviceGetNvLinkCapability", (0,), (1, 0, 1)),
        ("nvmlDeviceGetNvLinkCapability", (5,), (1, 0, 1)),
        ("nvmlDeviceGetNvLinkCapability", (6,), (-INVALID_ARGUMENT,) * 3),
        ("nvmlDeviceGetNvLinkRemoteDeviceType", (), (2, 255, 0)),
    ],
)
def test_links_differ(scene: Scene, name: str, more: tuple[int, ...], expected: tuple[int, ...]) -> None:
    library = scene.start(linked())
    assert tuple(of(library, name, link, *more) for link in range(3)) == expected


@pytest.mark.parametrize("link", [3, 17])
def test_a_place_without_a_link_is_not_supported(scene: Scene, link: int) -> None:
    """Anything else would end nvidia-smi's matrix, which asks for all 18."""
    library = scene.start(linked())
    pci = ctypes.create_string_buffer(68)
    assert library.code("nvmlDeviceGetNvLinkRemotePciInfo_v2", library.handle(), link, pci) == NOT_SUPPORTED
    assert of(library, "nvmlDeviceGetNvLinkState", link) == -NOT_SUPPORTED
    assert field(library, 165, link).code == NOT_SUPPORTED


def test_a_link_that_no_board_has_is_a_bad_argument(scene: Scene) -> None:
    library = scene.start(linked())
    assert of(library, "nvmlDeviceGetNvLinkState", 36) == -INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("link", "legacy", "address", "full"),
    [
        (0, b"FFFFFFFF:FF:FF.0"[4:], (ALL, 0xFF, 0xFF), b"FFFFFFFF:FF:FF.0"),
        (2, b"0000:11:00.0", (0, 0x11, 0), b"00000000:11:00.0"),
    ],
    ids=["switch", "gpu"],
)
def test_the_other_end_has_an_address(
    scene: Scene, link: int, legacy: bytes, address: tuple[int, int, int], full: bytes
) -> None:
    library = scene.start(linked())
    pci = ctypes.create_string_buffer(68)
    library.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", library.handle(), link, pci)
    text, *numbers = struct.unpack_from("<16s3I", pci)
    assert (text.rstrip(b"\0"), tuple(numbers), pci.raw[36:].rstrip(b"\0")) == (legacy, address, full)
    old = ctypes.create_string_buffer(b"\xa5" * 60, 60)
    library.call("nvmlDeviceGetNvLinkRemotePciInfo", library.handle(), link, old)
    assert old.raw[52:] == b"\xa5" * 8


@pytest.mark.parametrize(
    ("number", "scope", "expected"),
    [
        pytest.param(91, 0, 3, id="links, up or down"),
        pytest.param(147, 0, 1, id="to switches"),
        pytest.param(90, 0, SPEED, id="common speed"),
        pytest.param(84, 0, SPEED, id="speed of link 0"),
        pytest.param(85, 0, -NOT_SUPPORTED, id="speed of a link that is down"),
        pytest.param(164, 2, SPEED, id="speed by scope"),
        pytest.param(165, 1, 0, id="state"),
        pytest.param(166, 1, 6, id="version"),
        pytest.param(146, 0, 0, id="the other end's link"),
        pytest.param(161, 0, 0, id="replays"),
        pytest.param(132, 0, -NOT_SUPPORTED, id="link 6"),
    ],
)
def test_fields_know_the_links(scene: Scene, number: int, scope: int, expected: int) -> None:
    read = field(scene.start(linked()), number, scope)
    assert (read.value if read.code == SUCCESS else -read.code) == expected


def test_a_board_without_nvlink_does_not_support_the_fields(scene: Scene) -> None:
    library = scene.start(node(runtime()))
    assert [field(library, number).code for number in (90, 91, 147, 138)] == [NOT_SUPPORTED] * 4


def test_traffic_of_all_links_is_the_sum(scene: Scene) -> None:
    load = LoadSpec("steady", 100, 100)
    library = scene.start(node(runtime(links=(SWITCHED, DOWN, PEER), load=load), runtime()))
    batch = [field(library, 138, scope).value for scope in (ALL, 0, 2, ALL)]
    assert batch[0] <= batch[1] + batch[2] <= batch[3]
    received, sent = ctypes.c_ulonglong(), ctypes.c_ulonglong()
    library.call(
        "nvmlDeviceGetNvLinkUtilizationCounter", library.handle(), 0, 0, ctypes.byref(received), ctypes.byref(sent)
    )
    assert sent.value >= batch[1] * 1024


@pytest.mark.parametrize(
    ("generation", "mode"), [(4, 0), (5, 0), (3, -NOT_SUPPORTED), (0, -NOT_SUPPORTED)], ids=["4", "5", "3", "none"]
)
def test_links_run_at_full_width_where_they_could_do_less(scene: Scene, generation: int, mode: int) -> None:
    links = (SWITCHED,) if generation else ()
    library = scene.start(node(runtime({"nvlink.version": generation}, links=links)))
    out = ctypes.c_uint(9)
    code = library.code("nvmlSystemGetNvlinkBwMode", ctypes.byref(out))
    assert (out.value if code == SUCCESS else -code) == mode
