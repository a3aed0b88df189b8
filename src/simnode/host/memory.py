"""What the engine remembers of an owner between two operations, only to be quick: all of it may be forgotten.

That is the records as they were last parsed, and what lay there when a plan was last found empty. While tree, records
and everything at the names are as they were then, the plan is empty again: one look at each tells. At links nobody need
look: none can be altered, only replaced, and that its directory shows.
"""

from __future__ import annotations

import os
from operator import attrgetter

from msgspec import Struct, field

from simnode.host.ctimes import settled, stamp
from simnode.host.ground import Ground
from simnode.host.journal import Entries
from simnode.host.parents import Ledger
from simnode.host.paths import Beneath
from simnode.host.records import Parsed
from simnode.host.tree import Tree

_OF_DIRECTORY = attrgetter("st_dev", "st_ino", "st_mode")


class Sight(Struct):
    """What lay at all names of a tree: numbers one after another, for there are thousands.

    `directories`: device, inode and mode of each. `others`: device, inode and ctime of each file, device files too, and
    of each directory with links. `mounts`: what each stand-in is mounted by.
    """

    directories: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    mounts: list[int] = field(default_factory=list)

    def settled(self, before_ns: int) -> bool:
        """True if whatever was altered since `before_ns` has another ctime."""
        return all(settled(ctime, before_ns) for ctime in self.others[2::3])


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

    Whatever is done to a file changes its ctime, but for what is written through a mapping; that of a directory changes
    with every name in it.
    """
    stat = os.stat
    sight = Sight()
    others = sight.others
    try:
        for path, names, has_links in tree.places:
            at = beneath.directory(path)
            found = stat(at)
            sight.directories += _OF_DIRECTORY(found)
            if has_links:
                others += stamp(found)
            for name in names:
                others += stamp(stat(name, dir_fd=at, follow_symlinks=False))
        sight.mounts += [ground.mounted(path) for path in tree.stand_ins]
    except OSError:
        return None
    return sight
