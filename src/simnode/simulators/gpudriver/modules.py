"""The faces of the driver's kernel modules: below sys/module, and the machine's `modules` and `devices` with them in.

What is there is what the open kernel modules show, as far as it can be known of a module that nobody loaded: `nvidia`
itself has no parameters in sysfs (they are declared without permission bits; /proc/driver/nvidia/params has them), and
a srcversion is a hash of the source that nobody can check. The text files are written in place, for they are bound one
by one over the kernel's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct, field

from simnode.host import Directory, File, Link, LiveFile, Surface
from simnode.host.procfs import Procfs, with_majors, with_modules
from simnode.state import State

SYS = "sys/module"
MODULES = "proc/modules"
DEVICES = "proc/devices"
FRONTEND_MAJOR = 195
UVM_MAJOR = 510
DRIVERS = frozenset(
    [
        "nvidia",
        "nvidia-caps",
        "nvidia-caps-imex-channels",
        "nvidia-frontend",
        "nvidia-modeset",
        "nvidia-uvm",
        "nvidiactl",
    ]
)
"""What the driver calls itself in /proc/devices, in any release."""
TAINT = "OE"  # out of tree, not signed


class Module(Struct, frozen=True):
    """A kernel module. `uses`: what of the driver it needs; parameters as sysfs shows them, with their modes."""

    name: str
    core_bytes: int
    uses: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[str, int]] = field(default_factory=dict)


# In the order in which they are loaded. Sizes and parameters: open-gpu-kernel-modules 550.
LOADED = (
    Module("nvidia", 62312448),
    Module(
        "nvidia_modeset",
        1605632,
        ("nvidia",),
        {"disable_vrr_memclk_switch": ("N", 0o400), "output_rounding_fix": ("Y", 0o400)},
    ),
    Module("nvidia_drm", 122880, ("nvidia_modeset",), {"fbdev": ("N", 0o400), "modeset": ("N", 0o400)}),
    Module(
        "nvidia_uvm",
        3411968,
        ("nvidia",),
        {
            "uvm_ats_mode": ("1", 0o444),
            "uvm_debug_prints": ("0", 0o444),
            "uvm_disable_hmm": ("N", 0o444),
            "uvm_enable_builtin_tests": ("0", 0o444),
            "uvm_perf_prefetch_enable": ("1", 0o444),
        },
    ),
)
_HOLDERS = {module.name: [other.name for other in LOADED if module.name in other.uses] for module in LOADED}


def surfaces(kernel_version: str) -> Iterator[Surface]:
    """All of it; the texts among them are live files, for `texts` to fill."""
    yield Directory(SYS)
    for module in LOADED:
        at = f"{SYS}/{module.name}"
        for name, text in _attributes(module, kernel_version).items():
            yield File(f"{at}/{name}", f"{text}\n".encode(), 0o444)
        for name, (value, mode) in module.parameters.items():
            yield File(f"{at}/parameters/{name}", f"{value}\n".encode(), mode)
        yield Directory(f"{at}/holders")
        for holder in _HOLDERS[module.name]:
            yield Link(f"{at}/holders/{holder}", f"../../{holder}")
    yield Link(f"{SYS}/nvidia/drivers/pci:nvidia", "../../../bus/pci/drivers/nvidia")
    yield Link("sys/bus/pci/drivers/nvidia/module", "../../../../module/nvidia")
    yield LiveFile(MODULES, 0)
    yield LiveFile(DEVICES, 0)


def texts(state: State, machine: Procfs) -> dict[str, bytes]:
    """What the live files hold: the machine's own text, and the driver's lines."""
    modules = with_modules(machine("modules"), map(_line, reversed(LOADED)))
    devices = with_majors(machine("devices"), _majors(state), DRIVERS)
    return {MODULES: modules.encode(), DEVICES: devices.encode()}


def _majors(state: State) -> tuple[tuple[int, str], ...]:
    """The character majors of the driver; since 550 each device of major 195 has a name of its own there."""
    release = int(state.software.driver_version.partition(".")[0] or 0)
    frontend = ("nvidia", "nvidia-modeset", "nvidiactl") if release >= 550 else ("nvidia-frontend",)
    imex = ((state.imex.imex_major, "nvidia-caps-imex-channels"),) if state.imex.enabled else ()
    caps = state.imex.caps_major if state.imex.enabled else state.mig.caps_major
    named = ((FRONTEND_MAJOR, name) for name in frontend)
    return (*named, *imex, (caps, "nvidia-caps"), (UVM_MAJOR, "nvidia-uvm"))


def _attributes(module: Module, kernel_version: str) -> dict[str, str]:
    return {
        "coresize": str(module.core_bytes),
        "initsize": "0",
        "initstate": "live",
        "refcnt": str(len(_HOLDERS[module.name])),
        "srcversion": sha256(f"{module.name} {kernel_version}".encode()).hexdigest()[:23].upper().rjust(24, "0"),
        "taint": TAINT,
        "version": kernel_version,
    }


def _line(module: Module) -> str:
    """A line of /proc/modules; an address is zeros to whoever is not root."""
    holders = "".join(f"{holder}," for holder in _HOLDERS[module.name]) or "-"
    count = len(_HOLDERS[module.name])
    return f"{module.name} {module.core_bytes} {count} {holders} Live 0x0000000000000000 ({TAINT})"
