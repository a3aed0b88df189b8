"""Compiles native/ before a wheel is made, editable ones too; a wheel serves any Python 3 of one platform."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeBuildHook(BuildHookInterface[Any]):
    """Runs native/build.py; its failure is the build's."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is "standard" or "editable"; both need the same files."""
        del version
        script = Path(self.root) / "native" / "build.py"
        if subprocess.run([sys.executable, str(script)], check=False).returncode != 0:
            raise SystemExit("simnode: the native part could not be built (see above)")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
