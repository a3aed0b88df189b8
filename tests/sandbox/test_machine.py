"""What the launcher reads of the machine: where a loader searches, and what the caller may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnode.sandbox.machine import UnknownMachine, survey
from simnode.sandbox.reports import NodeFailed

ALL = "000001ffffffffff"
WHOLE, NESTED = "         0          0 4294967295\n", "         0       1000          1\n"


def _machine(
    root: Path, *, library: str = "/usr/lib64/libc.so.6", uid: int = 0, caps: str = ALL, ids: str = WHOLE
) -> Path:
    proc = root / "proc/self"
    proc.mkdir(parents=True)
    (proc / "maps").write_text(
        f"7f00-7f01 r--p 00000000 fe:00 1    /usr/bin/python3.11\n7f02-7f03 r--p 0 fe:00 2  {library}\n"
    )
    (proc / "status").write_text(f"Name:\tpython\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{caps}\n")
    (proc / "uid_map").write_text(ids)
    (root / "usr/bin").mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("library", "directory"),
    [
        pytest.param("/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu", id="Debian"),
        pytest.param("/usr/lib64/libc.so.6", "/usr/lib64", id="Fedora"),
        pytest.param("/usr/lib/libc.so.6", "/usr/lib", id="Arch"),
        pytest.param("/usr/lib/aarch64-linux-gnu/libc-2.31.so", "/usr/lib/aarch64-linux-gnu", id="before 2.34"),
        pytest.param("/lib/ld-musl-x86_64.so.1", "/lib", id="musl"),
        pytest.param("/usr/lib64/libc.so.6 (deleted)", "/usr/lib64", id="upgraded meanwhile"),
    ],
)
def test_library_directory_is_the_c_librarys(tmp_path: Path, library: str, directory: str) -> None:
    """Distributions differ; the interpreter's own mappings do not lie."""
    assert survey(_machine(tmp_path, library=library)).library_directory == directory


def test_library_mapped_without_its_directory_is_looked_for(tmp_path: Path) -> None:
    """In a node in a node the kernel says no more than this."""
    root = _machine(tmp_path, library="/libc.so.6")
    (root / "usr/lib64").mkdir(parents=True)
    (root / "usr/lib64/libc.so.6").touch()
    assert survey(root).library_directory == str((root / "usr/lib64").resolve())


def test_machine_without_proc_is_said_to_be_none(tmp_path: Path) -> None:
    """Nothing works there, without namespaces neither."""
    with pytest.raises(NodeFailed, match="no node without /proc"):
        survey(tmp_path)


@pytest.mark.parametrize("library", ["/usr/lib64/libm.so.6", "/odd:place/libc.so.6", "/libc.so.6"])
def test_machine_without_a_usable_library_directory(tmp_path: Path, library: str) -> None:
    """Nothing to lay a node over: said, not guessed."""
    with pytest.raises(UnknownMachine):
        survey(_machine(tmp_path, library=library))


@pytest.mark.parametrize(
    ("uid", "caps", "ids", "privileged"),
    [
        pytest.param(0, ALL, WHOLE, True, id="root"),
        pytest.param(1000, "0" * 16, WHOLE, False, id="ordinary"),
        pytest.param(1000, ALL, WHOLE, False, id="ordinary with capabilities"),
        pytest.param(0, "00000000a80425fb", WHOLE, False, id="root in a container"),
        pytest.param(0, ALL, NESTED, False, id="root of a user namespace"),
    ],
)
def test_privilege(tmp_path: Path, uid: int, caps: str, ids: str, privileged: bool) -> None:
    """Only the machine's own root can mount and make device nodes without a user namespace."""
    assert survey(_machine(tmp_path, uid=uid, caps=caps, ids=ids)).privileged is privileged


def test_this_machine() -> None:
    """The survey works on the real thing, and everything in it is there."""
    machine = survey()
    assert Path(machine.library_directory).is_dir()
    assert Path(machine.program_directory).is_dir()
