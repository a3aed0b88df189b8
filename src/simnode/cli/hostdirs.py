"""A directory of the host as the engine has to name it: it follows no link, but hosts have links in well-known paths.

/var/run leads to /run wherever a runtime looks for CDI specs. What a link says is the host's word, so it is followed
below the host's root as we see it, and never out of it.
"""

from __future__ import annotations

from pathlib import Path

_LINKS = 40


def below(root: Path, directory: str) -> str:
    """The path below `root` of the host's absolute `directory`, all its links followed there; need not exist yet.

    Where the agent sees no /var/run at all, as in a container that mounts only what it needs, it is /run.
    """
    left = _components(directory)
    followed = 0
    done: list[str] = []
    while left:
        name = left.pop(0)
        if name == "..":
            del done[-1:]
            continue
        path = root.joinpath(*done, name)
        if path.is_symlink() and followed < _LINKS:
            followed += 1
            target = str(path.readlink())
            left = _components(target) + left
            if target.startswith("/"):
                done = []
        elif [*done, name] == ["var", "run"] and not path.exists():
            done = ["run"]
        else:
            done.append(name)
    return "/".join(done)


def _components(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
