"""Whatever lies where a node's files belong: the doctor reads it as it is, in bounded time, and ends no other way."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simnode.control_client import SOCKET
from simnode.doctor import View, examine, of_host
from simnode.doctor.answers import FLOODS, HANGS, ask_agent, ask_nvml, ended, run
from simnode.doctor.documents import cdi_spec
from simnode.doctor.findings import Finding
from simnode.doctor.view import NODE_ROOT

DRIVER = f"{NODE_ROOT}/driver"
SPEC: dict[str, Any] = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": []}


def spec(**parts: Any) -> str:
    """A CDI spec with other parts."""
    return json.dumps(SPEC | parts)


NO_SPECS = {
    "nothing": "",
    "a list": "[]",
    "a date that no calendar has": "a: 2001-99-99",
    "deep JSON": "[" * 100_000,
    "deep YAML": "a: " + "[ " * 100_000,
    "two documents": "a: 1\n---\nb: 1\n",
    "a control character": "a: \x01\n",
    "a program": "!!python/object/apply:os.abort []",
    "a key that is a list": "{[a]: b}",
    "edits that are a list": spec(containerEdits=[1]),
    "edits that are a text": spec(devices=[{"name": "0", "containerEdits": "x"}]),
    "a name that is a number": spec(devices=[{"name": 0, "containerEdits": {}}]),
    "a device that is none": spec(devices=[None]),
    "a node that is none": spec(containerEdits={"deviceNodes": [None]}),
    "a mount of nothing": spec(containerEdits={"mounts": [{"containerPath": "/x"}]}),
    "a hook's path of another kind": spec(containerEdits={"hooks": [{"hookName": "x", "path": 3}]}),
    "a version in other digits": spec(cdiVersion="0.\u00b2.0"),
    "an endless version": spec(cdiVersion=f"0.{'9' * 5000}.0"),
    "a kind without a vendor": spec(kind="gpu"),
    "half a letter": '{"cdiVersion": "0.5.0", "kind": "a/b\\ud800", "devices": []}',
}


@pytest.mark.parametrize("text", NO_SPECS.values(), ids=NO_SPECS)
def test_what_no_runtime_takes_is_no_spec(text: str) -> None:
    assert cdi_spec(text) is None


def test_what_runtimes_take_is_one() -> None:
    """Null is Go's empty list; what concerns us not may be of any kind."""
    edits = {"deviceNodes": None, "mounts": [{"hostPath": "/a", "containerPath": "/b", "options": 3}], "env": None}
    hook = {"hooks": [{"hookName": "createContainer", "path": "/h", "args": None}]}
    text = spec(devices=[{"name": "0", "containerEdits": edits, "annotations": {}}], containerEdits=hook)
    found = cdi_spec(text)
    assert found is not None
    assert (found.named(), found.hooks()) == ({"/a", "/h"}, {"/h"})
    assert cdi_spec("cdiVersion: 0.3.0\nkind: a/b\ndevices:\n- {name: x, containerEdits: {}}\n") is not None


def test_a_finding_is_one_line_whatever_is_in_it() -> None:
    """A name in a directory may hold anything, and so may what a program says."""
    line = Finding("/a\nb\udcff", "x" * 100_000 + "\n", "why\x1b[2J\u2028", "want", ("nvml",)).line()
    assert line.isprintable()
    assert len(line) < 1000
    assert line.startswith("nvml: /a\\nb\\udcff: xxx")


def host(root: Path) -> View:
    """A host with the beginning of a node."""
    (root / DRIVER[1:] / "usr").mkdir(parents=True)
    (root / DRIVER[1:] / "proc/driver/nvidia/gpus").mkdir(parents=True)
    return of_host(str(root))


def huge(path: Path) -> None:
    """A file without content of a size that no memory has."""
    path.touch()
    os.truncate(path, 1 << 40)


TOO_MUCH: dict[str, Callable[[Path], object]] = {
    "huge": huge,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "FIFO": os.mkfifo,
    "directory": Path.mkdir,
}


