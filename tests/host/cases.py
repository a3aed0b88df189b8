"""One surface of each kind that the user running the tests can make, and what to ask of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from simnode.host import CharacterDevice, ConvergeError, Directory, File, Link, LiveFile, Surface, SurfaceError, Tree
from tests.host.scene import host

IS_ROOT = os.geteuid() == 0
FOR_ANYBODY: dict[str, Surface] = {
    "file": File("d/it", b"content", 0o640),
    "live file": LiveFile("d/it", 4096, 0o640),
    "link": Link("d/it", "../elsewhere"),
    "directory": Directory("d/it", 0o750),
}
FOR_ROOT: dict[str, Surface] = {"character device": CharacterDevice("d/it", 195, 3, 0o660)}
SURFACES = FOR_ANYBODY | FOR_ROOT if IS_ROOT else FOR_ANYBODY

any_surface = pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES.keys())


def refused(root: Path, tree: Tree, owner: str = "gpu") -> tuple[SurfaceError, ...]:
    with pytest.raises(ConvergeError) as caught:
        host(root).converge(owner, tree)
    assert "\n" not in str(caught.value)
    return caught.value.errors


def stands(root: Path, surface: Surface) -> bool:
    path = root / surface.path
    found = path.lstat()
    match surface:
        case File():
            right = stat.S_ISREG(found.st_mode) and path.read_bytes() == surface.content
        case LiveFile():
            right = stat.S_ISREG(found.st_mode) and found.st_size >= surface.size
        case Link():
            return path.is_symlink() and str(path.readlink()) == surface.target
        case CharacterDevice():
            right = stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(surface.major, surface.minor)
        case _:
            right = stat.S_ISDIR(found.st_mode)
    return right and stat.S_IMODE(found.st_mode) == surface.mode
