"""The PCI bus of a host node: the same, and a feature file that tells Node Feature Discovery of NVIDIA's devices.

NFD looks at the host's own PCI bus, where there are none; what lies in its directory for local features it takes as it
is, and its label decides whether GPU operands are scheduled on the node at all.
"""

from __future__ import annotations

from simnode.contracts import Wanted
from simnode.host import File, Host, Tree
from simnode.simulators import in_thread
from simnode.simulators.pcibus.simulator import PCIBus
from simnode.state import Facts, State

FEATURES = "etc/kubernetes/node-feature-discovery/features.d/simnode.features"
OWNER = "pcibus.published"
_PRESENT = b"pci-10de.present=true\n"


class PublishedPCIBus(PCIBus):
    """A PCI bus that is ready only once it is published, too. `outside`: the engine over the host's root."""

    def __init__(self, host: Host, outside: Host) -> None:
        super().__init__(host)
        self._outside = outside
        self._published = False

    def published(self, state: State, facts: Facts) -> Tree:  # noqa: ARG002
        """The feature file, if there is any device of NVIDIA's."""
        return Tree([File(FEATURES, _PRESENT)] if state.devices or state.switches else [])

    async def stage(self, state: State, facts: Facts) -> None:
        """As every PCI bus; not ready again before the next `apply`."""
        self._published = False
        await super().stage(state, facts)

    async def narrow(self, old: Wanted, new: Wanted) -> None:  # noqa: ARG002
        """Withdraw what `new` no longer publishes."""
        await in_thread(lambda: self._outside.narrow(OWNER, self.published(*new)))

    async def apply(self, state: State, facts: Facts) -> None:
        """Publish; it stays ready meanwhile if it was, and is not after a failure."""
        try:
            await in_thread(lambda: self._outside.converge(OWNER, self.published(state, facts)))
        except BaseException:
            self._published = False
            raise
        self._published = True

    async def revoke(self) -> None:
        """Withdraw everything."""
        self._published = False
        await in_thread(lambda: self._outside.converge(OWNER, Tree.empty))

    def ready(self) -> bool:
        """True once staged and published."""
        return self._published and super().ready()
