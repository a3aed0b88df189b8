"""States with any number of GPUs, for the simulators' tests."""

from __future__ import annotations

from simnode.state import DeviceSpec, Facts, NodeMeta, NodeShape, SoftwareVersions, State

FACTS = Facts()
PROFILE = b"""\
# an HGX board
system:
  driver_version: "550.163.01"
  num_devices: 2 # as the board has it
device_defaults:
  name: NVIDIA H100 80GB HBM3
"""


def device(index: int) -> DeviceSpec:
    """An H100; the minor is not the index, so that a mix-up shows."""
    return DeviceSpec(
        index=index,
        uuid=f"GPU-00000000-0000-4000-8000-{index:012x}",
        minor_number=63 - index,
        serial=f"165{index:010d}",
        pci_bus_id=f"0000:{index + 7:02x}:00.0",
        name="NVIDIA H100 80GB HBM3",
        architecture="hopper",
        compute_cap_major=9,
        compute_cap_minor=0,
        memory_total_bytes=81559 << 20,
        pci_device_id=0x233010DE,
        pci_subsystem_id=0x16C110DE,
        vbios_version="96.00.99.00.01",
    )


def state(gpus: int, driver_version: str = "550.163.01") -> State:
    """A node with that many H100s."""
    return State(
        generation=1,
        node=NodeMeta(),
        software=SoftwareVersions(driver_version, f"12.{driver_version}", "12.4"),
        node_shape=NodeShape(num_gpus=gpus),
        devices=tuple(device(index) for index in range(gpus)),
        config_raw=PROFILE,
    )
