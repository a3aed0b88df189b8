"""Event sets: what is registered comes, once, at once; what is not does not; a wait is neither early nor busy."""

from __future__ import annotations

import ctypes
import struct
import threading
import time

import pytest

from simnode.state import State
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    SUCCESS,
    TIMEOUT,
    Handle,
    Library,
    Scene,
)

XID, ECC = 0x8, 0x2
NO_MEMORY = 20
Event = tuple[int | None, int, int, int, int]


def two() -> State:
    return node(runtime(), runtime())


def event_set(library: Library, *registered: tuple[int, int]) -> Handle:
    """A set, and what is registered in it: device index and types."""
    made = Handle()
    library.call("nvmlEventSetCreate", ctypes.byref(made))
    for index, types in registered:
        library.call("nvmlDeviceRegisterEvents", library.handle(index), ctypes.c_ulonglong(types), made)
    return made


def wait(library: Library, made: Handle, timeout_ms: int = 0) -> Event | int:
    """The next event, or the code."""
    out = ctypes.create_string_buffer(32)
    code = library.code("nvmlEventSetWait_v2", made, out, timeout_ms)
    if code != SUCCESS:
        return code
    address, kind, data, gpu, compute = struct.unpack("<QQQII", out.raw)
    return address or None, kind, data, gpu, compute


def test_an_event_comes_to_who_registered_its_device_and_type(scene: Scene) -> None:
    library = scene.start(two())
    made = event_set(library, (1, XID))
    scene.publisher.event(0, XID, 79)
    scene.publisher.event(1, ECC, 1)
    scene.publisher.event(1, XID, 48)
    assert wait(library, made) == (library.handle(1).value, XID, 48, 0xFFFFFFFF, 0xFFFFFFFF)
    assert wait(library, made) == TIMEOUT


def test_events_come_in_order_and_once(scene: Scene) -> None:
    library = scene.start(two())
    made = event_set(library, (0, XID | ECC), (1, XID))
    for number in range(5):
        scene.publisher.event(number % 2, XID, number)
    assert [event[2] for event in (wait(library, made) for _ in range(5)) if isinstance(event, tuple)] == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert wait(library, made) == TIMEOUT


def test_each_set_gets_its_own(scene: Scene) -> None:
    library = scene.start(two())
    sets = [event_set(library, (0, XID)) for _ in range(2)]
    scene.publisher.event(0, XID, 7)
    assert [isinstance(wait(library, made), tuple) for made in sets] == [True, True]


def test_what_came_before_the_registration_does_not_count(scene: Scene) -> None:
    library = scene.start(two())
    scene.publisher.event(0, XID, 1)
    made = event_set(library, (0, XID))
    scene.publisher.event(1, XID, 2)
    library.call("nvmlDeviceRegisterEvents", library.handle(1), ctypes.c_ulonglong(XID), made)
    scene.publisher.event(1, XID, 3)
    event = wait(library, made)
    assert isinstance(event, tuple)
    assert event[2] == 3


def test_the_ring_drops_the_oldest(scene: Scene) -> None:
    library = scene.start(two())
    made = event_set(library, (0, XID))
    for number in range(1500):
        scene.publisher.event(0, XID, number)
    seen = []
    while isinstance(event := wait(library, made), tuple):
        seen.append(event[2])
    assert seen == list(range(1500 - 1024, 1500))


def test_the_old_wait_writes_its_old_struct(scene: Scene) -> None:
    library = scene.start(two())
    made = event_set(library, (0, XID))
    scene.publisher.event(0, XID, 9)
    out = ctypes.create_string_buffer(b"\xa5" * 32, 32)
    library.call("nvmlEventSetWait", made, out, 0)
    assert struct.unpack("<QQQ8s", out.raw) == (library.handle(0).value, XID, 9, b"\xa5" * 8)


