"""State is one immutable value: equality, serialisation and the derived PCI topology."""

from __future__ import annotations

import msgspec
import pytest

from simnode.state import (
    Counter,
    DeviceRuntime,
    DeviceSpec,
    Gauge,
    NodeMeta,
    NodeShape,
    PCIeTopology,
    Refusal,
    RootComplex,
    Runtime,
    SoftwareVersions,
    State,
)

CONSTANT = Runtime()


def device(index: int) -> DeviceSpec:
    return DeviceSpec(
        index=index,
        uuid=f"GPU-00000000-0000-0000-0000-00000000000{index + 1}",
        minor_number=index,
        serial="1",
        pci_bus_id=f"0000:0{index + 1}:00.0",
        name="NVIDIA H100 80GB HBM3",
        architecture="hopper",
        compute_cap_major=9,
        compute_cap_minor=0,
        memory_total_bytes=1 << 36,
        pci_device_id=0x233010DE,
        pci_subsystem_id=0x16C110DE,
    )


def state(generation: int = 1, *, roots: tuple[RootComplex, ...] = (), runtime: Runtime = CONSTANT) -> State:
    return State(
        generation=generation,
        node=NodeMeta(node_name="n"),
        software=SoftwareVersions("550.163.01", "12.550.163.01", "12.4"),
        node_shape=NodeShape(2, PCIeTopology(roots)),
        devices=(device(0), device(1)),
        runtime=runtime,
    )


def test_generation_takes_no_part_in_equality() -> None:
    assert state(1) == state(2)
    assert hash(state(1)) == hash(state(2))


def test_runtime_takes_part_in_equality_but_not_in_structure() -> None:
    other = state(runtime=Runtime((DeviceRuntime((("thermal.temperature_gpu_c", 91),)),)))
    assert state() != other
    assert state().same_structure(other)
    assert not state().same_structure(msgspec.structs.replace(other, devices=()))


def test_a_state_survives_serialisation_with_every_kind_of_value() -> None:
    values = (("a", 1), ("b", "x"), ("c", Gauge(1, 2)), ("d", Counter(1, 0.5, 2.0)), ("e", Refusal(15)))
    full = state(runtime=Runtime((DeviceRuntime(values),)))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(full), type=State) == full


def test_a_gpu_that_no_root_declares_gets_a_root_of_its_own_without_a_numa_node() -> None:
    declared = RootComplex("pci0000:00", 0, ("0000:01:00.0", "0000:09:00.0"), "0-3")
    assert state(roots=(declared,)).pci_topology() == (
        RootComplex("pci0000:00", 0, ("0000:01:00.0",), "0-3"),
        RootComplex("pci0000:02", -1, ("0000:02:00.0",), ""),
    )


def test_a_root_whose_devices_are_all_absent_is_not_there() -> None:
    empty = RootComplex("pci0000:80", 1, ("0000:99:00.0",), "")
    assert all(root.id != "pci0000:80" for root in state(roots=(empty,)).pci_topology())


def test_a_state_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        state().generation = 3  # type: ignore[misc]
