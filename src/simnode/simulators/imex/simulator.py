"""The simulator of IMEX: channel devices, the capability that the IMEX daemon asks for, and the daemon if it is wanted.

Nothing of it is there while IMEX is off. Its majors appear in the GPU driver's text of /proc/devices; a major that a
driver of the machine has is refused, for a consumer that looks it up would find that driver.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

from simnode.host import ConvergeError, File, Host, Surface, Tree, TreeError
from simnode.host.procfs import Procfs, holder
from simnode.partitions import IMEX_MANAGEMENT
from simnode.simulators import Devices, TreeSimulator, device_files, in_thread
from simnode.simulators.imex.software import FACT, Software
from simnode.state import Facts, IMEXSoftware, IMEXState, State

CHANNELS = "driver/dev/nvidia-caps-imex-channels"
CAPABILITY_DEVICE = f"driver/dev/nvidia-caps/nvidia-cap{IMEX_MANAGEMENT.minor}"
CAPABILITY = f"driver/proc/driver/nvidia/capabilities/{IMEX_MANAGEMENT.name}"
MINORS = "driver/proc/driver/nvidia-caps/sys-minors"
_NAMES = ("nvidia-caps-imex-channels", "nvidia-caps")
_MODE = 0o666


class IMEX(TreeSimulator):
    """Stages channels and capability while IMEX is on, and software that has been fetched meanwhile.

    `devices` says what a device is here, as for the GPU driver. `procfs` is the machine's.
    """

    name = "imex"

    def __init__(self, host: Host, devices: Devices, procfs: Procfs, software: Software) -> None:
        super().__init__(host)
        self._devices = devices
        self._procfs = procfs
        self._software = software
        self._made: tuple[tuple[IMEXState, str], Tree] | None = None
        self._complete = False

    def tree(self, state: State, facts: Facts) -> Tree:
        """All surfaces; none while IMEX is off. Raises TreeError for a major that it cannot have."""
        imex = state.imex
        if not imex.enabled:
            return Tree.empty
        _check(imex, self._procfs("devices"))
        there = facts.imex_software
        if imex.software is None or imex.software.sha256 != there or there not in self._software.files:
            there = ""
        if self._made is None or self._made[0] != (imex, there):
            software = self._software.files[there] if there else ()
            self._made = (imex, there), Tree((*_capability(), *self._nodes(imex), *software))
        return self._made[1]

    async def plan(self, state: State, facts: Facts) -> bool:
        """As every simulator; another software is news, too."""
        return _software(state) != self._software.wanted or await super().plan(state, facts)

    async def stage(self, state: State, facts: Facts) -> None:
        """As every simulator; software that is not there yet is fetched from now on, and this does not wait for it."""
        wanted = _software(state)
        self._complete = False
        if wanted is not None and await in_thread(lambda: self._software.look(wanted)):
            self._software.tell(wanted)
            facts = facts.having(FACT, wanted.sha256)
        self._software.want(wanted)
        await super().stage(state, facts)
        self._complete = wanted is None or facts.imex_software == wanted.sha256

    async def discard(self) -> None:
        """Take everything away but the archive of the software, for the next agent."""
        self._software.want(None)
        await super().discard()

    def ready(self) -> bool:
        """True once staged, the software that is wanted with it."""
        return super().ready() and self._complete

    def progress(self) -> str:
        """What there is to wait for."""
        return "" if self._complete else self._software.progress

    def requeue(self) -> AsyncIterator[object]:
        """One item for each software that can be staged."""
        return self._software.obtain()

    def _make(self, state: State, facts: Facts) -> None:
        """Software of which a part cannot be staged is not staged at all."""
        try:
            super()._make(state, facts)
        except ConvergeError:
            if facts.imex_software:
                with suppress(ConvergeError):
                    super()._make(state, facts.having(FACT, ""))
            raise
        if _software(state) is None:
            self._software.forget()

    def _nodes(self, imex: IMEXState) -> Iterator[Surface]:
        channels = ((f"{CHANNELS}/channel{number}", imex.imex_major, number) for number in range(imex.channels))
        for path, major, minor in ((CAPABILITY_DEVICE, imex.caps_major, IMEX_MANAGEMENT.minor), *channels):
            yield from device_files(self._devices, path, major, minor, _MODE)


def _software(state: State) -> IMEXSoftware | None:
    return state.imex.software if state.imex.enabled else None


def _capability() -> Iterator[Surface]:
    """What tells the capability's minor; nvidia-modprobe is told to leave the device as it is."""
    told = f"DeviceFileMinor: {IMEX_MANAGEMENT.minor}\nDeviceFileMode: {_MODE}\nDeviceFileModify: 0\n"
    yield File(CAPABILITY, told.encode(), 0o444)
    yield File(MINORS, f"{IMEX_MANAGEMENT.name} {IMEX_MANAGEMENT.minor}\n".encode(), 0o444)


def _check(imex: IMEXState, devices: str) -> None:
    """Raises TreeError for a major that is another driver's; `devices` is the machine's text of it."""
    if imex.imex_major == imex.caps_major:
        raise TreeError(f"imex.imex_major: {imex.imex_major} is imex.caps_major, too; each wants a major of its own")
    for key in ("imex_major", "caps_major"):
        major = getattr(imex, key)
        taken = holder(devices, major, _NAMES)
        if taken:
            raise TreeError(f"imex.{key}: {major} is the major of {taken} on this machine; give one that is free")
