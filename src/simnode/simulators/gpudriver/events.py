"""Raising the events of a State: each once, however often it is published and whoever publishes it.

An event in a State is a condition (this XID is in force), a waiting process wants an occurrence. What has been raised
is therefore kept beside the journals: an agent that comes back does not raise it again. Whatever is no longer in force
is forgotten, so that it can come again.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from simnode.nvml.image import Publisher
from simnode.profile.faults import ProfileError
from simnode.profile.reading import read
from simnode.profile.writing import replace_file, sweep
from simnode.simulators.gpudriver.kernellog import KernelLog
from simnode.state import EventSpec, State

RAISED = "state/events"
_XID = 0x8  # nvml.h's nvmlEventTypeXidCriticalError

_Raised = dict[str, tuple[EventSpec, ...]]


class Events:
    """What was raised on the node whose root is `root`, by the UUID of the GPU. Blocks on the disk.

    XIDs are said in the kernel's log before anybody hears of them through NVML.
    """

    def __init__(self, root: Path, log: KernelLog) -> None:
        self._log = log
        self._path = root / RAISED
        self._raised: _Raised | None = None
        self._kept: _Raised = {}

    def raise_new(self, state: State, publisher: Publisher) -> None:
        """Raise what is in force and has not been raised yet. Call when the State's values can be read.

        Raises OSError where that cannot be kept; it is not raised again by the next attempt.
        """
        if self._raised is None:
            self._raised = self._kept = self._read()
        raised = self._raised
        in_force: _Raised = {}
        for device, runtime in zip(state.devices, state.runtime.devices, strict=False):
            before = raised.get(device.uuid, ())
            for event in runtime.events:
                if event not in before:
                    if event.kind == _XID:
                        self._log.xid(device, runtime, event.data)
                    publisher.event(device.index, event.kind, event.data)
            if runtime.events:
                in_force[device.uuid] = runtime.events
        self._raised = in_force
        if in_force != self._kept:
            replace_file(self._path, msgspec.json.encode(in_force), 0o644)
            self._kept = in_force

    def forget(self) -> None:
        """Nothing is in force any more, and nothing is left on the disk."""
        self._raised = None
        self._path.unlink(missing_ok=True)
        sweep(self._path)

    def _read(self) -> _Raised:
        with suppress(ProfileError, msgspec.MsgspecError):
            return msgspec.json.decode(read(str(self._path)), type=_Raised)
        return {}