@pytest.mark.parametrize("timeout_ms", [0, 1, 150])
def test_a_wait_lasts_as_long_as_it_should_and_is_idle(scene: Scene, timeout_ms: int) -> None:
    library = scene.start(two())
    made = event_set(library, (0, XID))
    begun, worked = time.monotonic(), time.thread_time()
    assert wait(library, made, timeout_ms) == TIMEOUT
    assert timeout_ms <= (time.monotonic() - begun) * 1000 < timeout_ms + 1000
    assert time.thread_time() - worked < 0.02


def test_events_of_others_do_not_shorten_a_wait(scene: Scene) -> None:
    library = scene.start(two())
    made = event_set(library, (0, XID))
    timers = [threading.Timer(0.02 * i, scene.publisher.event, (1, XID, i)) for i in range(5)]
    for timer in timers:
        timer.start()
    begun = time.monotonic()
    assert wait(library, made, 200) == TIMEOUT
    assert time.monotonic() - begun >= 0.2
    for timer in timers:
        timer.join()


def test_an_event_ends_the_wait(scene: Scene) -> None:
    library = scene.start(two())
    made = event_set(library, (1, XID))
    timer = threading.Timer(0.1, scene.publisher.event, (1, XID, 31))
    begun = time.monotonic()
    timer.start()
    event = wait(library, made, 0xFFFFFFFF)
    assert 0.1 <= time.monotonic() - begun < 10
    assert isinstance(event, tuple)
    assert event[2] == 31
    timer.join()


def test_threads_that_wait_on_one_set_share_its_events(scene: Scene) -> None:
    library = scene.start(two())
    made = event_set(library, (0, XID))
    seen: list[int] = []

    def take() -> None:
        while isinstance(event := wait(library, made, 300), tuple):
            seen.append(event[2])

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(200):
        scene.publisher.event(0, XID, number)
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(200))


def test_only_supported_types_can_be_registered(scene: Scene) -> None:
    library = scene.start(two())
    supported = library.wide("nvmlDeviceGetSupportedEventTypes", library.handle())
    assert supported & (XID | ECC | 1) == XID | ECC | 1
    made = event_set(library, (0, supported))
    code = library.code("nvmlDeviceRegisterEvents", library.handle(), ctypes.c_ulonglong(1 << 40), made)
    assert code == NOT_SUPPORTED


def test_a_set_that_is_none_is_refused(scene: Scene) -> None:
    library = scene.start(two())
    made = event_set(library, (0, XID))
    library.call("nvmlEventSetFree", made)
    for bad in (made, Handle(None), Handle((made.value or 0) + 4), Handle(1 << 40)):
        assert wait(library, bad) == INVALID_ARGUMENT
        assert library.code("nvmlEventSetFree", bad) == INVALID_ARGUMENT
        assert (
            library.code("nvmlDeviceRegisterEvents", library.handle(), ctypes.c_ulonglong(XID), bad) == INVALID_ARGUMENT
        )


def test_sets_can_be_made_and_freed_for_ever(scene: Scene) -> None:
    library = scene.start(two())
    for _ in range(2000):
        library.call("nvmlEventSetFree", event_set(library))


def test_a_freed_set_is_new_when_it_comes_again(scene: Scene) -> None:
    library = scene.start(two())
    made = event_set(library, (0, XID))
    library.call("nvmlEventSetFree", made)
    again = event_set(library)
    scene.publisher.event(0, XID, 1)
    assert again.value == made.value
    assert wait(library, again) == TIMEOUT


def test_the_last_shutdown_frees_what_was_forgotten(scene: Scene) -> None:
    library = scene.start(two())
    forgotten = [event_set(library) for _ in range(256)]
    assert library.code("nvmlEventSetCreate", ctypes.byref(Handle())) == NO_MEMORY
    library.call("nvmlShutdown")
    library.call("nvmlInit_v2")
    assert wait(library, forgotten[0]) == INVALID_ARGUMENT
    event_set(library)
