"""A tree: all surfaces that one simulator wants at once. A frozen value that cannot be inconsistent."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from simnode.host.errors import TreeError
from simnode.host.paths import ancestors
from simnode.host.surfaces import Directory, Link, StandIn, Surface


@dataclass(frozen=True, init=False)
class Tree:
    """Surfaces in the order of their paths.

    Raises TreeError if two surfaces have one path, or if one lies below another that is not a directory.
    """

    surfaces: tuple[Surface, ...]
    empty: ClassVar[Tree]

    def __init__(self, surfaces: Iterable[Surface] = ()) -> None:
        object.__setattr__(self, "surfaces", tuple(sorted(surfaces, key=lambda surface: surface.path)))
        by_path = self._by_path
        if len(by_path) < len(self.surfaces):
            twice = next(one.path for one, next_one in pairwise(self.surfaces) if one.path == next_one.path)
            raise TreeError(f"path {twice!r} is wanted twice")
        for path in self.directories:
            above = by_path.get(path)
            if above is not None and not isinstance(above, Directory):
                raise TreeError(f"path {path!r} is wanted as a {above.kind}, yet something is wanted below it")

    def __iter__(self) -> Iterator[Surface]:
        return iter(self.surfaces)

    def __len__(self) -> int:
        return len(self.surfaces)

    def __contains__(self, path: object) -> bool:
        return path in self._by_path

    def get(self, path: str) -> Surface | None:
        """The surface at `path`, if any."""
        return self._by_path.get(path)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all surfaces, sorted."""
        return tuple(self._by_path)

    @cached_property
    def directories(self) -> dict[str, int | None]:
        """Every directory that must be there, parents first: the mode of an explicit one, None for a mere parent."""
        needed: dict[str, int | None] = {}
        for surface in self.surfaces:
            for path in ancestors(surface.path):
                if path in needed:
                    break
                needed[path] = None
        needed.update((surface.path, surface.mode) for surface in self.surfaces if isinstance(surface, Directory))
        return dict(sorted(needed.items()))

    @cached_property
    def places(self) -> tuple[tuple[str, tuple[bytes, ...], bool], ...]:
        """Every directory that must be there, parents first: the names in it but of directories and links; any link?

        The names are as the kernel takes them.
        """
        names: dict[str, list[bytes]] = {path: [] for path in ("", *self.directories)}
        with_links: set[str] = set()
        for surface in self.surfaces:
            parent, _, name = surface.path.rpartition("/")
            if isinstance(surface, Link):
                with_links.add(parent)
            elif not isinstance(surface, Directory):
                names[parent].append(os.fsencode(name))
        return tuple((path, tuple(inner), path in with_links) for path, inner in names.items())

    @cached_property
    def stand_ins(self) -> tuple[str, ...]:
        """The paths of all stand-ins."""
        return tuple(surface.path for surface in self.surfaces if isinstance(surface, StandIn))

    def union(self, other: Tree) -> Tree:
        """Both trees as one. Raises TreeError if they are not disjoint or do not fit together."""
        return Tree((*self.surfaces, *other.surfaces))

    def __or__(self, other: Tree) -> Tree:
        return self.union(other)

    @staticmethod
    def disjoint(*trees: Tree) -> bool:
        """True if the trees can be there together: no path in two of them, nothing below another's file."""
        try:
            Tree(surface for tree in trees for surface in tree)
        except TreeError:
            return False
        return True

    @cached_property
    def _by_path(self) -> dict[str, Surface]:
        return {surface.path: surface for surface in self.surfaces}


Tree.empty = Tree()


def target_of(path: str, target: str) -> str | None:
    """The path beneath the root that a link at `path` leads to; None if it leads out of the root."""
    if target.startswith("/"):
        return None
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return None if resolved == ".." or resolved.startswith("../") else resolved


def referenced_first(links: Mapping[str, str]) -> list[str]:
    """The paths of the links (path to target) in an order in which each comes after any other that it leads to."""
    ordered: dict[str, None] = {}
    for path in sorted(links):
        chain: dict[str, None] = {}
        step = path
        while step in links and step not in chain and step not in ordered:
            chain[step] = None
            step = target_of(step, links[step]) or ""
        ordered.update(reversed(chain.items()))
    return list(ordered)
