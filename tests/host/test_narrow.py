"""Narrowing takes away what a tree no longer has, and puts nothing up."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from simnode.host import Directory, File, Link, LiveFile, Tree
from tests.examples import examples
from tests.host.scene import host, picture
from tests.host.test_properties import empty_root, trees

OLD = Tree([File("a", b"1"), File("b/c", b"1"), Link("d", "b/c"), Directory("e")])


def test_what_is_no_longer_wanted_goes_and_what_is_new_does_not_come(root: Path) -> None:
    host(root).converge("gpu", OLD)
    host(root).narrow("gpu", Tree([File("a", b"1"), File("b/c", b"2"), Directory("e"), File("f", b"")]))
    assert sorted(picture(root, records=False)) == ["a", "e"]


def test_what_is_missing_stays_missing(root: Path) -> None:
    host(root).converge("gpu", OLD)
    (root / "d").unlink()
    host(root).narrow("gpu", OLD)
    assert sorted(picture(root, records=False)) == ["a", "b", "b/c", "e"]


def test_what_was_there_before_us_stays(root: Path) -> None:
    (root / "a").write_bytes(b"foreign")
    host(root).narrow("gpu", OLD)
    assert (root / "a").read_bytes() == b"foreign"
    assert sorted(picture(root)) == ["a"]


def test_a_stranger_where_a_directory_must_be_keeps_nothing_from_going(root: Path) -> None:
    host(root).converge("gpu", Tree([File("a", b"1")]))
    (root / "e").symlink_to("elsewhere")
    host(root).narrow("gpu", Tree([Directory("e/f"), File("e/f/g", b""), Link("e/h", "f")]))
    assert sorted(picture(root, records=False)) == ["e"]


def of_fixed_content() -> st.SearchStrategy[Tree]:
    return trees().map(lambda tree: Tree(surface for surface in tree if not isinstance(surface, LiveFile)))


@examples(60)
@given(old=of_fixed_content(), new=of_fixed_content())
def test_what_both_trees_have_is_not_touched_and_the_rest_is_gone(old: Tree, new: Tree) -> None:
    with empty_root() as root:
        host(root).converge("gpu", old)
        before = picture(root, records=False)
        host(root).narrow("gpu", new)
        now = picture(root, records=False)
        left = {path for path in now if not (root / path).is_dir() or (root / path).is_symlink()}
        assert {path: now[path] for path in left}.items() <= before.items()
        assert left == {
            surface.path for surface in old if new.get(surface.path) == surface and not isinstance(surface, Directory)
        }
        kept = {surface.path for surface in (*old, *new) if isinstance(surface, Directory) and surface.path in new}
        for path in kept & set(now):
            assert now[path][0] == before[path][0]
        host(root).converge("gpu", new)
        assert not host(root).plan("gpu", new)
        host(root).converge("gpu", Tree.empty)
        assert picture(root) == {}
