"""The GPU driver of a host node: the same driver, and published where a host's programs look for an installed one.

/run/nvidia/driver is a real directory, because containers mount it and hold its inode, and what is in it are links into
the driver root, written with the host's own paths. Someone else's driver there is left alone, all of it.
"""

from __future__ import annotations

import msgspec

from simnode.contracts import Wanted
from simnode.host import ConvergeError, Directory, Host, Link, SurfaceError, Tree
from simnode.simulators import in_thread
from simnode.simulators.gpudriver.simulator import Devices, DriverFiles, GPUDriver
from simnode.state import Facts, State

PUBLISHED = "run/nvidia/driver"
OWNER = "gpudriver.published"
# not dev: whoever mounts this directory takes the device nodes from the driver root
MIRRORED = ("config", "proc", "usr")


class Outside(msgspec.Struct, frozen=True):
    """The host outside the node: the engine over its root, and the driver root's absolute path as the host knows it."""

    host: Host
    driver_root: str


class PublishedGPUDriver(GPUDriver):
    """A GPU driver that is ready only once it is published, too."""

    def __init__(
        self, host: Host, files: DriverFiles, devices: Devices, machine: str = "x86_64", *, outside: Outside
    ) -> None:
        super().__init__(host, files, devices, machine)
        self._outside = outside
        self._published = False

    def published(self, state: State, facts: Facts) -> Tree:  # noqa: ARG002
        """What the host's programs find, below the host's root."""
        root = self._outside.driver_root
        links = (Link(f"{PUBLISHED}/{name}", f"{root}/{name}") for name in MIRRORED)
        return Tree((Directory(PUBLISHED, take_over=root), *links))

    async def stage(self, state: State, facts: Facts) -> None:
        """As every GPU driver; not ready again before the next `apply`."""
        self._published = False
        await super().stage(state, facts)

    async def narrow(self, old: Wanted, new: Wanted) -> None:  # noqa: ARG002
        """Withdraw what `new` no longer publishes."""
        await in_thread(lambda: self._outside.host.narrow(OWNER, self.published(*new)))

    async def apply(self, state: State, facts: Facts) -> None:
        """Publish; ConvergeError names what is in the way, and then nothing has been changed.

        Applied again, as at each resync, it stays ready meanwhile; it is not ready after a failure.
        """
        try:
            await in_thread(lambda: self._publish_outside(self.published(state, facts)))
        except BaseException:
            self._published = False
            raise
        self._published = True

    async def revoke(self) -> None:
        """Withdraw everything."""
        self._published = False
        await in_thread(lambda: self._outside.host.converge(OWNER, Tree.empty))

    def ready(self) -> bool:
        """True once staged and published."""
        return self._published and super().ready()

    def _publish_outside(self, tree: Tree) -> None:
        conflicts = [step for step in self._outside.host.plan(OWNER, tree) if step.action == "conflict"]
        if conflicts:
            kinds = ((step, step.surface.kind if step.surface else Directory.kind) for step in conflicts)
            raise ConvergeError(OWNER, (SurfaceError(step.path, kind, None, step.reason) for step, kind in kinds))
        self._outside.host.converge(OWNER, tree)
