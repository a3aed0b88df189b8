"""An engine over a second root: nothing but surfaces lies there, and its records beside the first one's."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnode.host import Directory, File, Host, OwnerBusyError, Tree
from tests.host.scene import BOOT, around_calls, host, picture

STAGED = Tree([File("driver/a", b"a")])
PUBLISHED = Tree([File("run/b", b"b"), Directory("run/c")])


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """The second root."""
    place = tmp_path / "outside"
    place.mkdir()
    return place


def test_only_surfaces_lie_there(root: Path, outside: Path) -> None:
    host(root).elsewhere(outside, "host").converge("gpu.published", PUBLISHED)
    assert sorted(picture(outside)) == ["run", "run/b", "run/c"]
    assert sorted(path.name for path in (root / "state").iterdir()) == ["journal", "parents-host.json"]


def test_a_later_engine_takes_them_away_again(root: Path, outside: Path) -> None:
    for _ in range(2):
        engine = host(root)
        engine.converge("gpu", STAGED)
        engine.elsewhere(outside, "host").converge("gpu.published", PUBLISHED)
        assert not host(root).elsewhere(outside, "host").plan("gpu.published", PUBLISHED)
    engine = host(root)
    engine.elsewhere(outside, "host").converge("gpu.published", Tree.empty)
    assert sorted(picture(root, records=False)) == ["driver", "driver/a"]
    engine.converge("gpu", Tree.empty)
    assert (picture(root), picture(outside)) == ({}, {})


def test_directories_of_one_name_in_both_are_two(root: Path, outside: Path) -> None:
    engine = host(root)
    tree = Tree([File("shared/a", b"a")])
    engine.converge("gpu", tree)
    engine.elsewhere(outside, "host").converge("gpu.published", tree)
    engine.converge("gpu", Tree.empty)
    assert sorted(picture(root, records=False)) == []
    assert sorted(picture(outside)) == ["shared", "shared/a"]


def test_an_owner_is_one_in_both(root: Path, outside: Path) -> None:
    inside = Host(root, boot_id=BOOT)
    refused: list[str] = []

    def meanwhile(name: str, call: object, arguments: object) -> object:
        if name == "rename_new" and not refused:
            with pytest.raises(OwnerBusyError) as caught:
                inside.elsewhere(outside, "host").converge("gpu", PUBLISHED)
            refused.append(str(caught.value))
        return call(*arguments)  # type: ignore[operator,misc]

    with around_calls(meanwhile):
        inside.converge("gpu", STAGED)
    assert refused == ["owner gpu is being converged already"]
    assert picture(outside) == {}
