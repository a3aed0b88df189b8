"""Fetches the real programs that the consumer tests drive, into a cache, without touching the system.

They come from the machine's own Debian mirror through a private apt list (suites and components that the system itself
need not have) and are unpacked, never installed: works as an ordinary user, and no proprietary binary enters the
repository. What cannot be had is named with the reason and is no error here; whether a skip is acceptable is the test
suite's decision.

    python tests/consumers/fetch.py            fetches what is missing, lists every program with version and path
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SECONDS_PER_COMMAND = 180


@dataclass(frozen=True)
class Program:
    """One program of one release: where the package is published, and its file inside the package (a glob)."""

    name: str
    package: str
    suite: str
    component: str
    release: str
    file: str


PROGRAMS = (
    Program("nvidia-smi-535", "nvidia-smi", "bookworm", "non-free", "535.", "usr/lib/nvidia/current/nvidia-smi"),
    Program("nvidia-smi-550", "nvidia-smi", "trixie", "non-free", "550.", "usr/lib/nvidia/current/nvidia-smi"),
    Program("nvidia-smi-555", "nvidia-smi", "experimental", "non-free", "555.", "usr/lib/nvidia/current/nvidia-smi"),
    Program("musl", "musl", "bookworm", "main", "1.2.", "lib/*-linux-musl/libc.so"),
    Program("musl-dev", "musl-dev", "bookworm", "main", "1.2.", "usr/include/*-linux-musl"),
    Program("busybox", "busybox-static", "bookworm", "main", "1:1.", "bin/busybox"),
)


@dataclass(frozen=True)
class Fetched:
    """A program as the cache holds it; `version` is the upstream version, `root` the unpacked package."""

    name: str
    version: str
    path: Path
    root: Path


class Unobtainable(Exception):
    """Raised by everything here when a program cannot be had from this machine; the text is the reason, one line."""


def cache_directory(environ: Mapping[str, str]) -> Path:
    """$SIMNODE_CACHE, else the user's cache directory, else (a read-only home) one in the checkout's build folder."""
    if named := environ.get("SIMNODE_CACHE"):
        return Path(named)
    home = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/nonexistent")) / ".cache")
    try:
        (home / "simnode").mkdir(parents=True, exist_ok=True)
    except OSError:
        return REPOSITORY / "build" / "cache"
    return home / "simnode" if os.access(home / "simnode", os.W_OK) else REPOSITORY / "build" / "cache"


def cached(cache: Path, name: str) -> Fetched | None:
    """The program as an earlier run left it, or None."""
    root = cache / "programs" / name
    try:
        entry = json.loads((root / "program.json").read_text())
    except FileNotFoundError:
        return None
    return Fetched(name, entry["version"], root / entry["file"], root)


def fetch(cache: Path) -> tuple[dict[str, Fetched], dict[str, str]]:
    """Every program by name, and the reason of each that cannot be had. Safe to run several times at once."""
    missing = [program for program in PROGRAMS if cached(cache, program.name) is None]
    reasons: dict[str, str] = {}
    if missing:
        with _locked(cache):
            reasons = _fetch_missing(cache, [p for p in missing if cached(cache, p.name) is None])
    found = {program.name: cached(cache, program.name) for program in PROGRAMS}
    return {name: entry for name, entry in found.items() if entry}, reasons


def _fetch_missing(cache: Path, missing: list[Program]) -> dict[str, str]:
    if not missing:
        return {}
    try:
        apt = _Apt(cache / "apt")
        apt.update()
    except Unobtainable as error:
        return dict.fromkeys((p.name for p in missing), str(error))
    reasons = {}
    for program in missing:
        try:
            _unpack(cache, program, apt)
        except Unobtainable as error:
            reasons[program.name] = str(error)
    return reasons


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unpack(cache: Path, program: Program, apt: _Apt) -> None:
    version = apt.version(program)
    programs = cache / "programs"
    programs.mkdir(exist_ok=True)
    for abandoned in programs.glob(".fetch-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=programs) as scratch:
        archive = apt.download(program.package, version, Path(scratch))
        root = Path(scratch) / "root"
        root.mkdir()
        _command("dpkg", "-x", str(archive), str(root))
        root.chmod(0o755)
        file = next(iter(sorted(root.glob(program.file))), None)
        if file is None:
            raise Unobtainable(f"{program.package} {version} holds no {program.file}")
        upstream = _upstream(version)
        if program.package == "nvidia-smi" and upstream.encode() not in file.read_bytes():
            raise Unobtainable(f"{file.name} of {program.package} {version} does not carry its version")
        entry = {"version": upstream, "file": str(file.relative_to(root))}
        (root / "program.json").write_text(json.dumps(entry))
        root.rename(programs / program.name)


def _upstream(version: str) -> str:
    """1:1.35.0-4+deb12u1 -> 1.35.0"""
    return re.sub(r"^\d+:|-[^-]*$", "", version)


class _Apt:
    """apt with lists, cache and status of our own; the mirror is the one that the system uses."""

    def __init__(self, state: Path) -> None:
        address, options = mirror(Path("/etc/apt"))
        (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (state / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        wanted = sorted({(program.suite, program.component) for program in PROGRAMS})
        lines = [f"deb {options}{address} {suite} {component}\n" for suite, component in wanted]
        (state / "sources.list").write_text("".join(lines))
        settings = {
            "Dir::Etc::sourcelist": state / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::Lists": state / "lists",
            "Dir::State::status": state / "status",
            "Dir::Cache": state / "cache",
            "Dir::Cache::pkgcache": "packages.bin",
            "Dir::Cache::srcpkgcache": "sources.bin",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            # A mirror that lags, or a clock that runs ahead, is no reason to skip tests: signatures are still checked.
            "Acquire::Check-Valid-Until": "false",
            "Acquire::Retries": "3",
            "Acquire::http::Timeout": "20",
            "Acquire::https::Timeout": "20",
        }
        self._options = [f"-o{key}={value}" for key, value in settings.items()]

    def update(self) -> None:
        """Read the lists; a suite that fails shows later as a version that is not published."""
        _command("apt-get", *self._options, "-q", "update", check=False)

    def version(self, program: Program) -> str:
        """The package version of the wanted release line in the wanted suite."""
        for line in _command("apt-cache", *self._options, "madison", program.package).splitlines():
            _, version, source = (field.strip() for field in line.split("|"))
            if version.startswith(program.release) and f" {program.suite}/{program.component} " in f"{source} ":
                return version
        raise Unobtainable(f"the mirror has no {program.package} {program.release}* in {program.suite}")

    def download(self, package: str, version: str, directory: Path) -> Path:
        """The archive; apt has checked its size and hash against the signed list."""
        _command("apt-get", *self._options, "-q", "download", f"{package}={version}", directory=directory)
        return next(directory.glob("*.deb"))


def mirror(etc: Path) -> tuple[str, str]:
    """Address and options of the system's own archive: one-line or deb822 sources, security and update suites aside."""
    parts = etc / "sources.list.d"
    for file in [etc / "sources.list", *sorted(parts.glob("*.list")), *sorted(parts.glob("*.sources"))]:
        if file.is_file():
            text = file.read_text(errors="replace")
            for uri, suites, components, key in _stanzas(text) if file.suffix == ".sources" else _lines(text):
                if "main" in components and any(re.fullmatch(r"[a-z]+", suite) for suite in suites):
                    keyring = key or (str(KEYRING) if KEYRING.exists() else "")
                    return uri, f"[signed-by={keyring}] " if keyring else ""
    raise Unobtainable("no Debian archive in the machine's apt sources")


