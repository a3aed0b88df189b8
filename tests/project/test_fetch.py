"""The fetcher takes the machine's own mirror, however its sources are written, and finds a place to keep things."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.consumers import fetch

DEB822 = """\
# the archive
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /keys/archive.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""
FIRST_STANZA = DEB822.partition("\n\n")[0]
ONE_LINE = """\
# deb http://old.example/debian buster main
deb http://mirror.example/debian-security bookworm-security main
deb [arch=amd64 signed-by=/keys/archive.gpg] http://mirror.example/debian bookworm main contrib
"""
FOUND = ("http://mirror.example/debian", "[signed-by=/keys/archive.gpg] ")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"sources.list.d/debian.sources": DEB822}, FOUND, id="deb822"),
        pytest.param({"sources.list": ONE_LINE}, FOUND, id="one-line"),
        pytest.param({"sources.list": "# moved\n", "sources.list.d/debian.sources": DEB822}, FOUND, id="both"),
        pytest.param({"sources.list.d/debian.list": ONE_LINE}, FOUND, id="one-line-part"),
        pytest.param(
            {"sources.list.d/a.sources": "Enabled: no\n" + FIRST_STANZA, "sources.list.d/b.list": ONE_LINE},
            FOUND,
            id="disabled",
        ),
    ],
)
def test_the_systems_own_mirror_is_found(tmp_path: Path, files: dict[str, str], expected: tuple[str, str]) -> None:
    """Not the security archive, nothing commented out or disabled; the signing key comes along."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert fetch.mirror(tmp_path) == expected


def test_a_machine_without_an_archive_says_so(tmp_path: Path) -> None:
    """Nothing to take an address from."""
    with pytest.raises(fetch.Unobtainable, match="no Debian archive"):
        fetch.mirror(tmp_path)


def test_the_cache_is_where_the_environment_says(tmp_path: Path) -> None:
    """SIMNODE_CACHE, before the user's cache directory."""
    assert fetch.cache_directory({"SIMNODE_CACHE": "/elsewhere", "HOME": str(tmp_path)}) == Path("/elsewhere")
    assert fetch.cache_directory({"HOME": str(tmp_path)}) == tmp_path / ".cache" / "simnode"
    assert fetch.cache_directory({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "simnode"


def test_a_home_that_takes_no_files_is_done_without() -> None:
    """The cache is then in the checkout."""
    assert fetch.cache_directory({"HOME": "/proc"}) == fetch.REPOSITORY / "build" / "cache"
