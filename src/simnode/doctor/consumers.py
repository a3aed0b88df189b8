"""The one table: which consumer meets what a check looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from simnode.doctor import devices, driver, kernel, records, runtimes
from simnode.doctor.findings import Finding, merged
from simnode.doctor.view import View

Check = Callable[[View], Iterator[Finding]]

_NVML = ("nvml", "nvidia-smi", "device-plugin", "gfd", "dra")
_CONTAINERS = ("containerd", "podman")

# Who comes first is whom a finding is told of first.
_CHECKS: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (records.real_driver, ("nvml", "devices", "operator-validator", "device-plugin")),
    (records.agent, ("agent",)),
    (driver.libraries, ("nvml", "device-plugin", "gfd", "dra")),
    (driver.image, _NVML),
    (driver.answers, _NVML),
    (driver.agreement, _NVML),
    (driver.nvidia_smi, ("nvidia-smi",)),
    (devices.listed, ("devices", "device-plugin")),
    (devices.nodes, ("devices", "device-plugin", "dra", *_CONTAINERS)),
    (devices.majors, ("devices", "dra")),
    (devices.closed, ("devices",)),
    (devices.partitions, ("mig", "device-plugin", *_CONTAINERS)),
    (devices.imex, ("imex", "dra")),
    (kernel.modules, ("operator-validator",)),
    (kernel.bus, ("gfd", "dra", "nfd")),
    (kernel.nfd, ("nfd",)),
    (runtimes.published, ("operator-validator",)),
    (runtimes.markers, ("operator-validator",)),
    (runtimes.specs, _CONTAINERS),
    (runtimes.versions, ("podman",)),
    (records.fabric_manager, ("fabric-manager", "dra")),
    (records.topology, ("topology", "dra")),
)

CONSUMERS = tuple(dict.fromkeys(name for _, names in _CHECKS for name in names))
"""Every consumer that can be asked for."""


def examine(view: View, consumers: Sequence[str] = CONSUMERS) -> tuple[Finding, ...]:
    """What these consumers would find wrong with the node; one finding for each cause."""
    place = view.reach(f"{view.driver}/usr")
    if place.status is None:
        why = "no node is staged here"
        return (Finding(place.path, place.fault, why, "a running agent", tuple(consumers)),)
    return merged(
        replace(finding, consumers=concerned)
        for check, names in _CHECKS
        if (concerned := tuple(name for name in names if name in consumers))
        for finding in check(view)
    )
