"""Fetches the real programs that the consumer tests drive, into a cache, without touching the system.

Programs come from the machine's own Debian mirror through a private apt list (suites and components that the system
itself need not have), Python bindings of many releases from wherever pip takes its packages. All are unpacked, never
installed: works as an ordinary user, and no proprietary binary enters the repository. What cannot be had is named with
the reason and is no error here; whether a skip is acceptable is the test suite's decision.

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
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SECONDS_PER_COMMAND = 180
PIPS_AT_ONCE = 4


@dataclass(frozen=True)
class Program:
    """One program of one release: where the package is published, and its file inside the package (a glob).

    `beside` names packages of the same suite, of any component used here, that are unpacked into the same place: the
    libraries and plugins that it loads.
    """

    name: str
    package: str
    suite: str
    component: str
    release: str
    file: str
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Distribution:
    """One release of a Python distribution, and its file once installed into a directory of its own."""

    name: str
    project: str
    release: str
    file: str


PROGRAMS = (
    Program("nvidia-smi-535", "nvidia-smi", "bookworm", "non-free", "535.", "usr/lib/nvidia/current/nvidia-smi"),
    Program("nvidia-smi-550", "nvidia-smi", "trixie", "non-free", "550.", "usr/lib/nvidia/current/nvidia-smi"),
    Program("nvidia-smi-555", "nvidia-smi", "experimental", "non-free", "555.", "usr/lib/nvidia/current/nvidia-smi"),
    Program("musl", "musl", "bookworm", "main", "1.2.", "lib/*-linux-musl/libc.so"),
    Program("musl-dev", "musl-dev", "bookworm", "main", "1.2.", "usr/include/*-linux-musl"),
    Program("busybox", "busybox-static", "bookworm", "main", "1:1.", "bin/busybox"),
    Program("nvtop", "nvtop", "bookworm", "contrib", "3.0.", "usr/bin/nvtop", ("libncursesw6",)),
    Program(
        "podman",
        "podman",
        "bookworm",
        "main",
        "4.3.",
        "usr/bin/podman",
        ("conmon", "runc", "libassuan0", "libdevmapper1.02.1", "libglib2.0-0", "libgpgme11", "libsubid4"),
    ),
    Program("containerd", "containerd", "trixie", "main", "1.7.", "usr/bin/containerd"),
    Program(
        "lspci",
        "pciutils",
        "bookworm",
        "main",
        "1:3.9.",
        "usr/bin/lspci",
        ("libpci3", "libkmod2", "pci.ids", "libzstd1"),
    ),
    Program(
        "lstopo",
        "hwloc-nox",
        "bookworm",
        "main",
        "2.9.",
        "usr/bin/lstopo-no-graphics",
        ("libhwloc15", "libhwloc-plugins", "libhwloc-contrib-plugins", "libpciaccess0"),
    ),
)
DISTRIBUTIONS = tuple(
    Distribution(f"nvidia-ml-py-{release.split('.')[1]}", "nvidia-ml-py", release, "pynvml.py")
    for release in (
        "10.418.84",
        "11.450.129",
        "11.470.66",
        "11.510.69",
        "11.525.150",
        "12.535.161",
        "12.550.89",
        "12.555.43",
        "12.560.30",
        "12.570.172",
        "13.580.126",
        "13.595.45",
        "13.615.71",
    )
)
"""The bindings of each driver branch, in the release for the branch's last drivers; the name ends in the branch."""


@dataclass(frozen=True)
class Fetched:
    """A program as the cache holds it; `version` is the upstream version, `root` the unpacked package."""

    name: str
    version: str
    path: Path
    root: Path

    @property
    def libraries(self) -> str:
        """A value for LD_LIBRARY_PATH: where the libraries unpacked beside the program lie."""
        return ":".join(
            str(path) for part in ("lib", "usr/lib") for path in sorted(self.root.glob(f"{part}/*-linux-*"))
        )


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
    wanted: tuple[Program | Distribution, ...] = (*PROGRAMS, *DISTRIBUTIONS)
    reasons: dict[str, str] = {}
    if any(cached(cache, entry.name) is None for entry in wanted):
        with _locked(cache):
            reasons = _fetch_missing(cache, [entry for entry in wanted if cached(cache, entry.name) is None])
    found = {entry.name: cached(cache, entry.name) for entry in wanted}
    return {name: entry for name, entry in found.items() if entry}, reasons


