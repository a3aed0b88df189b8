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
import http.client
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from simnode.contracts import Report
from simnode.host import Surface
from simnode.refusals import told
from simnode.simulators import in_thread
from simnode.simulators.imex.archive import LARGEST, ArchiveError, surfaces
from simnode.state import IMEXSoftware

ARCHIVE = "state/imex-software"
FACT = "imex_software"
_CHUNK = 256 << 10
_QUIET = 10.0  # also how long an agent that ends may have to wait
_ORIGIN = {"simulator": "imex", "surface": ARCHIVE}


class FetchError(Exception):
    """Raised where the archive cannot be had now; one line."""


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
        self._report = report
        self._log = log
        self._patience = patience
        self._first_retry = first_retry
        self._slowest_retry = slowest_retry
        self._news = asyncio.Event()
        self._stop = threading.Event()
        self.wanted: IMEXSoftware | None = None
        self.files: dict[str, tuple[Surface, ...]] = {}
        self.progress = ""

    def want(self, wanted: IMEXSoftware | None) -> None:
        """Have this from now on; a fetch of something else ends."""
        if wanted != self.wanted:
            self.wanted = wanted
            self._stop.set()
            self._news.set()

    def tell(self, software: IMEXSoftware) -> None:
        """Report the fact that this is there."""
        self.progress = "software: about to be staged"
        self._report(FACT, software.sha256)

    def forget(self) -> None:
        """Remove the archive. Blocks on the disk; raises OSError."""
        self._archive.unlink(missing_ok=True)

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
        """The files; a fetch whose end nobody waits for any more stops at its next piece."""
        stop = self._stop = threading.Event()
        task = asyncio.ensure_future(in_thread(lambda: self._obtained(wanted, stop)))
        try:
            return await asyncio.shield(task)
        finally:
            stop.set()
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

    def _obtained(self, wanted: IMEXSoftware, stop: threading.Event) -> tuple[Surface, ...]:
        if _checksum(self._archive) != wanted.sha256:
            self._fetch(wanted, stop)
        return surfaces(self._archive)

    def _fetch(self, wanted: IMEXSoftware, stop: threading.Event) -> None:
        temporary = Path(f"{self._archive}.tmp")
        try:
            with temporary.open("wb") as file:
                found = self._copy(wanted.url, file, stop)
            if found != wanted.sha256:
                raise FetchError(f"its SHA-256 is {found}, not {wanted.sha256}")
            temporary.rename(self._archive)
        finally:
            temporary.unlink(missing_ok=True)

    def _copy(self, url: str, file: BinaryIO, stop: threading.Event) -> str:
        """Write what is at the URL to the file; its SHA-256. Raises FetchError for what is too large or too slow."""
        digest, size, until = hashlib.sha256(), 0, time.monotonic() + self._patience
        try:
            with urllib.request.urlopen(url, timeout=min(_QUIET, self._patience)) as answer:
                while piece := answer.read(_CHUNK):
                    size += len(piece)
                    if size > LARGEST:
                        raise FetchError(f"is larger than {LARGEST >> 20} MiB")
                    if stop.is_set() or time.monotonic() > until:
                        raise FetchError(f"takes longer than {self._patience:g} s")
                    file.write(piece)
                    digest.update(piece)
                    self.progress = f"software: {size >> 20} MiB fetched"
        except urllib.error.HTTPError as error:
            error.close()
            raise FetchError(f"HTTP {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            raise FetchError(f"cannot be fetched: {error.reason}") from None
        except (TimeoutError, http.client.HTTPException, ConnectionError, ValueError) as error:
            raise FetchError(f"cannot be fetched: {error}") from None
        return digest.hexdigest()


def _checksum(path: Path) -> str:
    """ "" if there is none."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return ""
