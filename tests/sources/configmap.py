"""A directory as the kubelet keeps it for a ConfigMap: files are links through `..data` into a dated directory."""

from __future__ import annotations

import shutil
from pathlib import Path


class ConfigMap:
    """`directory` with the given files; `update` swaps them as the kubelet's atomic writer does."""

    def __init__(self, directory: Path, **files: str) -> None:
        self.directory = directory
        self._version = 0
        directory.mkdir()
        self._write(files)
        (directory / "..data").symlink_to(self._dated().name)
        for name in files:
            self.path(name).symlink_to(f"..data/{name}.yaml")

    def path(self, name: str) -> Path:
        """The file as a pod names it."""
        return self.directory / f"{name}.yaml"

    def update(self, **files: str) -> None:
        """Swap to new contents; a name that is new gets its link after, one that is gone loses it."""
        before, old = self._dated(), {path.name for path in self._dated().iterdir()}
        self._version += 1
        self._write(files)
        temporary = self.directory / "..data_tmp"
        temporary.symlink_to(self._dated().name)
        temporary.rename(self.directory / "..data")
        new = {f"{name}.yaml" for name in files}
        for name in new - old:
            (self.directory / name).symlink_to(f"..data/{name}")
        for name in old - new:
            (self.directory / name).unlink()
        shutil.rmtree(before)

    def _dated(self) -> Path:
        return self.directory / f"..2026_08_01_{self._version:09d}"

    def _write(self, files: dict[str, str]) -> None:
        self._dated().mkdir()
        for name, text in files.items():
            (self._dated() / f"{name}.yaml").write_text(text)
