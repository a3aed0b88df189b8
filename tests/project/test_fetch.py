"""The fetcher takes the machine's own mirror, however its sources are written, and finds a place to keep things."""

from __future__ import annotations

import zipfile
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
WHEEL = {
    "example.py": "RELEASE = 2\n",
    "example-2.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: example\nVersion: 2.1\n",
    "example-2.1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "example-2.1.dist-info/RECORD": "",
}
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


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is the only place where pip finds anything, and nothing wanted but two releases of `example`."""
    place = tmp_path / "wheels"
    place.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    monkeypatch.setattr(fetch, "PROGRAMS", ())
    releases = tuple(fetch.Distribution(f"example-{at}", "example", f"{at}.1", "example.py") for at in (1, 2))
    monkeypatch.setattr(fetch, "DISTRIBUTIONS", releases)
    return place


def test_each_release_has_a_place_of_its_own_and_what_cannot_be_had_a_reason(tmp_path: Path, offline: Path) -> None:
    """The second release is there, the first is not: one is unpacked, whole, and kept; the other leaves nothing."""
    with zipfile.ZipFile(offline / "example-2.1-py3-none-any.whl", "w") as wheel:
        for name, text in WHEEL.items():
            wheel.writestr(name, text)
    found, reasons = fetch.fetch(tmp_path / "cache")
    programs = tmp_path / "cache" / "programs"
    root = programs / "example-2"
    assert found == {"example-2": fetch.Fetched("example-2", "2.1", root / "example.py", root)}
    assert found["example-2"].path.read_text() == WHEEL["example.py"]
    assert "No matching distribution found for example==1.1" in reasons.pop("example-1")
    assert reasons == {}
    assert [path.name for path in programs.iterdir()] == ["example-2"]
    assert fetch.cached(tmp_path / "cache", "example-2") == found["example-2"]


def test_libraries_beside_a_program_are_found(tmp_path: Path) -> None:
    """In the directories of a Debian package, those of other things aside."""
    for name in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/hwloc", "usr/lib/tmpfiles.d"):
        (tmp_path / name).mkdir(parents=True)
    fetched = fetch.Fetched("program", "1", tmp_path / "usr/bin/program", tmp_path)
    assert fetched.libraries == f"{tmp_path}/lib/x86_64-linux-gnu:{tmp_path}/usr/lib/x86_64-linux-gnu"