def _fetch_missing(cache: Path, missing: list[Program | Distribution]) -> dict[str, str]:
    for abandoned in (cache / "programs").glob(".fetch-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    (cache / "programs").mkdir(exist_ok=True)
    distributions = [entry for entry in missing if isinstance(entry, Distribution)]
    with ThreadPoolExecutor(PIPS_AT_ONCE) as pool:
        installed = pool.map(lambda entry: _reason(_install, cache, entry), distributions)
        reasons = _fetch_programs(cache, [entry for entry in missing if isinstance(entry, Program)])
        tried = zip(distributions, installed, strict=True)
        return reasons | {entry.name: reason for entry, reason in tried if reason}


def _fetch_programs(cache: Path, missing: list[Program]) -> dict[str, str]:
    if not missing:
        return {}
    try:
        apt = _Apt(cache / "apt")
        apt.update()
    except Unobtainable as error:
        return dict.fromkeys((p.name for p in missing), str(error))
    tried = ((program, _reason(_unpack, cache, program, apt)) for program in missing)
    return {program.name: reason for program, reason in tried if reason}


def _reason(action: Callable[..., None], *arguments: object) -> str | None:
    """Do it; why it could not be done, or None."""
    try:
        action(*arguments)
    except Unobtainable as error:
        return str(error)
    return None


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unpack(cache: Path, program: Program, apt: _Apt) -> None:
    version = apt.version(program.package, program.suite, program.component, program.release)
    with _place(cache, program.name, _upstream(version), program.file) as root:
        for package in (program.package, *program.beside):
            chosen = version if package == program.package else apt.version(package, program.suite)
            archive = apt.download(package, chosen, root.parent)
            _command("dpkg", "-x", str(archive), str(root))
            archive.unlink()
        for file in root.glob(program.file) if program.package == "nvidia-smi" else ():
            if _upstream(version).encode() not in file.read_bytes():
                raise Unobtainable(f"{file.name} of {program.package} {version} does not carry its version")


def _install(cache: Path, distribution: Distribution) -> None:
    with _place(cache, distribution.name, distribution.release, distribution.file) as root:
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", "install")
        options = ("--no-deps", "--root-user-action=ignore", "--target", str(root))
        _command(*pip, *options, f"{distribution.project}=={distribution.release}")


@contextmanager
def _place(cache: Path, name: str, version: str, file: str) -> Iterator[Path]:
    """An empty directory to fill; it appears in the cache, whole, once it is left and holds a match of `file`."""
    programs = cache / "programs"
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=programs) as scratch:
        root = Path(scratch) / "root"
        root.mkdir()
        yield root
        root.chmod(0o755)
        found = next(iter(sorted(root.glob(file))), None)
        if found is None:
            raise Unobtainable(f"{name} {version} holds no {file}")
        (root / "program.json").write_text(json.dumps({"version": version, "file": str(found.relative_to(root))}))
        root.rename(programs / name)


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
        wanted = {(program.suite, program.component) for program in PROGRAMS}
        lines = [f"deb {options}{address} {suite} {component}\n" for suite, component in sorted(wanted)]
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

    def version(self, package: str, suite: str, component: str = "", release: str = "") -> str:
        """The version of the wanted release line in the wanted suite, and component if one is named."""
        for line in _command("apt-cache", *self._options, "madison", package).splitlines():
            _, version, source = (field.strip() for field in line.split("|"))
            place = f"{suite}/{component} " if component else f"{suite}/"
            if version.startswith(release) and f" {place}" in f"{source} ":
                return version
        raise Unobtainable(f"the mirror has no {package} {release}* in {suite}")

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
        raise Unobtainable(f"{Path(words[0]).name} did not end within {SECONDS_PER_COMMAND} s") from None
    if check and done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Unobtainable(f"{Path(words[0]).name} failed: {reason}")
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
