"""The GPU driver of a host node: the same driver, and published where a host's programs look for an installed one.

/run/nvidia/driver is a real directory, because containers mount it and hold its inode, and it is whole in itself: who
mounts nothing else, or makes it the root directory, finds programs, libraries and an image as live as the staged one.
Someone else's driver there is left alone, all of it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from simnode.contracts import Wanted
from simnode.host import ConvergeError, Directory, Host, Link, Surface, SurfaceError, Tree
from simnode.nvml.image import ImageError, Publisher
from simnode.simulators import Devices, in_thread
from simnode.simulators.gpudriver.kernellog import NO_KERNEL, Kernel
from simnode.simulators.gpudriver.simulator import CONFIG, IMAGE_PATH, DriverFiles, GPUDriver
from simnode.state import Facts, State

PUBLISHED = "run/nvidia/driver"
OWNER = "gpudriver.published"
# not dev: whoever mounts this directory takes the device nodes from the driver root
_MIRRORED = ("driver/config", "driver/proc/", "driver/usr/")


class Outside(msgspec.Struct, frozen=True):
    """The host outside the node: the engine over its root, and the driver root's absolute path as the host knows it.

    If `lasting`, the directories that containers mount outlive the agent, empty, so that a container which lives longer
    than it finds what the next agent puts into them.
    """

    host: Host
    driver_root: str
    lasting: bool = False


class PublishedGPUDriver(GPUDriver):
    """A GPU driver that is ready only once it is published, too."""

    def __init__(
        self,
        host: Host,
        files: DriverFiles,
        devices: Devices,
        machine: str = "x86_64",
        kernel: Kernel = NO_KERNEL,
        *,
        outside: Outside,
    ) -> None:
        super().__init__(host, files, devices, machine, kernel)
        self._outside = outside
        self._published = False
        self._copies: dict[str, tuple[Surface, Surface]] = {}
        self._follower: Publisher | None = None
        self._followed_at = (0, 0)

    def published(self, state: State, facts: Facts) -> Tree:
        """What the host's programs find, below the host's root; `etc` is for who makes it the root directory."""
        staged = self.tree(state, facts)
        mirrored = [self._mirrored(surface) for surface in staged if surface.path.startswith(_MIRRORED)]
        self._copies = {copy.path: (original, copy) for original, copy in mirrored}
        place = Directory(PUBLISHED, take_over=self._outside.driver_root)
        return Tree((place, Link(f"{PUBLISHED}/etc/simnode", "../config"), *(copy for _, copy in mirrored)))

    async def stage(self, state: State, facts: Facts) -> None:
        """As every GPU driver; not ready again before the next `apply`."""
        self._published = False
        await super().stage(state, facts)

    async def narrow(self, old: Wanted, new: Wanted) -> None:
        """Nothing: what is published names nothing outside itself, so it stays whole until the next is there."""

    async def apply(self, state: State, facts: Facts) -> None:
        """Publish; ConvergeError names what is in the way, and then nothing has been changed.

        Applied again, as at each resync, it stays ready meanwhile; it is not ready after a failure.
        """
        try:
            await in_thread(lambda: self._publish_outside(self.published(state, facts)))
            await in_thread(self._follow)
        except BaseException:
            self._published = False
            raise
        self._published = True

    async def revoke(self) -> None:
        """Withdraw everything."""
        self._published = False
        await in_thread(self._withdraw)

    def ready(self) -> bool:
        """True once staged and published."""
        return self._published and super().ready()

    def _publish(self, state: State, facts: Facts) -> None:
        super()._publish(state, facts)
        if self._follower is not None:
            with suppress(OSError, ImageError):  # the next apply repairs it, or says what is wrong
                self._follow()

    def _follow(self) -> None:
        """Let the published image say what the staged one says."""
        path = self._outside.host.root / PUBLISHED / IMAGE_PATH.removeprefix("driver/")
        there = path.lstat()
        found = (there.st_dev, there.st_ino)
        if self._follower is None or self._followed_at != found:
            self._unfollow()
            self._follower, self._followed_at = Publisher(path), found
        if self._publisher is not None:
            self._follower.follow(self._publisher)

    def _unfollow(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def _withdraw(self) -> None:
        self._unfollow()
        self._outside.host.converge(OWNER, self._left(self._outside.host, OWNER, PUBLISHED))

    def _lasting(self) -> Tree:
        return self._left(self._host, self.name, CONFIG, "driver/proc/driver")

    def _left(self, host: Host, owner: str, *paths: str) -> Tree:
        """Those of the directories that are there and can stay; somebody else's are none of our business."""
        there = [path for path in paths if self._outside.lasting and _is_directory(host.root / path)]
        left = Tree(Directory(path) for path in there)
        return Tree.empty if any(step.action == "conflict" for step in host.plan(owner, left)) else left

    def _mirrored(self, surface: Surface) -> tuple[Surface, Surface]:
        """The surface and its copy, the very same as before if the surface is: a file is fingerprinted once."""
        path = f"{PUBLISHED}/{surface.path.removeprefix('driver/')}"
        known = self._copies.get(path)
        if known is not None and (known[0] is surface or known[0] == surface):
            return surface, known[1]
        return surface, replace(surface, path=path)

    def _publish_outside(self, tree: Tree) -> None:
        plan = self._outside.host.plan(OWNER, tree)
        if not plan:
            return
        conflicts = [step for step in plan if step.action == "conflict"]
        if conflicts:
            kinds = ((step, step.surface.kind if step.surface else Directory.kind) for step in conflicts)
            raise ConvergeError(OWNER, (SurfaceError(step.path, kind, None, step.reason) for step, kind in kinds))
        self._outside.host.converge(OWNER, tree)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
