"""States for the tests: small nodes by hand, so that they depend on no profile."""

from __future__ import annotations

from collections.abc import Mapping

from simnode.nvml.image import encode
from simnode.partitions import MIGGPU, MIGState, MIGTable
from simnode.profile.mig_tables import BOARDS, profiles_of
from simnode.state import (
    ClockTable,
    Counter,
    DeviceRuntime,
    DeviceSpec,
    FabricState,
    LinkSpec,
    LoadSpec,
    NodeMeta,
    NodeShape,
    PCIeTopology,
    ProcessSpec,
    Refusal,
    RootComplex,
    Runtime,
    SoftwareVersions,
    State,
    Value,
)

IDLE = LoadSpec()
UNPARTITIONED = MIGState()
H100_PROFILES = profiles_of(BOARDS[3], 580)
ENERGY = "power.total_energy_consumption_mj"
THROTTLE = "clocks_throttle_reasons.counters.sw_power_cap_us"
WORD, WIDE, REFUSED = "pcie.replay_counter", "bar1_memory.used_bytes", "remapped_rows.pending"


def device(index: int, uuid: str = "") -> DeviceSpec:
    """GPU `index`, an H100."""
    return DeviceSpec(
        index=index,
        uuid=uuid or f"GPU-0000000{index:x}-1111-2222-3333-444444444444",
        minor_number=index,
        serial=f"165{index:010}",
        pci_bus_id=f"0000:{0x10 + index:02x}:00.0",
        name="NVIDIA H100 80GB HBM3",
        architecture="hopper",
        compute_cap_major=9,
        compute_cap_minor=0,
        memory_total_bytes=81559 << 20,
        pci_device_id=0x233010DE,
        pci_subsystem_id=0x16C110DE,
        vbios_version="96.00.99.00.01",
    )


def partitions(*gpus: MIGGPU) -> MIGState:
    """A layout of GPUs that can be partitioned as H100s."""
    return MIGState(gpus=gpus, tables=(MIGTable(tuple(range(64)), H100_PROFILES),))


def runtime(
    values: Mapping[str, Value] | None = None,
    *,
    load: LoadSpec = IDLE,
    clocks: tuple[ClockTable, ...] = (),
    processes: tuple[ProcessSpec, ...] = (),
    links: tuple[LinkSpec, ...] = (),
    lost: int = 0,
) -> DeviceRuntime:
    """What a device reads."""
    return DeviceRuntime(tuple(sorted((values or {}).items())), load, clocks, processes, links, lost)


def node(
    *runtimes: DeviceRuntime,
    devices: tuple[DeviceSpec, ...] | None = None,
    roots: tuple[RootComplex, ...] = (),
    mig: MIGState = UNPARTITIONED,
    generation: int = 1,
    bandwidth_mbps: int = 26562,
    driver: str = "580.105.08",
) -> State:
    """A node with one GPU for each runtime."""
    devices = tuple(device(i) for i in range(len(runtimes))) if devices is None else devices
    return State(
        generation=generation,
        node=NodeMeta(),
        software=SoftwareVersions(driver, f"13.{driver}", "13.0"),
        node_shape=NodeShape(len(devices), PCIeTopology(roots, cores_per_numa=64)),
        devices=devices,
        fabric=FabricState(enabled=True, links_per_gpu=18, bandwidth_per_link_mbps=bandwidth_mbps),
        mig=mig,
        runtime=Runtime(runtimes),
    )


def busy(energy: Counter, load: LoadSpec = IDLE) -> State:
    """One GPU with this energy counter under this load."""
    return node(runtime({ENERGY: energy}, load=load))


def pairs(x: int, gpus: int, energy: Counter, load: LoadSpec) -> bytes:
    """An encoded node of which everything follows from x, as native/pairs.h expects it."""
    values: dict[str, Value] = {
        WORD: x,
        WIDE: x * 0x9E3779B9,
        REFUSED: Refusal(3) if x % 2 else x,
        "serial": str(x),
        ENERGY: energy,
        THROTTLE: Counter(0, energy.span_rate, 0),
    }
    processes = tuple(ProcessSpec(x, "C", "python", x) for _ in range(x % 8))
    each = runtime(values, load=load, processes=processes, links=(LinkSpec(True, "switch", "", 0),))
    return b"".join(encode(node(*[each] * gpus, generation=x)))
