"""IMEX node software: fetched in the background, used only if it is what was wanted, staged whole or not at all."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import logging
import lzma
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest

from simnode.agent import Reports
from simnode.host import ConvergeError, Host
from simnode.simulators.imex import IMEX, Software
from simnode.simulators.imex.archive import ArchiveError, surfaces
from simnode.simulators.imex.software import ARCHIVE
from simnode.state import IMEXSoftware, IMEXState, State
from tests.imex.archives import CONTENT, TOP, archive, member
from tests.simulators.states import state

STAGED = {
    "driver/etc/nvidia-imex/config.cfg",
    "driver/usr/bin/nvidia-imex",
    "driver/usr/bin/nvidia-imex-ctl",
    "driver/usr/bin/nvidia-imex.real",
    "driver/usr/libexec/nvidia-imex",
    "driver/usr/share/doc/nvidia-imex/LICENSE",
}


class Scene:
    """A node with IMEX and the agent's part of it: facts, and the waves that follow requeues."""

    def __init__(self, root: Path, **times: float) -> None:
        self.root = root / "node"
        self.root.mkdir(exist_ok=True)
        self.reports = Reports()
        log = logging.getLogger("tests.imex")
        software = Software(self.root, self.reports.report, log, **{"first_retry": 0.01, **times})
        self.imex = IMEX(Host(self.root, boot_id="boot"), "none", lambda _: "", software)

    async def stage(self, wanted: IMEXSoftware | None, *, enabled: bool = True) -> None:
        await self.imex.stage(with_software(wanted, enabled=enabled), self.reports.facts)

    async def obtained(self, wanted: IMEXSoftware) -> None:
        """A wave, what comes of it in the background, and the wave after that."""
        await self.stage(wanted)
        async for _ in self.imex.requeue():
            break
        await self.stage(wanted)

    def staged(self) -> set[str]:
        """All of the software that is there."""
        paths = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}
        return {path for path in paths if path.startswith("driver/") and "/proc/" not in path}


def with_software(software: IMEXSoftware | None, *, enabled: bool = True) -> State:
    return msgspec.structs.replace(state(1), imex=IMEXState(enabled=enabled, software=software))


