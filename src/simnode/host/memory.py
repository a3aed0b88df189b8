"""What the engine remembers of an owner between two operations, only to be quick: all of it may be forgotten.

That is the records as they were last parsed, and what lay there when a plan was last found empty. While tree, records
and everything at the names are as they were then, the plan is empty again: one look at each name tells.
"""

from __future__ import annotations

import os
from operator import attrgetter

from msgspec import Struct, field

from simnode.host.ground import Ground
from simnode.host.journal import Entries
from simnode.host.parents import Ledger
from simnode.host.paths import Beneath
from simnode.host.records import Parsed
from simnode.host.surfaces import StandIn
from simnode.host.tree import Tree

Sight = list[tuple[int, ...]]

_OF_DIRECTORY = attrgetter("st_dev", "st_ino", "st_mode")
_OF_OTHER = attrgetter("st_dev", "st_ino", "st_ctime_ns")


class Standing(Struct, frozen=True):
    """What a plan was found empty from: these very values, and what lay at the names of the tree."""

    tree: Tree
    entries: Entries
    ledger: Ledger
    sight: Sight

    def is_of(self, tree: Tree, entries: Entries, ledger: Ledger) -> bool:
        """True if nothing but what lies at the names can make a difference."""
        return self.tree is tree and self.entries is entries and self.ledger is ledger


class Memory(Struct):
    """What is remembered of one owner; `ledger` is common to all owners of an engine."""

    ledger: Parsed[Ledger]
    journal: Parsed[Entries] = field(default_factory=Parsed)
    standing: Standing | None = None


def look(tree: Tree, beneath: Beneath, ground: Ground) -> Sight | None:
    """What lies at each name of the tree, such that any change shows; None if a name is missing.

    Whatever is done to a file, link or device changes its ctime; that of a directory changes with what is in it, too.
    """
    stat = os.stat
    sight: Sight = []
    try:
        for parent, directories, others in tree.places:
            at = beneath.directory(parent)
            sight += [_OF_DIRECTORY(stat(name, dir_fd=at, follow_symlinks=False)) for name in directories]
            sight += [_OF_OTHER(stat(name, dir_fd=at, follow_symlinks=False)) for name in others]
        for surface in tree:
            if type(surface) is StandIn:
                sight.append((ground.mounted(surface.path),))
    except OSError:
        return None
    return sight
