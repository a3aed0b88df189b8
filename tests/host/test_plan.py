"""A plan is what a converge would do, and drawing it does nothing."""

from __future__ import annotations

from pathlib import Path

from simnode.host import Directory, File, Link, LiveFile, Tree
from tests.host.scene import host, picture, recorded


def test_a_plan_of_a_new_tree_lists_directories_and_surfaces(root: Path) -> None:
    plan = host(root).plan("gpu", Tree([File("a/f", b""), Link("b", "a/f"), Directory("c")]))
    assert [(step.action, step.path) for step in plan] == [
        ("record", "state/parents.json"),
        ("make", "a"),
        ("make", "c"),
        ("create", "a/f"),
        ("create", "b"),
    ]
    assert len(plan) == 5
    assert "create a/f: new" in str(plan).splitlines()


def test_drawing_a_plan_changes_nothing(root: Path) -> None:
    (root / "occupied").mkdir()
    host(root).converge("gpu", Tree([File("a", b"1"), File("b/f", b"")]))
    before = picture(root)
    with recorded() as calls:
        host(root).plan("gpu", Tree([File("a", b"2"), File("occupied", b""), File("c/f", b"")]))
    assert calls == []
    assert picture(root) == before


def test_every_difference_is_named_with_its_reason(root: Path) -> None:
    host(root).converge(
        "gpu",
        Tree([File("content", b"1"), File("mode", b""), Link("gone", "x"), LiveFile("small", 4), File("old/f", b"")]),
    )
    (root / "occupied").write_bytes(b"foreign")
    (root / "gone").unlink()
    (root / "small").write_bytes(b"")
    tree = Tree(
        [
            File("content", b"2"),
            File("mode", b"", 0o600),
            Link("gone", "x"),
            LiveFile("small", 4),
            File("occupied", b""),
            File("occupied-too", b""),
        ]
    )
    steps = {
        step.path: (step.action, step.reason) for step in host(root).plan("gpu", tree) if step.surface or step.entry
    }
    assert steps == {
        "content": ("replace", "differs"),
        "gone": ("create", "missing"),
        "mode": ("replace", "mode differs"),
        "occupied": ("conflict", "occupied by a regular file that simnode did not make; move it away"),
        "occupied-too": ("create", "new"),
        "old/f": ("remove", "no longer wanted"),
        "small": ("repair", "is too small"),
    }


def test_the_plan_is_empty_after_the_converge(root: Path) -> None:
    trees = [
        Tree([File("a/f", b"1"), Link("a/k", "f"), LiveFile("l", 1), Directory("d")]),
        Tree([File("a/f/g", b"1"), Link("d", "f"), File("l", b"")]),
        Tree.empty,
    ]
    for tree in trees:
        assert host(root).plan("gpu", tree)
        host(root).converge("gpu", tree)
        assert not host(root).plan("gpu", tree)
        assert str(host(root).plan("gpu", tree)) == ""


def test_a_plan_that_would_fail_is_not_empty(root: Path) -> None:
    (root / "a").write_bytes(b"foreign")
    assert host(root).plan("gpu", Tree([File("a", b"")]))
    assert host(root).plan("gpu", Tree([File("a/b", b"")]))
