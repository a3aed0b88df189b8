"""The subjects by which the page of what NVML answers is ordered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SUBJECTS = (
    ("Units, an older kind of chassis", r"^nvmlUnit|HicVersion"),
    ("Confidential computing", r"ConfCompute"),
    ("Virtual GPUs", r"Vgpu|GridLicensable|Virtualization|Pgpu"),
    ("GPM", r"Gpm"),
    ("Events", r"Event(?!Reason)|CPER"),
    ("MIG", r"Mig|GpuInstance|ComputeInstance|DeviceGetAttributes"),
    ("NVLink and fabric", r"Nv[Ll]ink|Fabric|C2c|PRM"),
    ("Accounting", r"Accounting"),
    ("The library and the system", r"^nvml(Init|Shutdown|ErrorString|Internal|System)"),
    (
        "Finding GPUs, and taking them away",
        r"GetCount|HandleBy|Excluded|Blacklist|Drain|RemoveGpu|DiscoverGpus|GetIndex",
    ),
    ("Topology and affinity", r"Affinity|Topology|P2P|OnSameBoard|MultiGpuBoard|Numa"),
    ("PCI", r"Pci|BusType|IrqNum"),
    ("ECC, retired pages, remapped rows", r"Ecc|Retired|Remap|MemoryErrorCounter|Repair|Unrepairable"),
    ("Processes", r"Process"),
    ("Power", r"Power|Energy|Tgp"),
    ("Temperature and fans", r"Temperature|Thermal|Fan|Cooler"),
    (
        "Utilisation, encoders, samples and fields",
        r"FieldValues|Utilization|Encoder|Decoder|FBC|Samples|Rusd|CcuGet|CcuSet",
    ),
    ("Memory", r"Memory(?!Locked|Clock)|BAR1|DramEncryption"),
    ("Clocks and performance", r"Clock|Clk|Perf|Pstate|Violation|Vf|APIRestriction|AutoBoost|DynamicP"),
    ("Modes", r"Mode|Display|DriverModel"),
    ("Identity and firmware", r""),
)


def by_subject(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Subjects from the general to the particular, each with its names in order; one name has one subject."""
    found: dict[str, list[str]] = {subject: [] for subject, _ in _SUBJECTS}
    for name in sorted(names):
        found[next(subject for subject, pattern in _SUBJECTS if re.search(pattern, name))].append(name)
    order = ("The library and the system", "Finding GPUs, and taking them away", "Identity and firmware")
    for subject in (*order, *(subject for subject in reversed(found) if subject not in order)):
        yield subject, found[subject]
