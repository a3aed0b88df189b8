"""What may have changed a file is noticed, whatever else happens beside it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asyncinotify import Event, Inotify

from simnode.sources.watching import Watching
from tests.sources.watched import LOG

CROWD = 2000


def crowd(file: Path) -> None:
    """Replace the file time and again, as the store of overrides does: the kernel makes no two of these events one."""
    prepared = file.with_name("prepared")
    for number in range(CROWD):
        prepared.write_text(str(number))
        prepared.rename(file)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("")
    return path


@pytest.fixture
def watching(file: Path) -> Iterator[Watching]:
    watching = Watching((file,), LOG)
    watching.attach()
    yield watching
    watching.close()


@pytest.mark.parametrize("name", ["file", "other"])
def test_of_a_crowd_of_changes_no_more_is_looked_at_than_the_event_loop_can_bear(
    watching: Watching, file: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes it some 15 us, and a second of changes through the socket makes a thousand."""
    seen: list[Event | None] = []

    def get(self: Inotify, get: Callable[[Inotify], Event | None] = Inotify.sync_get) -> Event | None:
        seen.append(get(self))
        return seen[-1]

    monkeypatch.setattr(Inotify, "sync_get", get)
    crowd(file.with_name(name))

    assert watching.changed()
    assert len(seen) < CROWD / 10
    watching.attach()
    assert not watching.changed()


def test_what_happens_beside_the_file_is_no_change(watching: Watching, file: Path) -> None:
    file.with_name("other").write_text("")
    assert not watching.changed()


def test_after_a_crowd_the_next_change_is_noticed(watching: Watching, file: Path) -> None:
    crowd(file)
    assert watching.changed()
    watching.attach()

    file.write_text("new")
    assert watching.changed()
    assert not watching.changed()


def test_directories_that_go_in_a_crowd_leave_nothing_behind(tmp_path: Path) -> None:
    """The kernel's last word of an old one may have been passed over."""
    file = tmp_path / "directory/file"
    watching = Watching((file,), LOG)
    watched = []
    for _ in range(5):
        file.parent.mkdir()
        file.write_text("")
        watching.attach()
        assert watching._inotify is not None
        watched.append(len(watching._inotify.watches))
        assert not watching.changed()
        crowd(file)
        file.unlink()
        file.parent.rmdir()
        assert watching.changed()
    watching.close()
    assert len(set(watched)) == 1


def test_a_crowd_is_got_through_where_inotify_refuses_another_instance(
    watching: Watching, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> Inotify:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("simnode.sources.watching.Inotify", refuse)
    crowd(file)
    looks = 0
    while watching.changed():
        watching.attach()
        looks += 1
    assert 1 < looks < CROWD
    assert not watching.blind

    file.write_text("new")
    assert watching.changed()
