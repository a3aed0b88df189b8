"""A tree cannot be inconsistent."""

from __future__ import annotations

import pytest

from simnode.host import Directory, File, Link, Surface, Tree, TreeError
from simnode.host.tree import referenced_first, target_of


def test_a_tree_is_in_the_order_of_its_paths() -> None:
    tree = Tree([File("b", b""), File("a/c", b""), Directory("a")])
    assert tree.paths == ("a", "a/c", "b")
    assert [surface.path for surface in tree] == ["a", "a/c", "b"]
    assert len(tree) == 3
    assert "a/c" in tree
    assert "c" not in tree
    assert tree.get("b") == File("b", b"")
    assert tree.get("c") is None


def test_trees_of_equal_surfaces_are_equal() -> None:
    assert Tree([File("a", b""), File("b", b"")]) == Tree([File("b", b""), File("a", b"")])
    assert Tree() == Tree.empty
    assert Tree([File("a", b"")]) != Tree.empty


@pytest.mark.parametrize(
    ("surfaces", "named"),
    [
        ([File("a", b""), File("a", b"")], "a"),
        ([File("a", b""), Directory("a")], "a"),
        ([File("a", b""), File("a/b", b"")], "a"),
        ([Link("x/a", "b"), File("x/a/b/c", b"")], "x/a"),
        ([File("a/b", b""), Directory("a/b/c")], "a/b"),
    ],
    ids=["twice", "two-kinds", "below-a-file", "far-below-a-link", "directory-below-a-file"],
)
def test_surfaces_that_cannot_stand_together_are_refused(surfaces: list[Surface], named: str) -> None:
    with pytest.raises(TreeError, match=f"'{named}'"):
        Tree(surfaces)
    assert not Tree.disjoint(*(Tree([surface]) for surface in surfaces))


def test_a_union_holds_both() -> None:
    one, other = Tree([File("a/b", b"")]), Tree([Directory("a")])
    assert Tree.disjoint(one, other)
    assert (one | other).paths == ("a", "a/b")
    assert one.union(Tree.empty) == one


def test_directories_are_all_ancestors_and_explicit_ones() -> None:
    tree = Tree([File("a/b/c", b""), Directory("a/b", 0o700), Directory("d/e")])
    assert tree.directories == {"a": None, "a/b": 0o700, "d": None, "d/e": 0o755}


@pytest.mark.parametrize(
    ("path", "target", "leads_to"),
    [
        ("lib/x.so", "x.so.1", "lib/x.so.1"),
        ("lib/x.so", "../bin/x", "bin/x"),
        ("x", "a/./b", "a/b"),
        ("x", "../out", None),
        ("x", "/etc", None),
        ("a/x", "..", "."),
    ],
)
def test_where_a_link_leads(path: str, target: str, leads_to: str | None) -> None:
    assert target_of(path, target) == leads_to


@pytest.mark.parametrize(
    ("links", "order"),
    [
        ({"a": "b", "b": "c", "c": "file"}, ["c", "b", "a"]),
        ({"x/a": "../y", "y": "z"}, ["y", "x/a"]),
        ({"a": "b", "c": "b", "b": "f"}, ["b", "a", "c"]),
        ({"a": "/b", "b": "f"}, ["a", "b"]),
    ],
    ids=["chain", "across-directories", "shared", "absolute-leads-out"],
)
def test_links_come_after_the_links_they_lead_to(links: dict[str, str], order: list[str]) -> None:
    assert referenced_first(links) == order


def test_links_in_a_circle_all_come() -> None:
    assert sorted(referenced_first({"a": "b", "b": "c", "c": "a", "d": "a"})) == ["a", "b", "c", "d"]
