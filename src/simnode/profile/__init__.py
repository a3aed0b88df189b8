"""Profiles: the YAML documents that describe a node, and how one becomes a State.

document (schema, lines, faults) → merge of overrides → State. What it refuses it refuses in one line per fault, all at
once, with file, key and line.
"""

from simnode.profile.catalogue import boards, load_board, load_file, load_text
from simnode.profile.compile import Compiler, Options, compile_state
from simnode.profile.document import Document
from simnode.profile.faults import Fault, ProfileError
from simnode.profile.overrides import Overrides, load_overrides

__all__ = [
    "Compiler",
    "Document",
    "Fault",
    "Options",
    "Overrides",
    "ProfileError",
    "boards",
    "compile_state",
    "load_board",
    "load_file",
    "load_overrides",
    "load_text",
]
