"""The attribute files of a PCI function, by name: texts as the kernel's drivers/pci prints them, and their modes.

Documentation/ABI/testing/sysfs-bus-pci says what they mean; the forms are those of drivers/pci/pci-sysfs.c. Bridges
have those that programs read of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from simnode.simulators.pcibus.config import bar_flags
from simnode.simulators.pcibus.functions import Function
from simnode.simulators.pcibus.resources import Range, Resources

READ_ONLY, READ_WRITE = 0o444, 0o644
_SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
# linux/ioport.h: MEM, PREFETCH, SIZEALIGN, MEM_64
_MEMORY, _PREFETCH, _SIZE_ALIGNED, _WIDE = 0x200, 0x2000, 0x40000, 0x100000
_REGISTERS, _VIRTUAL_FUNCTIONS = 7, 6  # six and the expansion ROM; those of virtual functions

Text = tuple[str, str, int]
"""Name, content and mode."""


def attributes(function: Function, resources: Resources) -> Iterator[Text]:
    """All of one function, but for config space and links."""
    vendor, device = function.device_id & 0xFFFF, function.device_id >> 16
    subvendor, subdevice = function.subsystem_id & 0xFFFF, function.subsystem_id >> 16
    place, near = function.place, function.place.cpus
    yield "vendor", f"0x{vendor:04x}\n", READ_ONLY
    yield "device", f"0x{device:04x}\n", READ_ONLY
    yield "subsystem_vendor", f"0x{subvendor:04x}\n", READ_ONLY
    yield "subsystem_device", f"0x{subdevice:04x}\n", READ_ONLY
    yield "class", f"0x{function.class_code:06x}\n", READ_ONLY
    yield "revision", f"0x{function.revision:02x}\n", READ_ONLY
    yield "irq", f"{function.irq}\n", READ_ONLY
    yield "numa_node", f"{place.numa}\n", READ_WRITE
    yield "local_cpulist", f"{cpu_list(near)}\n", READ_ONLY
    yield "local_cpus", f"{cpu_mask(near, place.all_cpus)}\n", READ_ONLY
    yield "resource", resource_lines(function, resources), READ_ONLY
    yield "modalias", f"{modalias(function)}\n", READ_ONLY
    yield "uevent", uevent(function), READ_WRITE
    yield from _link(function)
    if function.buses is not None:
        yield "secondary_bus_number", f"{function.buses[0]}\n", READ_ONLY
        yield "subordinate_bus_number", f"{function.buses[1]}\n", READ_ONLY
        return
    yield "enable", "1\n", READ_WRITE
    yield "power_state", "D0\n", READ_ONLY
    yield "d3cold_allowed", "1\n", READ_WRITE


def _link(function: Function) -> Iterator[Text]:
    """Of a link that nobody answers on, the register reads as ones."""
    link = function.link
    now, lanes = (_speed(link.gen), link.width) if not function.off_bus else ("Unknown", 63)
    yield "current_link_speed", f"{now}\n", READ_ONLY
    yield "current_link_width", f"{lanes}\n", READ_ONLY
    yield "max_link_speed", f"{_speed(link.max_gen)}\n", READ_ONLY
    yield "max_link_width", f"{link.max_width}\n", READ_ONLY


def _speed(generation: int) -> str:
    return f"{_SPEEDS[generation]} GT/s PCIe" if generation in _SPEEDS else "Unknown"


def modalias(function: Function) -> str:
    """The text that a module's alias is matched with."""
    vendor, device = function.device_id & 0xFFFF, function.device_id >> 16
    subvendor, subdevice = function.subsystem_id & 0xFFFF, function.subsystem_id >> 16
    base, sub, interface = function.class_code >> 16, function.class_code >> 8 & 0xFF, function.class_code & 0xFF
    ids = f"v{vendor:08X}d{device:08X}sv{subvendor:08X}sd{subdevice:08X}"
    return f"pci:{ids}bc{base:02X}sc{sub:02X}i{interface:02X}"


def uevent(function: Function) -> str:
    """What udev is told of a function that its driver has taken."""
    vendor, device = function.device_id & 0xFFFF, function.device_id >> 16
    subvendor, subdevice = function.subsystem_id & 0xFFFF, function.subsystem_id >> 16
    return (
        f"DRIVER={function.driver}\n"
        f"PCI_CLASS={function.class_code:04X}\n"
        f"PCI_ID={vendor:04X}:{device:04X}\n"
        f"PCI_SUBSYS_ID={subvendor:04X}:{subdevice:04X}\n"
        f"PCI_SLOT_NAME={function.address}\n"
        f"MODALIAS={modalias(function)}\n"
    )


def resource_lines(function: Function, resources: Resources) -> str:
    """First address, last address and flags of each resource: registers, those of virtual functions, windows."""
    lines = [_line(None, 0)] * (_REGISTERS + _VIRTUAL_FUNCTIONS)
    for bar in function.bars:
        flags = _MEMORY | _SIZE_ALIGNED | bar_flags(bar)
        flags |= (_PREFETCH if bar.prefetchable else 0) | (_WIDE if bar.wide else 0)
        lines[bar.index] = _line(resources.bars[bar.index], flags)
    if function.buses is not None:
        memory = _line(resources.memory, _MEMORY)
        prefetchable = _line(resources.prefetchable, _MEMORY | _PREFETCH | _WIDE | 1)
        lines += [_line(None, 0), memory, prefetchable, _line(None, 0)]
    return "".join(lines)


def _line(addresses: Range | None, flags: int) -> str:
    if addresses is None:
        addresses, flags = (0, 0), 0
    return f"0x{addresses[0]:016x} 0x{addresses[1]:016x} 0x{flags:016x}\n"


@lru_cache(maxsize=16)
def cpu_list(numbers: frozenset[int]) -> str:
    """CPUs as ranges: 0-55,112-167."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


@lru_cache(maxsize=16)
def cpu_mask(numbers: frozenset[int], count: int) -> str:
    """CPUs of `count` as words of 32 bits, the highest first: 000000ff,ffffffff."""
    mask = sum(1 << number for number in numbers)
    return ",".join(f"{mask >> 32 * at & 0xFFFF_FFFF:08x}" for at in reversed(range(-(-count // 32))))


def proc_line(function: Function, resources: Resources) -> str:
    """The function's line in /proc/bus/pci/devices: first addresses with their flags, then sizes."""
    vendor, device = function.device_id & 0xFFFF, function.device_id >> 16
    firsts, sizes = [0] * _REGISTERS, [0] * _REGISTERS
    for bar in function.bars:
        firsts[bar.index] = resources.bars[bar.index][0] | bar_flags(bar)
        sizes[bar.index] = bar.size
    who = f"{function.bus:02x}{function.slot:02x}\t{vendor:04x}{device:04x}\t{function.irq:x}"
    numbers = "".join(f"\t{number:16x}" for number in (*firsts, *sizes))
    return f"{who}{numbers}\t{function.driver}\n"
