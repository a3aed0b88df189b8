"""For random trees, foreign things and deaths: nothing foreign is touched, nothing of ours is left."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from simnode.host import ConvergeError, Directory, File, Host, Link, LiveFile, Surface, Tree, TreeError
from simnode.host.paths import ancestors
from tests import memory
from tests.examples import examples
from tests.host.scene import BOOT, Death, around_calls, host, picture

NAMES = st.sampled_from("abc")
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.sampled_from([b"", b"1", b"2", b"22"])
MODES = st.sampled_from([0o644, 0o600, 0o755])


def surfaces(paths: st.SearchStrategy[str]) -> st.SearchStrategy[Surface]:
    return st.one_of(
        st.builds(File, paths, CONTENTS, MODES),
        st.builds(LiveFile, paths, st.integers(0, 9), MODES),
        st.builds(Link, paths, st.sampled_from(["a", "b", "../a", "a/b", "/nowhere"])),
        st.builds(Directory, paths, st.sampled_from([0o755, 0o750])),
    )


def fitting(wanted: list[Surface]) -> Tree:
    """The tree of those that can stand together, the first come first."""
    tree = Tree.empty
    for surface in wanted:
        try:
            tree = tree.union(Tree([surface]))
        except TreeError:
            continue
    return tree


def trees(paths: st.SearchStrategy[str] = PATHS, size: int = 8) -> st.SearchStrategy[Tree]:
    return st.lists(surfaces(paths), max_size=size).map(fitting)


@contextmanager
def empty_root() -> Iterator[Path]:
    with memory.directory("simnode-host-") as root:
        yield root


def furnish(root: Path, tree: Tree) -> None:
    """Put foreign things there: just what an engine would make, less every record of it."""
    host(root).converge("foreign", tree)
    shutil.rmtree(root / "state", ignore_errors=True)


def tried(engine: Host, owner: str, tree: Tree) -> frozenset[str]:
    """Converge; the paths that it could not have."""
    try:
        engine.converge(owner, tree)
    except ConvergeError as caught:
        return frozenset(error.path for error in caught.errors)
    return frozenset()


class Killed(BaseException):
    """Ends a run as death does: no handler of the engine's knows it."""


def die() -> None:
    raise Killed


@examples(60)
@given(foreign=trees(size=4), one=trees(), two=trees(), at=st.integers(1, 120), torn=st.booleans())
def test_a_death_at_any_call_is_repaired_and_leaves_no_trace(
    foreign: Tree, one: Tree, two: Tree, at: int, torn: bool
) -> None:
    with empty_root() as root:
        furnish(root, foreign)
        before = picture(root)
        try:
            with around_calls(Death(at // 8 + 1 if torn else at, torn=torn, die=die)):
                for tree in (one, two, Tree.empty):
                    tried(host(root), "gpu", tree)
        except Killed:
            pass
        errors = tried(host(root), "gpu", two)
        left = {step.path for step in host(root).plan("gpu", two)}
        assert bool(left) == bool(errors)
        host(root).converge("gpu", Tree.empty)
        assert picture(root) == before


@examples(60)
@given(foreign=trees(size=5), sequence=st.lists(trees(), min_size=1, max_size=4))
def test_whatever_is_not_in_the_way_of_something_foreign_stands(foreign: Tree, sequence: list[Tree]) -> None:
    with empty_root() as root:
        furnish(root, foreign)
        before = picture(root)
        for tree in sequence:
            errors = tried(host(root), "gpu", tree)
            now = picture(root, records=False)
            assert before.items() <= now.items()
            for surface in tree:
                if not errors & {surface.path, *ancestors(surface.path)}:
                    assert surface.path in now
            ours = {path for path in now if path not in before}
            assert ours <= {*tree.paths, *tree.directories}
        host(root).converge("gpu", Tree.empty)
        assert picture(root) == before


def owned(owner: str) -> st.SearchStrategy[Tree]:
    """Trees in directories that owners share, with leaves that are the owner's alone."""
    leaves = st.integers(0, 3).map(lambda number: f"{owner}{number}")
    directories = st.lists(NAMES, max_size=3)
    return trees(st.builds(lambda above, leaf: "/".join([*above, leaf]), directories, leaves), size=6)


OWNERS = ("gpu", "pci", "cri")


@examples(25)
@given(
    foreign=st.sets(PATHS, max_size=3).map(lambda paths: Tree(map(Directory, paths))),
    rounds=st.lists(st.tuples(*map(owned, OWNERS)), min_size=1, max_size=4),
)
def test_directories_are_exactly_what_somebody_needs_however_owners_interleave(
    foreign: Tree, rounds: list[tuple[Tree, ...]]
) -> None:
    with empty_root() as root:
        furnish(root, foreign)
        before = picture(root)
        engine = Host(root, boot_id=BOOT)
        for wanted in (*rounds, (Tree.empty,) * len(OWNERS)):
            failures: list[BaseException] = []
            start = threading.Barrier(len(OWNERS))

            def converge(owner: str, tree: Tree, start: threading.Barrier, failures: list[BaseException]) -> None:
                try:
                    start.wait()
                    engine.converge(owner, tree)
                except BaseException as error:
                    failures.append(error)

            threads = [
                threading.Thread(target=converge, args=(owner, tree, start, failures))
                for owner, tree in zip(OWNERS, wanted, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert failures == []
            needed = {path for tree in wanted for path in (*tree.paths, *tree.directories)}
            assert set(picture(root, records=False)) == needed | set(before)
        assert picture(root) == before
