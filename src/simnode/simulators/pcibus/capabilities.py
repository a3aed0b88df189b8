"""The capabilities in a function's config space: where each family has which, and the bytes of each.

The offsets are those that lspci prints on real machines (board facts, capability lists). A capability here is its body
without the link to the next one, which `config` writes.
"""

from __future__ import annotations

import struct
from hashlib import sha256

from simnode.simulators.pcibus.functions import Function

Chain = dict[int, tuple[int, bytes]]
"""By offset: the id and what follows id and next pointer."""
ExtendedChain = dict[int, tuple[int, int, bytes]]
"""By offset: the id, the version, and what follows the header."""

NULL, POWER, MSI, VENDOR, SUBSYSTEM, EXPRESS, MSIX = 0x00, 0x01, 0x05, 0x09, 0x0D, 0x10, 0x11
_PORT_TYPES = {"root": 4, "upstream": 5, "downstream": 6}
_MIB = 1 << 20
_GUEST_RECORD_LENGTH, _GUEST_TEXT = 22, 10


def capabilities(function: Function) -> Chain:
    """Those in the first 256 bytes, in the order of the list."""
    if function.buses is not None:
        chain = {0x40: (POWER, _power()), 0x48: (MSI, _msi(vectors=0)), 0x68: (EXPRESS, _express(function))}
        if function.subsystem_id:
            vendor, device = function.subsystem_id & 0xFFFF, function.subsystem_id >> 16
            chain[0xA4] = (SUBSYSTEM, struct.pack("<HHH", 0, vendor, device))
        return chain
    if function.guest is not None:
        return {
            0x68: (MSI, _msi(vectors=0)),
            0x78: (EXPRESS, _express(function)),
            0xD0: (VENDOR, _guest(function.guest.host_driver_version, function.guest.host_driver_branch)),
        }
    if function.kind in ("hopper", "blackwell"):
        return {
            0x40: (POWER, _power()),
            0x48: (MSI, _msi(vectors=4, maskable=True)),
            0x60: (EXPRESS, _express(function)),
            0x9C: (VENDOR, _vendor()),
            0xB0: (MSIX, _msix(9)),
        }
    if function.kind == "switch":
        return {0x40: (POWER, _power()), 0x48: (MSI, _msi(vectors=0)), 0x60: (EXPRESS, _express(function))}
    return {
        0x60: (POWER, _power()),
        0x68: (NULL, b"") if function.class_code >> 8 == 0x0302 else (MSI, _msi(vectors=0)),
        0x78: (EXPRESS, _express(function)),
        0xB4: (VENDOR, _vendor()),
        0xC8: (MSIX, _msix(6)),
    }


def extended_capabilities(function: Function) -> ExtendedChain:
    """Those from byte 256 on; the first has to be there. A vGPU has none."""
    if function.guest is not None:
        return {}
    if function.buses is not None or function.kind == "switch":
        return {0x100: (0x01, 2, _errors())}
    if function.kind in ("hopper", "blackwell"):
        return {
            0x100: (0x19, 1, bytes(0x28)),
            0x12C: (0x18, 1, bytes(4)),
            0x134: (0x24, 1, _resizable(function)),
            0x1B8: (0x01, 2, _errors()),
            0x2A4: (0x0B, 1, _vendor_extended(0x14)),
            0x2B8: (0x04, 1, bytes(12)),
            0x2F0: (0x03, 1, sha256(function.serial.encode()).digest()[:8]),
        }
    return {
        0x100: (0x02, 1, bytes(0x18)),
        0x128: (0x04, 1, bytes(12)),
        0x258: (0x1E, 1, bytes(12)),
        0x420: (0x01, 2, _errors()),
        0x600: (0x0B, 1, _vendor_extended(0x24)),
        0x900: (0x19, 1, bytes(0x28)),
        0xBB0: (0x24, 1, _resizable(function)),
        0xC1C: (0x26, 1, bytes(0x20)),
        0xD00: (0x27, 1, bytes(0x44)),
        0xE00: (0x25, 1, bytes(8)),
    }


def _power() -> bytes:
    """Version 3, PME from D0 and D3hot, in D0, no reset on the way back from D3hot."""
    return struct.pack("<HHH", 0x4803, 0x0008, 0)


def _msi(vectors: int, *, maskable: bool = False) -> bytes:
    """Off, with 2 ** `vectors` of them and 64 bits of address."""
    return struct.pack("<H", 0x0080 | maskable << 8 | vectors << 1) + bytes(20 if maskable else 10)


def _msix(count: int) -> bytes:
    """On, its tables in BAR 0."""
    return struct.pack("<HII", 0x8000 | count - 1, 0x00B9_0000, 0x00BA_0000)


def _vendor() -> bytes:
    return bytes([0x14]) + bytes(0x11)


def _guest(version: str, branch: str) -> bytes:
    """What a hypervisor tells its guest: "VF", then one record with the host driver's version and branch."""
    texts = b"".join(text.encode()[:_GUEST_TEXT].ljust(_GUEST_TEXT, b"\0") for text in (version, branch))
    record = bytes([0, _GUEST_RECORD_LENGTH]) + texts
    return bytes([3 + 2 + len(record)]) + b"VF" + record


def _express(function: Function) -> bytes:
    """Version 2, with 256 bytes of payload; the link as it is."""
    link, port = function.link, _PORT_TYPES.get(function.kind, 0)
    device_caps = 1 | 1 << 5 | 1 << 15
    if port == 0:
        device_caps |= 25 << 18 | (1 << 28 if function.kind != "turing" else 0)
    link_caps = link.max_gen | link.max_width << 4
    if port in (4, 6):
        link_caps |= 1 << 20 | 1 << 21
    speeds = (1 << link.max_gen + 1) - 2
    status = link.gen | link.width << 4 | 1 << 12 | (1 << 13 if port in (4, 6) else 0)
    device = struct.pack("<HIHH", 2 | port << 4, device_caps, 0x2930, 0)
    first = struct.pack("<IHH", link_caps, 0x0040, status)
    slot_and_root = bytes(16)
    second = struct.pack("<IHHIHH", 0x13, 0, 0, speeds, link.max_gen, 1)
    return device + first + slot_and_root + second + bytes(8)


def _errors() -> bytes:
    """Advanced error reporting, with nothing to report; severities are the specification's defaults."""
    return struct.pack("<IIIIII", 0, 0, 0x0046_2030, 0, 0x2000, 0x00A0) + bytes(0x2C)


def _vendor_extended(length: int) -> bytes:
    return struct.pack("<I", 1 | 1 << 16 | length << 20) + bytes(length - 8)


def _resizable(function: Function) -> bytes:
    """Each register can have the size that it has, and the large one any from 64 MiB."""
    body, count = b"", len(function.bars)
    for bar in function.bars:
        power = (bar.size // _MIB).bit_length() - 1
        sizes = {power} | (set(range(6, power)) if power > 5 and bar.index in (1, 2) else set())
        able = sum(1 << size + 4 for size in sizes if size + 4 < 32)
        body += struct.pack("<II", able, bar.index | count << 5 | power << 8)
    return body
