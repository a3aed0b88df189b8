"""The library on images of partitioned nodes, and nodes that real programs run in."""

from __future__ import annotations

from tests.consumers.conftest import ordinary
from tests.nvml_library.conftest import library, scene
from tests.standing.conftest import nodes, refused, runner, scratch

__all__ = ["library", "nodes", "ordinary", "refused", "runner", "scene", "scratch"]
