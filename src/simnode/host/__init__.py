"""The host: surfaces and trees, and the engine that makes a directory hold exactly what a tree says.

A simulator says what should be there; how to get there, and back, is written here once.
"""

from simnode.host.engine import Host
from simnode.host.errors import ConvergeError, OwnerBusyError, SurfaceError, TreeError
from simnode.host.mounts import Mounts
from simnode.host.plan import Plan, Step
from simnode.host.surfaces import CharacterDevice, Directory, File, Link, LiveFile, StandIn, Surface
from simnode.host.tree import Tree

__all__ = [
    "CharacterDevice",
    "ConvergeError",
    "Directory",
    "File",
    "Host",
    "Link",
    "LiveFile",
    "Mounts",
    "OwnerBusyError",
    "Plan",
    "StandIn",
    "Step",
    "Surface",
    "SurfaceError",
    "Tree",
    "TreeError",
]
