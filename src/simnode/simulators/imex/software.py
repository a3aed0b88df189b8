"""IMEX node software: an archive that is fetched and checked in the background, and staged once it is whole.

Staging never waits for a network. Whoever wants software gets it in three steps: a task fetches the archive (or finds
it, from an earlier time), checks it and takes its files out; then the fact says which one is there; then a wave stages
it. An archive is used only if its checksum is the one that is wanted, also the one that lies there already. It stays
below the node root for the next agent, until another is wanted or none.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path

from simnode.contracts import Report
from simnode.host import Surface
from simnode.refusals import told
from simnode.simulators import in_thread
from simnode.simulators.imex.archive import ArchiveError, opened, surfaces
from simnode.simulators.imex.line import FetchError, Line
from simnode.state import IMEXSoftware

ARCHIVE = "state/imex-software"
FACT = "imex_software"
_ORIGIN = {"simulator": "imex", "surface": ARCHIVE}


class Software:
    """The software of the node whose root is `root`; times in seconds, `patience` is the most that one fetch may take.

    `files` has what was taken out of an archive, by its checksum; a tree names them by the fact alone.
    """

    def __init__(
        self,
        root: Path,
        report: Report,
        log: logging.Logger,
        *,
        patience: float = 300.0,
        first_retry: float = 5.0,
        slowest_retry: float = 300.0,
    ) -> None:
        self._archive = root / ARCHIVE
        self._temporary = root / f"{ARCHIVE}.tmp"
        self._report = report
        self._log = log
        self._patience = patience
        self._first_retry = first_retry
        self._slowest_retry = slowest_retry
        self._news = asyncio.Event()
        self._line = Line()
        self.wanted: IMEXSoftware | None = None
        self.files: dict[str, tuple[Surface, ...]] = {}
        self.progress = ""

    def want(self, wanted: IMEXSoftware | None) -> None:
        """Have this from now on; a fetch of something else ends."""
        if wanted != self.wanted:
            self.wanted = wanted
            self.progress = "software: about to be fetched" if wanted else ""
            self._line.cut()
            self._news.set()

    def tell(self, software: IMEXSoftware) -> None:
        """Report the fact that this is there."""
        self.progress = "software: about to be staged"
        self._report(FACT, software.sha256)

    def forget(self) -> None:
        """Remove the archive, and what a killed agent had fetched of one. Blocks on the disk; raises OSError."""
        for path in (self._archive, self._temporary):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):  # a directory is none of ours
                path.unlink()

    async def obtain(self) -> AsyncIterator[str]:
        """Fetch what is wanted, one after the other; yields the checksum of each that is there."""
        while True:
            await self._news.wait()
            self._news.clear()
            wanted, pause = self.wanted, self._first_retry
            while wanted is not None and not self._news.is_set() and wanted.sha256 not in self.files:
                try:
                    self.files = {wanted.sha256: await self._fetched(wanted)}
                except (ArchiveError, FetchError, OSError) as error:
                    reason = told(error) if isinstance(error, OSError) else str(error)
                    if not self._news.is_set():
                        self.progress = f"software: {reason}; tried again in {pause:g} s"
                        self._log.warning("%s: %s; tried again in %g s", wanted.url, reason, pause, extra=_ORIGIN)
                        await self._quiet(pause)
                    pause = min(self._slowest_retry, 2 * pause)
            if wanted is not None and wanted.sha256 in self.files:
                self.tell(wanted)
                yield wanted.sha256

    async def _quiet(self, pause: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._news.wait()

    async def _fetched(self, wanted: IMEXSoftware) -> tuple[Surface, ...]:
        """The files; a fetch that takes too long, or whose end nobody waits for any more, stops at once."""
        line = self._line = Line()
        late = asyncio.get_running_loop().call_later(self._patience, line.cut)
        task = asyncio.ensure_future(in_thread(lambda: self._obtained(wanted, line)))
        try:
            return await asyncio.shield(task)
        finally:
            late.cancel()
            line.cut()
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # nobody else asks if this was cancelled

    def look(self, wanted: IMEXSoftware) -> bool:
        """Whether it is there, or lies there from an earlier time. Blocks on the disk only."""
        if wanted.sha256 not in self.files:
            with contextlib.suppress(ArchiveError, OSError):
                if _checksum(self._archive) == wanted.sha256:
                    self.files = {wanted.sha256: surfaces(self._archive)}
        return wanted.sha256 in self.files

    def _obtained(self, wanted: IMEXSoftware, line: Line) -> tuple[Surface, ...]:
        if self._archive.is_dir():
            raise FetchError(f"{self._archive}: is a directory where the archive belongs; move it away")
        if _checksum(self._archive) != wanted.sha256:
            self._fetch(wanted, line)
        return surfaces(self._archive)

    def _fetch(self, wanted: IMEXSoftware, line: Line) -> None:
        """Whatever lies at the temporary's place goes first: nothing is ever written through a link."""
        self._temporary.unlink(missing_ok=True)
        try:
            found = self._copy(wanted.url, line)
            if found != wanted.sha256:
                raise FetchError(f"its SHA-256 is {found}, not {wanted.sha256}")
            self._temporary.rename(self._archive)
        finally:
            self._temporary.unlink(missing_ok=True)

    def _copy(self, url: str, line: Line) -> str:
        """Write what is at the URL to the temporary; its SHA-256."""
        from simnode.simulators.imex.fetch import pieces

        digest, size = hashlib.sha256(), 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(self._temporary, flags, 0o644), "wb") as file:
                for piece in pieces(url, line):
                    if line.is_cut:
                        break
                    size += len(piece)
                    file.write(piece)
                    digest.update(piece)
                    self.progress = f"software: {size >> 20} MiB fetched"
        except FetchError:
            if not line.is_cut:
                raise
        if line.is_cut:
            raise FetchError(f"takes longer than {self._patience:g} s")
        return digest.hexdigest()


def _checksum(path: Path) -> str:
    """ "" if there is none."""
    with contextlib.suppress(FileNotFoundError, ArchiveError), opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return ""