def _lines(text: str) -> Iterator[tuple[str, list[str], list[str], str]]:
    for match in re.finditer(r"^deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)$", text, re.M):
        options, uri, suite, components = match.groups()
        key = re.search(r"signed-by=(\S+)", options or "")
        yield uri, [suite], components.split(), key.group(1) if key else ""


def _stanzas(text: str) -> Iterator[tuple[str, list[str], list[str], str]]:
    for stanza in re.split(r"\n\s*\n", text):
        fields = {k.lower(): v.strip() for k, v in re.findall(r"^([A-Za-z-]+):(.*)$", stanza, re.M)}
        if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes") != "no" and fields.get("uris"):
            key = fields.get("signed-by", "")
            yield (
                fields["uris"].split()[0],
                fields.get("suites", "").split(),
                fields.get("components", "").split(),
                key if key.startswith("/") else "",
            )


def _command(*words: str, directory: Path | None = None, check: bool = True) -> str:
    if shutil.which(words[0]) is None:
        raise Unobtainable(f"this machine has no {words[0]}")
    environ = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words,
            cwd=directory,
            env=environ,
            capture_output=True,
            text=True,
            timeout=SECONDS_PER_COMMAND,
            stdin=subprocess.DEVNULL,
            umask=0o022,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unobtainable(f"{words[0]} did not end within {SECONDS_PER_COMMAND} s") from None
    if check and done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Unobtainable(f"{words[0]} failed: {reason}")
    return done.stdout


def main() -> int:
    """Fetch and list; exit 1 only when the cache itself cannot be written."""
    os.umask(0o022)
    try:
        found, reasons = fetch(cache_directory(os.environ))
    except OSError as error:
        print(
            f"fetch: {error.filename}: {error.strerror}; set SIMNODE_CACHE to a directory to write to", file=sys.stderr
        )
        return 1
    for program in found.values():
        print(f"{program.name} {program.version} {program.path}")
    for name, reason in reasons.items():
        print(f"{name} not to be had: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