@contextmanager
def served(*answers: bytes | int) -> Iterator[str]:
    """A server that gives these answers one after the other, the last one for ever; its URL."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(answer if isinstance(answer, int) else 200)
            self.end_headers()
            self.wfile.write(b"" if isinstance(answer, int) else answer)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/imex.tar.xz"
        server.shutdown()
        thread.join()


def test_it_is_staged_by_the_wave_after_it_was_fetched(tmp_path: Path) -> None:
    scene, wanted = Scene(tmp_path), archive(tmp_path / "imex.tar.xz")

    async def run() -> None:
        await scene.stage(wanted)
        assert (scene.staged(), scene.imex.ready()) == (set(), False)
        await scene.obtained(wanted)

    asyncio.run(run())
    assert (scene.staged(), scene.imex.ready(), scene.imex.progress()) == (STAGED, True, "")
    assert (scene.root / "driver/usr/bin/nvidia-imex-ctl").stat().st_mode & 0o777 == 0o755
    assert not asyncio.run(scene.imex.plan(with_software(wanted), scene.reports.facts))


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "--nogpu"), (("-c", "x y"), "-c x y --nogpu"), (("--nogpu", "-v"), "--nogpu -v"), (("-nogpu",), "-nogpu")],
)
def test_the_daemon_is_told_that_there_are_no_gpus(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    scene = Scene(tmp_path)
    asyncio.run(scene.obtained(archive(tmp_path / "imex.tar.xz")))
    run = subprocess.run([scene.root / "driver/usr/bin/nvidia-imex", *words], stdout=subprocess.PIPE, check=True)
    assert run.stdout.decode() == f"nvidia-imex {said}\n"


def test_a_server_that_refuses_is_asked_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scene, wanted = Scene(tmp_path), archive(tmp_path / "imex.tar.xz")
    with served(404, 503, (tmp_path / "imex.tar.xz").read_bytes()) as url:
        asyncio.run(scene.obtained(msgspec.structs.replace(wanted, url=url)))
    assert scene.staged() == STAGED
    assert [record.getMessage().removeprefix(f"{url}: ") for record in caplog.records] == [
        "HTTP 404 Not Found; tried again in 0.01 s",
        "HTTP 503 Service Unavailable; tried again in 0.02 s",
    ]


def test_what_has_another_checksum_is_not_used(tmp_path: Path) -> None:
    scene, wanted = Scene(tmp_path, first_retry=60), archive(tmp_path / "imex.tar.xz")

    async def run() -> str:
        other = msgspec.structs.replace(wanted, sha256="0" * 64)
        await scene.stage(other)
        return await waiting(scene)

    assert asyncio.run(run()) == f"software: its SHA-256 is {wanted.sha256}, not {'0' * 64}; tried again in 60 s"
    assert (scene.staged(), list((scene.root / "state").glob("imex*")), scene.imex.ready()) == (set(), [], False)


def test_an_archive_that_is_too_large_is_not_fetched_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simnode.simulators.imex.fetch.LARGEST", 1 << 20)
    scene = Scene(tmp_path, first_retry=60)

    async def run() -> str:
        with served(bytes(3 << 20)) as url:
            await scene.stage(IMEXSoftware(url, "0" * 64))
            return await waiting(scene)

    assert asyncio.run(run()) == "software: is larger than 1 MiB; tried again in 60 s"


async def waiting(scene: Scene) -> str:
    """What the simulator waits for after a first failure; nothing goes on in the background afterwards."""

    async def follow() -> None:
        async for _ in scene.imex.requeue():
            pass

    task = asyncio.create_task(follow())
    async with asyncio.timeout(20):
        while "again" not in scene.imex.progress():
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait({task})
    return scene.imex.progress()


def test_what_lies_there_from_an_earlier_time_is_staged_at_once(tmp_path: Path) -> None:
    """By an agent that comes back, without a gap and without a network."""
    wanted = archive(tmp_path / "imex.tar.xz")
    asyncio.run(Scene(tmp_path).obtained(wanted))
    (tmp_path / "imex.tar.xz").unlink()
    again = Scene(tmp_path)
    asyncio.run(again.stage(wanted))
    assert (again.staged(), again.imex.ready()) == (STAGED, True)


def test_what_was_spoilt_there_is_fetched_anew(tmp_path: Path) -> None:
    wanted = archive(tmp_path / "imex.tar.xz")
    asyncio.run(Scene(tmp_path).obtained(wanted))
    (tmp_path / "node" / ARCHIVE).write_bytes(b"spoilt")
    again = Scene(tmp_path)
    asyncio.run(again.obtained(wanted))
    assert (again.staged(), again.imex.ready()) == (STAGED, True)


@pytest.mark.parametrize("enabled", [True, False], ids=["no software", "no IMEX"])
def test_nothing_of_it_is_left_once_it_is_off(tmp_path: Path, enabled: bool) -> None:
    scene = Scene(tmp_path)

    async def run() -> None:
        wanted = archive(tmp_path / "imex.tar.xz")
        await scene.obtained(wanted)
        await scene.stage(wanted if not enabled else None, enabled=enabled)

    asyncio.run(run())
    assert (scene.staged(), (scene.root / ARCHIVE).exists(), scene.imex.ready()) == (set(), False, True)


def test_another_software_takes_the_place_of_the_first(tmp_path: Path) -> None:
    scene = Scene(tmp_path)

    async def run() -> None:
        await scene.obtained(archive(tmp_path / "one.tar.xz"))
        await scene.obtained(archive(tmp_path / "two.tar.xz", {**CONTENT, "LICENSE": b"another"}))

    asyncio.run(run())
    assert (scene.root / "driver/usr/share/doc/nvidia-imex/LICENSE").read_bytes() == b"another"


def test_of_what_cannot_be_staged_whole_nothing_is_staged(tmp_path: Path) -> None:
    """Nor is what was in the way touched."""
    scene, wanted = Scene(tmp_path), archive(tmp_path / "imex.tar.xz")
    foreign = scene.root / "driver/usr/bin/nvidia-imex-ctl"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("somebody's")
    with pytest.raises(ConvergeError) as raised:
        asyncio.run(scene.obtained(wanted))
    assert [error.path for error in raised.value.errors] == ["driver/usr/bin/nvidia-imex-ctl"]
    assert (scene.staged(), foreign.read_text()) == ({"driver/usr/bin/nvidia-imex-ctl"}, "somebody's")
    assert (scene.root / "driver/proc/driver/nvidia/capabilities/fabric-imex-mgmt").exists()


@pytest.mark.parametrize(
    ("content", "others", "reason"),
    [
        (CONTENT, [member(f"{TOP}/../x")], f"has a member '{TOP}/../x', which leads out of it"),
        (CONTENT, [member("/etc/passwd")], "has a member '/etc/passwd', which leads out of it"),
        (
            {name: data for name, data in CONTENT.items() if name != "LICENSE"},
            [member(f"{TOP}/LICENSE", tarfile.SYMTYPE, "/etc/shadow")],
            "has LICENSE as something that is no regular file",
        ),
        (
            {name: data for name, data in CONTENT.items() if name != "LICENSE"},
            [member(f"{TOP}/LICENSE", tarfile.LNKTYPE, f"{TOP}/usr/bin/nvidia-imex")],
            "has LICENSE as something that is no regular file",
        ),
        ({"usr/bin/nvidia-imex": b""}, [], "has no usr/bin/nvidia-imex-ctl"),
        ({**CONTENT, "LICENSE": bytes(2 << 20)}, [], "holds more than 1 MiB"),
    ],
    ids=["upwards", "absolute", "a link", "a hard link", "without the tool", "too much"],
)
def test_an_archive_that_is_not_what_it_should_be_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: dict[str, bytes],
    others: list[tarfile.TarInfo],
    reason: str,
) -> None:
    monkeypatch.setattr("simnode.simulators.imex.archive.LARGEST", 1 << 20)
    archive(tmp_path / "imex.tar.xz", content, *others)
    with pytest.raises(ArchiveError) as raised:
        surfaces(tmp_path / "imex.tar.xz")
    assert str(raised.value) == reason


LONG_NAME = member("././@LongLink", b"L").tobuf(tarfile.GNU_FORMAT)
NO_ARCHIVES = {
    "empty": b"",
    "text": b"no archive",
    "zeros": bytes(4096),
    "spoilt xz": lzma.compress(bytes(10240))[:40] + bytes(64),
    "spoilt gzip": gzip.compress(bytes(10240))[:20],
    "spoilt bzip2": b"BZh9" + bytes(64),
    "a name within a name for ever": LONG_NAME * 5000,
}


@pytest.mark.parametrize("content", NO_ARCHIVES.values(), ids=NO_ARCHIVES)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "imex.tar.xz").write_bytes(content)
    with pytest.raises(ArchiveError):
        surfaces(tmp_path / "imex.tar.xz")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress], ids=["not", "gz", "bz2", "xz"])
def test_it_may_be_packed_in_any_way(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    archive(tmp_path / "imex.tar.xz")
    packed = pack(lzma.decompress((tmp_path / "imex.tar.xz").read_bytes()))
    (tmp_path / "imex.tar").write_bytes(packed)
    assert surfaces(tmp_path / "imex.tar") == surfaces(tmp_path / "imex.tar.xz")


def test_an_archive_that_swells_without_end_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by what would be passed over: a member of 8 GiB, or a header of that size."""
    monkeypatch.setattr("simnode.simulators.imex.archive._MOST_INFLATED", 1 << 20)
    for kind in (tarfile.REGTYPE, tarfile.XHDTYPE):
        other = member(f"{TOP}/other", kind)
        other.size = 8 << 30
        with lzma.open(tmp_path / "imex.tar.xz", "wb") as file:
            file.write(other.tobuf(tarfile.GNU_FORMAT) + bytes(2 << 20))
        with pytest.raises(ArchiveError, match="holds more than 1 MiB"):
            surfaces(tmp_path / "imex.tar.xz")
