"""All changes go through one module, so that the kill test counts every one of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import simnode.host

SOURCES = sorted(Path(simnode.host.__file__).parent.glob("*.py"))
CHANGING = {
    "chmod", "chown", "fchmod", "fchown", "ftruncate", "lchown", "link", "makedirs", "mkdir", "mkfifo", "mknod", "open",
    "posix_fallocate", "pwrite", "remove", "removedirs", "removexattr", "rename", "renames", "replace", "rmdir",
    "sendfile", "setxattr", "splice", "symlink", "truncate", "unlink", "utime", "write", "writev",
}  # fmt: skip


@pytest.mark.parametrize("source", SOURCES, ids=[source.name for source in SOURCES])
def test_no_other_module_changes_anything(source: Path) -> None:
    text = source.read_text()
    called = {
        node.func.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in {"os", "shutil", "Path", "pathlib", "_LIBC"}
    }
    if source.name == "syscalls.py":
        assert called & CHANGING
        return
    looks_only = {"open"} if "O_CREAT" not in text else set()
    assert called & CHANGING - looks_only == set()
    assert called & {"mount", "umount2", "renameat2"} == set()
    assert "import shutil" not in text
