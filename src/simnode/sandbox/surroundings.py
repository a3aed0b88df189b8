"""The environment that a command in a node is given: the caller's, but for what leads to another node."""

from __future__ import annotations

import os
from collections.abc import Mapping

_IMAGE, _DEVICES = "SIMNODE_IMAGE", "SIMNODE_DEVICES"


def inside(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for a node at the standard places; without entries that have no name, which Python cannot hand on."""
    return {name: value for name, value in environ.items() if name and name not in (_IMAGE, _DEVICES)}


def beside(environ: Mapping[str, str], driver: str) -> dict[str, str]:
    """`environ` with the ways to the library, programs and image of a node whose driver root is no standard place.

    Which devices /dev has then says nothing: it may belong to a node around this one.
    """
    return {
        **inside(environ),
        "LD_LIBRARY_PATH": _first(f"{driver}/usr/lib64", environ.get("LD_LIBRARY_PATH", "")),
        "PATH": _first(f"{driver}/usr/bin", environ.get("PATH", os.defpath)),
        _IMAGE: f"{driver}/config",
        _DEVICES: "all",
    }


def _first(directory: str, path: str) -> str:
    return f"{directory}:{path}" if path else directory
