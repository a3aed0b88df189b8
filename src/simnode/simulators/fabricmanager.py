"""The simulator of the fabric manager: a service whose marker says that the NVLink fabric is up.

`State.fabric.manager_state_dir` is where consumers find the marker's directory, which is why an injector mounts it
there; empty means that no fabric manager runs. What is staged is always `fabric-state/` below the node root. The
directory is the engine's and the marker in it the daemon's: it comes after the directory and goes before it, and the
engine, which removes only what it made, never touches it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import stat
import threading

from simnode.contracts import Report
from simnode.host import Directory, Host, Tree
from simnode.host.paths import Beneath, BlockedError
from simnode.simulators import TreeSimulator, in_thread
from simnode.state import Facts, State

DIRECTORY = "fabric-state"
MARKER = f"{DIRECTORY}/fabricmanager.ready"
READY = "fabric_ready"
_ORIGIN = {"simulator": "fabricmanager", "surface": MARKER}


class FabricManager(TreeSimulator):
    """Stages the directory, and keeps the marker in it from `init_delay` seconds after each enabling on.

    A marker that somebody removed is back within `period` seconds; one that is there is left alone. The fact
    `fabric_ready` says whether it is kept; a marker that cannot be written is logged once, and its return once.
    """

    name = "fabricmanager"

    def __init__(
        self, host: Host, report: Report, log: logging.Logger, *, init_delay: float = 0.0, period: float = 2.0
    ) -> None:
        super().__init__(host)
        self._report = report
        self._log = log
        self._init_delay = init_delay
        self._period = period
        self._marker = _Marker(host)
        self._wanted = False
        self._on = asyncio.Event()
        self._off = asyncio.Event()
        self._serving = False
        self._failing = False

    def tree(self, state: State, facts: Facts) -> Tree:  # noqa: ARG002
        """The directory, if the fabric manager is on."""
        return Tree([Directory(DIRECTORY)] if state.fabric.manager_state_dir else [])

    async def stage(self, state: State, facts: Facts) -> None:
        """Make the directory, or take it away; a marker that nobody keeps goes first."""
        self._wanted = bool(state.fabric.manager_state_dir)
        if not self._wanted:
            self._turn(on=False)
        await super().stage(state, facts)

    async def discard(self) -> None:
        """Take marker and directory away."""
        self._wanted = False
        self._turn(on=False)
        await super().discard()

    def ready(self) -> bool:
        """True once staged and, if the fabric manager is on, serving."""
        return super().ready() and (self._serving or not self._wanted)

    async def run(self) -> None:
        """Keep the marker while the fabric manager is on, until cancelled; then it goes."""
        self._turn(on=self._wanted)
        try:
            while True:
                await self._on.wait()
                if self._on.is_set():  # it may have been turned off again before this task got its turn
                    await self._serve()
        finally:
            self._turn(on=False)
            try:
                await in_thread(self._marker.withdraw)
            except OSError as error:
                self._log.warning("%s stays behind: %s", MARKER, error.strerror, extra=_ORIGIN)

    async def reload(self, state: State, facts: Facts) -> None:  # noqa: ARG002
        """Start or end the service as the State says."""
        self._wanted = bool(state.fabric.manager_state_dir)
        self._turn(on=self._wanted)

    async def _serve(self) -> None:
        """One term of service: from being turned on to being turned off."""
        term = self._marker.term
        await self._turned_off(within=self._init_delay)
        while term == self._marker.term:
            failure = await in_thread(lambda: self._marker.keep(term))
            if term == self._marker.term:
                self._tell(failure)
                await self._turned_off(within=self._period)

    async def _turned_off(self, within: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._off.wait()

    def _turn(self, *, on: bool) -> None:
        if on == self._on.is_set():
            return
        self._marker.term += 1
        if on:
            self._off.clear()
            self._on.set()
        else:
            self._on.clear()
            self._off.set()
            self._failing = False
            self._serve_from_now_on(serving=False)

    def _tell(self, failure: OSError | None) -> None:
        if failure and not self._failing:
            self._log.error("%s cannot be kept: %s", MARKER, failure.strerror, extra=_ORIGIN)
        elif self._failing and not failure:
            self._log.info("%s is kept again", MARKER, extra=_ORIGIN)
        self._failing = failure is not None
        self._serve_from_now_on(serving=not failure)

    def _serve_from_now_on(self, *, serving: bool) -> None:
        if serving != self._serving:
            self._serving = serving
            self._report(READY, serving)

    def _make(self, state: State, facts: Facts) -> None:
        if not self._on.is_set():
            self._marker.withdraw()
        super()._make(state, facts)

    def _unmake(self) -> None:
        self._marker.withdraw()
        super()._unmake()


class _Marker:
    """The marker's file, for several threads; `term` numbers the terms of service, and no past one writes it again."""

    def __init__(self, host: Host) -> None:
        self._root = host.root
        self._lock = threading.Lock()
        self.term = 0

    def keep(self, term: int) -> OSError | None:
        """Make sure that the marker is there, if `term` still is the current one; what went wrong."""
        try:
            with self._lock, Beneath(self._root) as beneath:
                if term == self.term:
                    _put(beneath)
        except OSError as error:
            return error
        return None

    def withdraw(self) -> None:
        """Remove the marker; what is no marker stays. Raises OSError."""
        with self._lock, Beneath(self._root) as beneath, contextlib.suppress(BlockedError):
            found = beneath.stat(MARKER)
            if found is not None and stat.S_ISREG(found.st_mode):
                directory, name = beneath.place(MARKER)
                try:
                    os.unlink(name, dir_fd=directory)
                except FileNotFoundError:
                    pass
                except OSError as error:
                    raise OSError(error.errno, f"cannot remove it: {error.strerror}", MARKER) from None


def _put(beneath: Beneath) -> None:
    found = beneath.stat(MARKER)
    if found is None:
        directory, name = beneath.place(MARKER)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o644, dir_fd=directory)
        try:
            os.fchmod(descriptor, 0o644)
        finally:
            os.close(descriptor)
    elif not stat.S_ISREG(found.st_mode):
        raise FileExistsError(errno.EEXIST, "occupied by something that is no regular file; move it away", MARKER)
