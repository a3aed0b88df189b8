"""Surfaces refuse what could never stand, and know each other by what they hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simnode.host import CharacterDevice, Directory, File, Link, LiveFile, StandIn, Surface, TreeError

BAD_PATHS = {
    "empty": "",
    "absolute": "/etc/passwd",
    "dot": ".",
    "dot-inside": "a/./b",
    "dot-dot": "..",
    "dot-dot-inside": "a/../b",
    "empty-component": "a//b",
    "trailing-slash": "a/",
    "nul": "a\0b",
    "newline": "a\nb",
    "component-too-long": "a/" + "x" * 256,
    "component-too-long-in-bytes": "ü" * 128,
    "too-long": "a/" * 2100 + "a",
    "not-utf8": "a\udc80",
    "records": "state",
    "in-records": "state/journal/x.json",
    "temporary": "a/.simnode-x~",
}


@pytest.mark.parametrize("path", BAD_PATHS.values(), ids=BAD_PATHS.keys())
@pytest.mark.parametrize(
    "make",
    [
        lambda path: File(path, b""),
        lambda path: LiveFile(path, 1),
        lambda path: Link(path, "x"),
        lambda path: CharacterDevice(path, 1, 3),
        StandIn,
        Directory,
    ],
    ids=["file", "live-file", "link", "device", "stand-in", "directory"],
)
def test_a_path_that_could_lead_elsewhere_is_refused(make: Callable[[str], Surface], path: str) -> None:
    with pytest.raises(TreeError) as caught:
        make(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["a", "a/b", "...", "a/..b", "stateful", "a/state", "0000:07:00.0/config", "ü" * 127])
def test_a_plain_relative_path_is_taken(path: str) -> None:
    assert File(path, b"").path == path


@pytest.mark.parametrize(
    "make",
    [
        lambda: File("a", b"", 0o10000),
        lambda: File("a", b"", -1),
        lambda: LiveFile("a", -1),
        lambda: Link("a", ""),
        lambda: Link("a", "b\0c"),
        lambda: Link("a", "b" * 4096),
        lambda: CharacterDevice("a", 4096, 0),
        lambda: CharacterDevice("a", 0, 1 << 20),
        lambda: CharacterDevice("a", -1, 0),
    ],
    ids=[
        "mode-too-large",
        "mode-negative",
        "size-negative",
        "target-empty",
        "target-with-nul",
        "target-too-long",
        "major-too-large",
        "minor-too-large",
        "major-negative",
    ],
)
def test_a_value_that_no_file_system_takes_is_refused_by_path(make: Callable[[], Surface]) -> None:
    with pytest.raises(TreeError, match=r"^a: "):
        make()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (File("a", b"x"), File("a", b"y")),
        (LiveFile("a", 1), LiveFile("a", 2)),
        (Link("a", "x"), Link("a", "y")),
        (CharacterDevice("a", 195, 0), CharacterDevice("a", 195, 1)),
    ],
    ids=["file", "live-file", "link", "device"],
)
def test_fingerprints_differ_exactly_if_what_is_held_differs(one: Surface, other: Surface) -> None:
    assert one.fingerprint != other.fingerprint
    assert one != other


def test_a_fingerprint_does_not_depend_on_path_or_mode() -> None:
    assert File("a", b"x", 0o644).fingerprint == File("b", b"x", 0o755).fingerprint
