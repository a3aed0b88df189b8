"""The image file as its writer sees it: a State is encoded, then published for every reader at once.

The file is made elsewhere (a live file of IMAGE.size zero bytes) and written in place: readers have it mapped. It is
never truncated, and a file that holds anything but an image of this layout is refused. How a publish stays whole for
readers, and how counters never fall, is native/publish's business.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from simnode.nvml.cells import DEVICE, HEADER, IMAGE, NODE
from simnode.nvml.encode import NONE, Records, encode
from simnode.nvml.layout import MAX_DEVICES
from simnode.nvml.values import ImageError

__all__ = ["ImageError", "Publisher", "encode"]

LIBRARY = Path(__file__).parents[1] / "_native" / "libpublish.so"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Publisher:
    """The one writer of an image. Its methods may be called from any thread; a publish of another process must not run.

    `path` must be a regular file of at least IMAGE.size bytes. An image that is there goes on: counters, epochs and
    event numbers continue; after another boot, counters start from their last stored values. Raises ImageError if the
    file is no image and not all new, OSError if it cannot be opened.
    """

    def __init__(self, path: Path | str, *, boot_id: str | None = None, library: Path = LIBRARY) -> None:
        self._boot_id = (BOOT_ID.read_text().strip() if boot_id is None else boot_id).encode()
        self._native = _load(library)
        self._lock = threading.Lock()
        self._latest: tuple[list[bytes], list[bytes]] = [], []
        self._followed: tuple[Publisher | None, int, int] = None, 0, 0
        self._map = _map(path)
        self._image: ctypes.Array[ctypes.c_char] | None = (ctypes.c_char * IMAGE.size).from_buffer(self._map)
        if self._native.sn_publish_open(self._image) != 0:
            self.close()
            raise ImageError(f"{path}: holds something else than an image of this format; remove it")

    def publish(self, records: Records) -> int:
        """Let every reader see what `encode` made of a State; returns the number of this publish, from 1.

        A device whose record is the very same object as the last two times costs nothing.
        Blocks for a few ticks of 4 ms at most, and only while counters that were just changed are changed again.
        """
        sizes = [len(record) for record in records]
        count = int.from_bytes(records[0][NODE.offsets["device_count"] :][:4], "little") if records else 0
        if count > MAX_DEVICES or sizes != [NODE.size, *[DEVICE.size] * count]:
            raise ImageError(f"records of {sizes} bytes are not a node and its {count} devices")
        node, *devices = records
        with self._lock:
            image = self._open()
            settled = sum(1 << at for at, same in enumerate(map(_same, devices, *self._latest)) if same)
            pointers, latest = (ctypes.c_char_p * count)(*devices), (devices, self._latest[0])
            self._latest = [], []
            number = int(self._native.sn_publish(image, node, pointers, settled, self._boot_id))
            self._latest = latest
            return number

    def doubt(self) -> None:
        """Let the next publish write anew whatever somebody else may have written over."""
        with self._lock:
            self._latest = [], []

    def event(
        self, device: int, kind: int, data: int = 0, *, gpu_instance: int = NONE, compute_instance: int = NONE
    ) -> int:
        """Append an event of the device of that index and wake who waits for it; returns its number, from 1.

        `kind` is one of nvml.h's nvmlEventType bits, `data` the XID code where there is one.
        """
        if not 0 <= device < MAX_DEVICES:
            raise ImageError(f"event: device {device} is not between 0 and {MAX_DEVICES - 1}")
        with self._lock:
            return int(self._native.sn_publish_event(self._open(), device, kind, data, gpu_instance, compute_instance))

    def follow(self, other: Publisher) -> None:
        """Let every reader see what `other` published last, and its events since the last time this was called.

        This image then says what that one says, counters to the last digit; call it after each publish and event there.
        What had happened before the first time is nobody's news. Neither file counts as our memory afterwards.
        """
        with other._lock, self._lock:
            theirs = other._open()
            done, events = other._numbers()
            before, copied, heard = self._followed
            if before is not other:
                copied, heard = 0, events
            self._native.sn_publish_copy(self._open(), theirs, copied, heard)
            self._latest = [], []
            self._followed = other, done, events
            for each in (self, other):
                each._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Unmap the file; readers keep what was published."""
        with self._lock:
            self._image = None
            self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _numbers(self) -> tuple[int, int]:
        """The numbers of the last publish and the newest event."""
        at = HEADER.offsets["done"], HEADER.offsets["event_total"]
        done, events = (int.from_bytes(self._map[offset : offset + 8], "little") for offset in at)
        return done, events

    def _open(self) -> ctypes.Array[ctypes.c_char]:
        if self._image is None:
            raise ValueError("the publisher is closed")
        return self._image


def _same(one: bytes, *others: bytes) -> bool:
    return all(other is one for other in others)


def _map(path: Path | str) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size < IMAGE.size:
            raise ImageError(f"{path}: is no regular file of at least {IMAGE.size} bytes")
        return mmap.mmap(descriptor, IMAGE.size)
    finally:
        os.close(descriptor)


def _load(library: Path) -> ctypes.CDLL:
    native = ctypes.CDLL(str(library))
    image = ctypes.c_void_p
    native.sn_publish_open.argtypes = [image]
    native.sn_publish.argtypes = [image, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p]
    native.sn_publish.restype = ctypes.c_uint64
    native.sn_publish_event.argtypes = [
        image, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32,
    ]  # fmt: skip
    native.sn_publish_event.restype = ctypes.c_uint64
    native.sn_publish_copy.argtypes = [image, image, ctypes.c_uint64, ctypes.c_uint64]
    native.sn_publish_copy.restype = None
    return native