@pytest.mark.parametrize("make", TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_has_no_end_is_not_read(tmp_path: Path, make: Callable[[Path], object]) -> None:
    view = host(tmp_path)
    make(tmp_path / "file")
    assert (view.text("/file"), view.content("/file")) == (None, None)


@pytest.mark.parametrize("path", ["/a\0b", "/a\ud800"], ids=["NUL", "half a letter"])
def test_a_path_that_no_system_has_leads_nowhere(tmp_path: Path, path: str) -> None:
    assert of_host(str(tmp_path)).reach(path).fault == "is no path that a system has"


NUMBERS = ("\u00b2", "9" * 5000, "99999999999", "-1", "", "\u0663")


@pytest.mark.parametrize("number", NUMBERS, ids=["power", "endless", "huge", "negative", "none", "Arabic"])
def test_a_number_that_no_kernel_writes_is_none(tmp_path: Path, number: str) -> None:
    """Of devices, of channels, and of a GPU's minor."""
    view = host(tmp_path)
    texts = {
        f"{NODE_ROOT}/proc/devices": f"Character devices:\n{number} nvidia\n195 nvidiactl\n\nBlock devices:\n",
        f"{DRIVER}/proc/driver/nvidia/params": f"ImexChannelCount: {number}\n",
        f"{DRIVER}/proc/driver/nvidia/capabilities/fabric-imex-mgmt": f"DeviceFileMinor: {number}\n",
        f"{DRIVER}/proc/driver/nvidia/gpus/0000:01:00.0/information": f"Device Minor: {number}\n",
    }
    for path, text in texts.items():
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path[1:]).write_text(text)
    assert (view.majors, view.gpus) == ({"nvidiactl": 195}, {"0000:01:00.0": -1})
    found = {finding.found for finding in examine(view, ["imex", "devices"])}
    assert {"has no nvidia", "tells no Device Minor", "tells no DeviceFileMinor"} <= found


TOPOLOGIES = {
    "a date that no calendar has": ("version: 2001-99-99", "is no YAML"),
    "deep": ("[ " * 100_000, "is no YAML"),
    "texts": ("version: 1\ndomains: abc", "is no topology document"),
    "a node of many": (
        json.dumps({"version": 1, "domains": [{"cliques": [{"nodes": [*range(20_000), 7]}]}]}),
        "has 7 twice",
    ),
}


@pytest.mark.parametrize(("text", "found"), TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_a_topology_document_of_any_kind(tmp_path: Path, text: str, found: str) -> None:
    view = host(tmp_path)
    (tmp_path / NODE_ROOT[1:] / "topology").mkdir()
    (tmp_path / NODE_ROOT[1:] / "topology/topology.yaml").write_text(text)
    assert [finding.found for finding in examine(view, ["topology"])] == [found]


def test_a_program_that_does_not_stop_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it writes for ever, or does nothing for ever."""
    monkeypatch.setattr("simnode.doctor.answers.PATIENCE", 0.3)
    assert run(["sh", "-c", "exec sleep 60"], {}) == (HANGS, "")
    assert run(["sh", "-c", "exec >&-; exec sleep 60"], {})[0] == HANGS
    monkeypatch.setattr("simnode.doctor.answers.PATIENCE", 20.0)
    assert (
        run(["sh", "-c", "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"], {})[0] == FLOODS
    )
    assert ended(FLOODS, "") == "says more than 1 MiB"
    assert run(["sh", "-c", "echo a; exit 3"], {}) == (3, "a")
    assert run(["/nonexistent"], {}) == (127, "No such file or directory")


LIBRARIES = {
    "that ends its program": (
        '__attribute__((constructor)) static void end(void) { __asm__ volatile("syscall" :: "a"(231), "D"(0)); }',
        "ends its program, or writes to its output",
    ),
    "that counts without end": (
        "int nvmlInit_v2(void) { return 0; } int nvmlDeviceGetCount_v2(unsigned *c) { *c = 4000000000u; return 0; }",
        "",
    ),
    "without a function": ("int other(void) { return 0; }", "refuses to be initialised: it lacks a function"),
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="ends by a system call of x86-64")
@pytest.mark.parametrize(("source", "fault"), LIBRARIES.values(), ids=LIBRARIES)
def test_a_library_of_any_kind(tmp_path: Path, source: str, fault: str) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    command = ["cc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-o", str(library), "-"]
    subprocess.run(command, input=source, text=True, check=True)
    nvml = ask_nvml(str(library), {})
    assert nvml.fault == fault
    assert len(nvml.gpus) <= 256


@pytest.mark.parametrize(
    "answer", [b"[]", b"{}", b'{"ok": true}', b'{"ok": false}', b'{"ok": true, "health": 3}', b"[" * 100_000, b"3"]
)
def test_something_else_that_answers_for_the_agent(tmp_path: Path, answer: bytes) -> None:
    (tmp_path / SOCKET).parent.mkdir()

    def serve() -> None:
        with listening.accept()[0] as connection:
            connection.recv(1 << 10)
            connection.sendall(answer + b"\n")

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / SOCKET))
        listening.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        agent = ask_agent(str(tmp_path), os.geteuid())
        thread.join()
    assert (agent.status, agent.fault) == (None, "is not answered as an agent does")
