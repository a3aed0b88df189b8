"""What gives way to a directory that takes over, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnode.host import ConvergeError, Directory, Link, Tree
from tests.host.scene import host, picture

OURS = "/var/lib/simnode/driver"
PATH = "run/nvidia/driver"
WANTED = Tree([Directory(PATH, take_over=OURS), Link(f"{PATH}/usr", f"{OURS}/usr")])


def link(root: Path, target: str) -> Path:
    place = root / PATH
    place.parent.mkdir(parents=True)
    place.symlink_to(target)
    return place


STALE = {
    "a link to what the surface names": OURS,
    "a link to nothing": "/var/lib/other/driver",
    "a link to nothing beside it": "driver.old",
    "a link to itself": "driver",
    "a link through a file": "/file/driver",
    # it is there on the machine that runs the tests, and not below the root
    "a link to what only we can see": "/proc/self",
}


@pytest.mark.parametrize("target", STALE.values(), ids=STALE)
def test_a_stale_link_gives_way(root: Path, target: str) -> None:
    (root / OURS.lstrip("/")).mkdir(parents=True)
    (root / "file").touch()
    place = link(root, target)
    assert [(step.action, step.path) for step in host(root).plan("gpu", WANTED) if step.path == PATH] == [
        ("make", PATH)
    ]
    host(root).converge("gpu", WANTED)
    assert not place.is_symlink()
    assert (place / "usr").is_symlink()
    assert not host(root).plan("gpu", WANTED)
    host(root).converge("gpu", Tree.empty)
    assert sorted(picture(root / "run")) == ["nvidia"]


FOREIGN = {"absolute": "/opt/nvidia/driver", "relative": "../../opt/nvidia/driver", "to a file": "/file"}


@pytest.mark.parametrize("target", FOREIGN.values(), ids=FOREIGN)
def test_a_link_to_somebody_elses_is_left_alone_and_named(root: Path, target: str) -> None:
    (root / "opt/nvidia/driver").mkdir(parents=True)
    (root / "file").touch()
    link(root, target)
    before = picture(root)
    with pytest.raises(ConvergeError, match=f"{PATH}: must be a directory, but is a link"):
        host(root).converge("gpu", WANTED)
    assert picture(root, records=False) == before


def test_nothing_gives_way_to_a_directory_that_does_not_say_so(root: Path) -> None:
    link(root, "/nowhere")
    before = picture(root)
    with pytest.raises(ConvergeError, match=f"{PATH}: must be a directory"):
        host(root).converge("gpu", Tree([Directory(PATH)]))
    assert picture(root, records=False) == before


def test_a_file_does_not_give_way(root: Path) -> None:
    (root / PATH).parent.mkdir(parents=True)
    (root / PATH).touch()
    with pytest.raises(ConvergeError, match=f"{PATH}: must be a directory, but is a regular file"):
        host(root).converge("gpu", WANTED)
    assert (root / PATH).is_file()


def test_a_directory_that_is_there_keeps_its_inode_and_stays(root: Path) -> None:
    (root / PATH).mkdir(parents=True)
    inode = (root / PATH).stat().st_ino
    host(root).converge("gpu", WANTED)
    host(root).converge("gpu", Tree.empty)
    assert (root / PATH).stat().st_ino == inode
    assert list((root / PATH).iterdir()) == []
