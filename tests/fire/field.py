"""The host root that burns: what others have there, before us and in the middle of it, and what there is in the end."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from simnode.cli.hostnode import HostNode
from tests.agent_host.running import OUTLIVE
from tests.host.scene import portrait

Portrait = tuple[object, ...]
NODE = "var/lib/simnode"
_RECORDS = (f"{NODE}/state/", f"{NODE}/control")


@dataclass
class Field:
    """`root` is the host's, the documents lie beside it; all paths are relative to the root.

    `foul`: the latest agent could not take everything away. `foreign`: what others put there. `altered`: ours, but
    somebody's hand was on it, so that it may have to stay.
    """

    root: Path
    foreign: dict[str, Portrait] = field(default_factory=dict)
    altered: set[str] = field(default_factory=set)
    story: list[str] = field(default_factory=list)
    foul: bool = False
    plants: set[str] = field(default_factory=set)

    @classmethod
    def furnished(cls, scratch: Path) -> Field:
        """A host with a few things of others in the very directories that we write to."""
        made = cls(scratch / "root")
        for name in ("var/lib/other", "run/other", "run/cdi", "dev", "proc", f"{NODE}/driver/dev", "etc/kubernetes"):
            (made.root / name).mkdir(parents=True)
        (made.root / "var/run").symlink_to("../run")
        (made.root / "proc/version").write_text("Linux version 6.1\n")
        (made.root / "run/cdi/others.yaml").write_text("cdiVersion: 0.5.0\n")
        (made.root / f"{NODE}/driver/dev/tpm0").write_text("")
        (scratch / "documents").mkdir()
        for path in sorted(made.there()):
            made.foreign[path] = portrait(made.root / path)
        return made

    @property
    def node(self) -> HostNode:
        return HostNode(self.root)

    @property
    def documents(self) -> Path:
        return self.root.parent / "documents"

    @property
    def config(self) -> Path:
        return self.documents / "config.yaml"

    @property
    def topology(self) -> Path:
        return self.documents / "topology.yaml"

    def there(self) -> set[str]:
        """Everything below the root; links are not followed."""
        found: set[str] = set()
        start = len(f"{self.root}/")
        for directory, names, files in os.walk(self.root):
            within = f"{directory}/"[start:]
            found.update(f"{within}{name}" for name in (*names, *files))
        return found

    def plant(self, path: str, chance: random.Random) -> bool:
        """Put something of somebody else's at `path`, if nothing is there."""
        at = self.root / path
        if os.path.lexists(at) or not at.parent.is_dir():
            return False
        match chance.choice(("file", "file", "directory", "link", "dangling", "loop", "fifo")):
            case "file":
                at.write_bytes(chance.randbytes(chance.choice((0, 9))))
            case "directory":
                at.mkdir(0o700)
            case "link":
                at.symlink_to(self.root / "var/lib/other")
            case "dangling":
                at.symlink_to("/nonexistent/anything")
            case "loop":
                at.symlink_to(at.name)
            case "fifo":
                os.mkfifo(at, 0o600)
        if not at.is_symlink():
            at.chmod(0o600)
        self.plants.add(path)
        self.foreign[path] = portrait(at)
        return True

    def unplant(self, path: str) -> bool:
        """Take it away again; a directory that has something in it stays, open to all."""
        at = self.root / path
        if path not in self.plants:
            return False
        if at.is_dir() and not at.is_symlink() and any(at.iterdir()):
            if at.stat().st_mode & 0o777 == 0o755:
                return False
            assert portrait(at) == self.foreign[path]
            at.chmod(0o755)
            self.foreign[path] = portrait(at)
            return True
        if at.is_dir() and not at.is_symlink():
            at.rmdir()
        else:
            at.unlink()
        del self.foreign[path]
        self.plants.discard(path)
        return True

    def touched(self) -> list[str]:
        """What of others is not as they left it."""
        return [path for path, was in self.foreign.items() if _now(self.root / path) != was]

    def left_over(self, wanted: set[str] = frozenset()) -> set[str]:  # type: ignore[assignment]
        """What is there and belongs to nobody: no other's, not `wanted`, not a record of a node that goes on."""
        kept = wanted | self.foreign.keys() | OUTLIVE | self.altered
        above: set[str] = set()
        for path in kept:
            parent = path.rpartition("/")[0]
            while parent and parent not in above:
                above.add(parent)
                parent = parent.rpartition("/")[0]
        return {path for path in self.there() - kept - above if not path.startswith(_RECORDS)}


def _now(path: Path) -> Portrait:
    try:
        return portrait(path)
    except FileNotFoundError:
        return ()
