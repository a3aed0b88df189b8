"""Config space: capability lists that can be walked to their end, and what programs read out of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from simnode.state import State
from tests.pcibus.trees import BOARDS, GUEST, addresses, board, node, read, tree

NULL, POWER, VENDOR, EXPRESS, MSIX = 0x00, 0x01, 0x09, 0x10, 0x11
SECONDARY, ERRORS, SERIAL = 0x19, 0x01, 0x03
AMPERE = {0x60: POWER, 0x68: NULL, 0x78: EXPRESS, 0xB4: VENDOR, 0xC8: MSIX}
HOPPER = {0x40: POWER, 0x48: 0x05, 0x60: EXPRESS, 0x9C: VENDOR, 0xB0: MSIX}
FIRST = {"t4": AMPERE, "a100": AMPERE, "l40s": AMPERE, "h100": HOPPER, "b200": HOPPER, "gb200": HOPPER, "gb300": HOPPER}
LINKS = {"a100": (4, 16), "b200": (5, 16), "gb200": (6, 16), "gb300": (6, 16), "h100": (5, 16), "l40s": (4, 16)}


def space(state: State, address: str) -> bytes:
    """A function's config space."""
    content = read(tree(state), address, "config")
    assert len(content) == 4096
    return content


def walk(config: bytes) -> Iterator[tuple[int, int, int]]:
    """Offset, id and length of each capability; the length is the room up to the next thing that is not its own."""
    assert config[0x06] & 0x10
    at, seen = config[0x34], set()
    while at:
        assert at not in seen and at % 4 == 0 and 0x40 <= at < 0x100
        seen.add(at)
        yield at, config[at], config[at + 2]
        at = config[at + 1]


def walk_extended(config: bytes) -> Iterator[tuple[int, int]]:
    """Offset and id of each extended capability."""
    at, seen = 0x100, set()
    while at:
        assert at not in seen and at % 4 == 0 and 0x100 <= at < 0x1000
        seen.add(at)
        (header,) = struct.unpack_from("<I", config, at)
        if header == 0:
            return
        yield at, header & 0xFFFF
        at = header >> 20


def host_driver(config: bytes) -> tuple[str, str] | None:
    """What gpu-feature-discovery reads of a vGPU: the first vendor-specific capability, if it says "VF"."""
    at, length = next(((at, length) for at, number, length in walk(config) if number == VENDOR), (0, 0))
    body = config[at : at + length]
    if body[3:5] != b"VF":
        return None
    position = 5
    while position < length and body[position] != 0:
        position += body[position + 1]
    assert position + 2 + 20 <= length
    version, branch = body[position + 2 : position + 12], body[position + 12 : position + 22]
    return version.rstrip(b"\0").decode(), branch.rstrip(b"\0").decode()


@pytest.mark.parametrize("name", BOARDS)
def test_every_list_of_every_function_can_be_walked(name: str) -> None:
    state = board(name)
    for address in addresses(tree(state)):
        config = space(state, address)
        assert {POWER, EXPRESS} <= {number for _, number, _ in walk(config)}
        assert ERRORS in {number for _, number in walk_extended(config)}


@pytest.mark.parametrize("name", BOARDS)
def test_a_gpu_has_its_familys_capabilities_where_real_ones_have_them(name: str) -> None:
    state = board(name)
    config = space(state, state.devices[0].pci_bus_id)
    assert {at: number for at, number, _ in walk(config)} == FIRST[name]
    extended = dict(walk_extended(config))
    if FIRST[name] is HOPPER:
        assert (extended[0x100], extended[0x1B8], extended[0x2F0]) == (SECONDARY, ERRORS, SERIAL)
    else:
        assert extended[0x420] == ERRORS


@pytest.mark.parametrize(("name", "link"), LINKS.items())
def test_the_link_is_the_boards(name: str, link: tuple[int, int]) -> None:
    state = board(name)
    config = space(state, state.devices[0].pci_bus_id)
    (at,) = (at for at, number, _ in walk(config) if number == EXPRESS)
    (can,) = struct.unpack_from("<I", config, at + 0x0C)
    assert (can & 0xF, can >> 4 & 0x3F) == link


def test_a_link_that_was_trained_down_is_so_at_both_ends() -> None:
    state = board("h100", None, "pcie.current_link_gen=1", "pcie.current_link_width=8")
    for address in ("0000:53:00.0", "0000:52:00.0"):
        config = space(state, address)
        (at,) = (at for at, number, _ in walk(config) if number == EXPRESS)
        (now,) = struct.unpack_from("<H", config, at + 0x12)
        assert (now & 0xF, now >> 4 & 0x3F) == (1, 8)
        assert read(tree(state), address, "current_link_speed") == b"2.5 GT/s PCIe\n"
        assert read(tree(state), address, "max_link_speed") == b"32.0 GT/s PCIe\n"
    assert read(tree(state), "0000:51:00.0", "current_link_speed") == b"32.0 GT/s PCIe\n"


def test_a_vgpu_tells_its_guest_the_host_driver() -> None:
    state = node(GUEST)
    mine, other = (device.pci_bus_id for device in state.devices)
    assert host_driver(space(state, mine)) == ("550.90.05", "r550_00")
    assert host_driver(space(state, other)) is None


def test_a_version_that_fills_its_field_needs_no_end() -> None:
    text = GUEST.replace("550.90.05", "550.163.01")
    state = node(text)
    assert host_driver(space(state, state.devices[0].pci_bus_id)) == ("550.163.01", "r550_00")


@pytest.mark.parametrize("name", BOARDS)
def test_no_board_is_a_vgpu(name: str) -> None:
    state = board(name)
    assert [host_driver(space(state, device.pci_bus_id)) for device in state.devices] == [None] * len(state.devices)


def test_a_gpu_that_fell_off_the_bus_answers_ones_and_is_still_listed() -> None:
    state = board("h100", None, "failure.mode=fallen_off_bus")
    made = tree(state)
    for device in state.devices:
        assert set(read(made, device.pci_bus_id, "config")) == {0xFF}
        assert read(made, device.pci_bus_id, "current_link_speed") == b"Unknown\n"
        assert read(made, device.pci_bus_id, "vendor") == b"0x10de\n"


def test_a_gpu_that_is_lost_to_the_driver_alone_answers_on_the_bus() -> None:
    state = board("h100", None, "failure.mode=lost")
    assert space(state, state.devices[0].pci_bus_id)[:2] == b"\xde\x10"
