"""A record is read again whenever it may be another one, by however many owners at once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from simnode.host import records
from simnode.host.ctimes import settled
from simnode.host.paths import Beneath
from simnode.host.records import Parsed

NOW = 1_790_000_000_123_456_789
SECOND = 10**9


@pytest.mark.parametrize(
    ("ctime", "right"),
    [
        (NOW - 11_000_000, True),
        (NOW - 10_000_000, False),
        (NOW, False),
        (NOW + 3 * SECOND, False),
        (NOW // SECOND * SECOND, False),
        ((NOW // SECOND - 1) * SECOND, False),
        ((NOW // SECOND - 2) * SECOND, True),
        (0, True),
    ],
    ids=["a tick ago", "this tick", "now", "to come", "this second", "last second", "seconds ago", "of no time"],
)
def test_a_ctime_is_settled_once_the_next_alteration_must_show(ctime: int, right: bool) -> None:
    assert settled(ctime, NOW) is right


def test_the_record_of_another_thread_that_is_late_is_not_taken_for_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: Parsed[bytes] = Parsed()
    (tmp_path / "r.json").write_bytes(b"old")
    begun, go_on = threading.Event(), threading.Event()

    def slowly(record: bytes) -> bytes:
        begun.set()
        go_on.wait(10)
        return record

    def reading() -> None:
        with Beneath(tmp_path) as beneath:
            assert parsed.read(beneath, "r.json", slowly) == b"old"

    def late(ctime: int, before: int) -> bool:
        if threading.current_thread() is threading.main_thread():
            go_on.set()
            other.join(10)
        return settled(ctime, before)

    other = threading.Thread(target=reading)
    other.start()
    assert begun.wait(10)
    (tmp_path / "new.json").write_bytes(b"new")
    (tmp_path / "new.json").rename(tmp_path / "r.json")
    time.sleep(0.05)
    monkeypatch.setattr(records, "settled", late)
    with Beneath(tmp_path) as beneath:
        assert parsed.read(beneath, "r.json", bytes) == b"new"
        assert parsed.read(beneath, "r.json", bytes) == b"new"
