"""What a State becomes in the image: every kind of value, identity, lists, links, places; and what is refused."""

from __future__ import annotations

import struct

import msgspec
import pytest

from simnode.nvml import layout
from simnode.nvml.cells import BY_KEY, CELLS, DEVICE, NODE, Cell
from simnode.nvml.encode import Memory
from simnode.nvml.image import ImageError, encode
from simnode.nvml.layout import CLOCKS, LINK, MIG, PROCESS, RECORDS
from simnode.partitions import MIGGPU, MIGComputeInstance, MIGGPUInstance
from simnode.state import (
    ClockTable,
    Counter,
    Gauge,
    LinkSpec,
    LoadSpec,
    ProcessSpec,
    Refusal,
    RootComplex,
    State,
    SwitchSpec,
    Value,
)
from tests.nvml.nodes import ENERGY, device, node, partitions, runtime

NONE = 0xFFFFFFFF


class Block:
    """One encoded device."""

    def __init__(self, state: State, index: int = 0) -> None:
        _, *devices = encode(state)
        assert [len(device) for device in devices] == [DEVICE.size] * len(state.devices)
        self.raw = devices[index]

    def unpack(self, form: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(form, self.raw, offset)

    def cell(self, key: str) -> tuple[bytes, int]:
        """The value's bytes and the status."""
        cell = BY_KEY[key]
        record, at = RECORDS[cell.record], DEVICE.offsets[cell.member]
        status_at = record.offsets["status"]
        raw = self.raw[at : at + record.size]
        return raw[:status_at], struct.unpack_from("<I", raw, status_at)[0]

    def number(self, name: str) -> int:
        return self.unpack("<I", DEVICE.offsets[name])[0]

    def link(self, index: int, name: str) -> int:
        return self.unpack("<I", DEVICE.offsets["link"] + index * LINK.size + LINK.offsets[name])[0]


def value_of(key: str, value: Value) -> tuple[bytes, int]:
    return Block(node(runtime({key: value}))).cell(key)


@pytest.mark.parametrize(
    ("key", "value", "raw"),
    [
        ("pcie.max_link_gen", 5, struct.pack("<I", 5)),
        ("pcie.max_link_gen", NONE, struct.pack("<I", NONE)),
        ("persistence_mode", "enabled", struct.pack("<I", 1)),
        ("persistence_mode", 1, struct.pack("<I", 1)),
        ("performance_state", "P8", struct.pack("<I", 8)),
        ("thermal.tlimit.shutdown_c", -8, struct.pack("<i", -8)),
        ("pdi", (1 << 64) - 1, struct.pack("<Q", (1 << 64) - 1)),
        ("board_part_number", "692-2G520-0200-000", b"692-2G520-0200-000".ljust(80, b"\0")),
        ("thermal.temperature_gpu_c", 29, struct.pack("<qq", 29, 0)),
        ("utilization.gpu", Gauge(5, 90), struct.pack("<qq", 5, 90)),
        ("clocks.graphics_current", Gauge(1980, -1635), struct.pack("<qq", 1980, -1635)),
        (ENERGY, 600_000, struct.pack("<9Q", 600_000, 0, 0, 0, 0, 0, 0, 0, 0)),
        (ENERGY, Counter(7, 1e9, 0), struct.pack("<9Q", 7, 1 << 48, 0, 0, 0, 0, 0, 0, 0)),
        (
            "fabric.cluster_uuid",
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
            bytes(range(16)),
        ),
    ],
    ids=lambda value: str(value)[:24] if isinstance(value, str | int) else None,
)
def test_a_value_of_each_kind(key: str, value: Value, raw: bytes) -> None:
    assert value_of(key, value) == (raw, 0)


def test_a_counter_moves_by_the_load_per_unit_of_the_curves_integral() -> None:
    load = LoadSpec("wave", 0, 100, 60.0, 0)
    full_period = 32 << 32

    raw, _ = Block(node(runtime({ENERGY: Counter(0, 0.0, 1000.0)}, load=load))).cell(ENERGY)

    assert struct.unpack_from("<3Q", raw)[2] * full_period / 2**48 == pytest.approx(60_000, rel=1e-6)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.key)
def test_a_refusal_is_a_status_and_leaves_no_value(cell: Cell) -> None:
    raw, status = value_of(cell.key, Refusal(999))

    assert status == 999
    assert not any(raw)


IDENTITY = {
    "name", "uuid", "serial", "vbios_version", "minor_number", "architecture", "compute_capability.major", "board_id",
    "compute_capability.minor", "memory.total_bytes", "pci.domain", "pci.bus", "pci.device", "pci.device_id",
    "pci.subsystem_id",
}  # fmt: skip


@pytest.mark.parametrize("cell", [c for c in CELLS if c.key not in IDENTITY], ids=lambda cell: cell.key)
def test_an_unset_value_answers_what_its_cell_says(cell: Cell) -> None:
    raw, status = Block(node(runtime())).cell(cell.key)

    assert status == (cell.unset if cell.default is None else 0)
    assert int.from_bytes(raw[:8], "little") == (cell.default or 0)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", b"NVIDIA H100 80GB HBM3"),
        ("uuid", b"GPU-00000001-1111-2222-3333-444444444444"),
        ("serial", b"1650000000001"),
        ("vbios_version", b"96.00.99.00.01"),
        ("minor_number", 1),
        ("architecture", 9),
        ("compute_capability.major", 9),
        ("compute_capability.minor", 0),
        ("memory.total_bytes", 81559 << 20),
        ("board_id", 0x1100),
        ("pci.domain", 0),
        ("pci.bus", 0x11),
        ("pci.device", 0),
        ("pci.device_id", 0x233010DE),
        ("pci.subsystem_id", 0x16C110DE),
    ],
)
def test_identity_comes_from_the_device(key: str, value: int | bytes) -> None:
    raw, status = Block(node(runtime(), runtime()), 1).cell(key)

    assert status == 0
    assert raw.rstrip(b"\0") == value if isinstance(value, bytes) else int.from_bytes(raw, "little") == value


def test_a_domain_beyond_16_bits_is_told_whole_but_in_the_board_id() -> None:
    behind_vmd = msgspec.structs.replace(device(0), pci_bus_id="10000:e1:02.0")
    block = Block(node(runtime(), devices=(behind_vmd,)))

    told = [int.from_bytes(block.cell(key)[0], "little") for key in ("pci.domain", "pci.bus", "pci.device", "board_id")]
    assert told == [0x10000, 0xE1, 2, 0xE102]


def test_a_serial_that_is_not_there_is_not_supported() -> None:
    bare = msgspec.structs.replace(device(0), serial="")

    assert Block(node(runtime(), devices=(bare,))).cell("serial")[1] == 3


def test_a_runtime_value_goes_before_identity() -> None:
    assert value_of("serial", Refusal(3))[1] == 3


def test_the_node() -> None:
    encoded, *_ = encode(node(runtime(), runtime(), generation=77))

    at = NODE.offsets
    assert struct.unpack_from("<Q", encoded, at["generation"]) == (77,)
    assert struct.unpack_from("<I", encoded, at["device_count"]) == (2,)
    assert struct.unpack_from("<I", encoded, at["cuda_version"]) == (13000,)
    assert encoded[at["driver_version"] :][:11] == b"580.105.08\0"
    assert encoded[at["nvml_version"] :][:14] == b"13.580.105.08\0"


def test_a_node_without_gpus_is_its_node_record() -> None:
    assert [len(record) for record in encode(node())] == [NODE.size]


def test_a_lost_device_carries_its_code() -> None:
    assert Block(node(runtime(lost=15))).number("lost") == 15


def test_clock_tables() -> None:
    steps = tuple(range(1980, 330, -15))
    block = Block(node(runtime(clocks=(ClockTable(2619, steps), ClockTable(1593, (1980, 345))))))

    assert block.number("clocks_count") == 2
    assert block.unpack(f"<II{len(steps)}H", DEVICE.offsets["clocks"]) == (2619, len(steps), *steps)
    assert block.unpack("<II2H", DEVICE.offsets["clocks"] + CLOCKS.size) == (1593, 2, 1980, 345)


@pytest.mark.parametrize(("kind", "mask"), [("C", 1), ("G", 2), ("C+G", 3), ("M", 4)])
def test_a_process(kind: str, mask: int) -> None:
    process = ProcessSpec(4242, kind, "python", 6000 << 20, 50, 20, 1, 2)
    block = Block(node(runtime(processes=(process,))))

    assert block.number("process_count") == 1
    numbers = block.unpack("<IIQIIIIII", DEVICE.offsets["process"])
    assert numbers == (4242, mask, 6000 << 20, NONE, NONE, 50, 20, 1, 2)
    name = block.raw[DEVICE.offsets["process"] + PROCESS.offsets["name"] :][:216]
    assert name == b"python".ljust(216, b"\0")


def test_a_link_to_a_switch_hides_the_address() -> None:
    block = Block(node(runtime(links=(LinkSpec(True, "switch", "0000:05:00.0", 0),))))

    assert block.number("link_count") == 1
    names = ("present", "active", "version", "speed_mbps", "remote_type")
    assert tuple(block.link(0, name) for name in names) == (1, 1, 6, 26562, 2)
    assert tuple(block.link(0, f"remote_{name}") for name in ("domain", "bus", "device")) == (NONE, 0xFF, 0xFF)


def test_a_link_to_a_switch_on_the_nodes_bus_names_it() -> None:
    state = node(runtime(links=(LinkSpec(True, "switch", "0000:05:00.0", 0),)))
    block = Block(msgspec.structs.replace(state, switches=(SwitchSpec("0000:05:00.0", 0x22A310DE, 0x179610DE),)))

    names = ("remote_type", "remote_domain", "remote_bus", "remote_device", "remote_device_id")
    assert tuple(block.link(0, name) for name in names) == (2, 0, 0x05, 0, 0x22A310DE)


def test_another_switch_at_the_end_of_a_link_is_another_record() -> None:
    before, memory = node(runtime(links=(LinkSpec(True, "switch", "0000:05:00.0", 0),))), Memory()
    after = msgspec.structs.replace(before, switches=(SwitchSpec("0000:05:00.0", 0x22A310DE, 0x179610DE),))
    encode(before, memory=memory)
    assert encode(after, memory=memory) == encode(after)


@pytest.mark.parametrize("by", ["index", "bus id"])
def test_a_link_to_a_gpu_names_it(by: str) -> None:
    link = LinkSpec(True, "gpu", "", 1) if by == "index" else LinkSpec(True, "gpu", "0000:11:00.0")
    block = Block(node(runtime(links=(link,)), runtime()))

    names = ("remote_type", "remote_domain", "remote_bus", "remote_device", "remote_device_id")
    assert tuple(block.link(0, name) for name in names) == (0, 0, 0x11, 0, 0x233010DE)


SPREAD = tuple(LinkSpec(True, "switch", f"0000:{0x05 + at % 4:02x}:00.0", at % 4) for at in range(18))
TO_0, TO_1, ELSEWHERE = (
    LinkSpec(True, "gpu", "", 0),
    LinkSpec(True, "gpu", "0000:11:00.0"),
    LinkSpec(True, "gpu", "0000:aa:00.0"),
)
NOWHERE = LinkSpec(False, "", "")


def far(*links: tuple[LinkSpec, ...]) -> list[tuple[int, ...]]:
    """The far links of each GPU, as the image has them."""
    state = node(*(runtime(links=own) for own in links))
    return [
        tuple(Block(state, gpu).link(number, "remote_link") for number in range(len(own)))
        for gpu, own in enumerate(links)
    ]


def test_no_two_links_end_at_one_port_of_a_switch() -> None:
    ports = [
        port for own in far(*[SPREAD] * 8) for port in zip(own, (link.remote_index for link in SPREAD), strict=True)
    ]

    assert len(ports) == len(set(ports)) == 8 * 18
    assert {number for number, switch in ports if switch == 0} == set(range(8 * 5))


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        (((TO_1, NOWHERE, TO_1), (NOWHERE, TO_0, TO_0)), [(1, 0, 2), (0, 0, 2)]),
        (((TO_1, TO_1), (TO_0,)), [(0, 1), (0,)]),
        (((ELSEWHERE, ELSEWHERE), (ELSEWHERE,)), [(0, 1), (0,)]),
        (((TO_1,), ()), [(0,), ()]),
    ],
    ids=["there and back", "more there than back", "another node's GPU", "none back"],
)
def test_a_link_between_gpus_leads_to_the_link_that_leads_back(
    links: tuple[tuple[LinkSpec, ...], ...], expected: list[tuple[int, ...]]
) -> None:
    assert far(*links) == expected


def test_far_links_follow_the_links_of_the_other_gpus() -> None:
    memory = Memory()
    encode(node(runtime(links=(SPREAD[0],)), runtime(links=(SPREAD[0],))), memory=memory)
    later = node(runtime(links=(SPREAD[0],) * 2), runtime(links=(SPREAD[0],)))

    assert encode(later, memory=memory) == encode(later)


@pytest.mark.parametrize(("active", "carries"), [(True, True), (False, False)], ids=["active", "inactive"])
def test_only_active_links_carry_traffic(active: bool, carries: bool) -> None:
    load = LoadSpec("steady", 50, 50)
    block = Block(node(runtime(load=load, links=(LinkSpec(active, "switch", "", 0),))))

    rates = block.unpack("<3Q", DEVICE.offsets["link"] + LINK.offsets["tx_kib"])
    assert rates[:2] == (0, 0)
    assert (rates[2] > 0) == carries


@pytest.mark.parametrize(("generation", "version"), [(1, 1), (2, 2), (3, 4), (4, 6), (5, 7), (6, 8)])
def test_link_versions_are_nvmls(generation: int, version: int) -> None:
    block = Block(node(runtime({"nvlink.version": generation}, links=(LinkSpec(True, "switch", "", 0),))))

    assert block.link(0, "version") == version


TWO_SOCKETS = (
    RootComplex("pci0000:00", 0, ("0000:10:00.0", "0000:11:00.0"), "0-1,64-65"),
    RootComplex("pci0000:40", 0, ("0000:12:00.0",), ""),
    RootComplex("pci0000:80", 1, ("0000:13:00.0",), ""),
)


def test_levels_towards_the_other_gpus() -> None:
    state = node(*[runtime()] * 5, roots=TWO_SOCKETS)

    levels = [list(Block(state, i).raw[DEVICE.offsets["ancestor"] :][:6]) for i in range(5)]

    assert levels == [
        [0, 30, 40, 50, 50, 0],
        [30, 0, 40, 50, 50, 0],
        [40, 40, 0, 50, 50, 0],
        [50, 50, 50, 0, 50, 0],
        [50, 50, 50, 50, 0, 0],
    ]


@pytest.mark.parametrize(
    ("gpu", "cpus", "memory"),
    [
        (0, 0b11 | 0b11 << 64, 0b01),
        (2, (1 << 64) - 1, 0b01),
        (3, ((1 << 64) - 1) << 64, 0b10),
        (4, 0, 0),
    ],
    ids=["listed", "share of node 0", "share of node 1", "no node"],
)
def test_affinity(gpu: int, cpus: int, memory: int) -> None:
    block = Block(node(*[runtime()] * 5, roots=TWO_SOCKETS), gpu)

    assert block.raw[DEVICE.offsets["cpu_affinity"] :][: layout.CPU_WORDS * 8] == cpus.to_bytes(160, "little")
    assert block.raw[DEVICE.offsets["memory_affinity"] :][:32] == memory.to_bytes(32, "little")


def test_peers_are_who_shares_links_or_switches() -> None:
    switched = runtime(links=(LinkSpec(True, "switch", "", 0),))
    down = runtime(links=(LinkSpec(False, "switch", "", 0),))
    bridged = runtime(links=(LinkSpec(True, "gpu", "", 4),))
    state = node(switched, switched, down, bridged, runtime())

    statuses = [list(Block(state, i).raw[DEVICE.offsets["p2p"] :][:5]) for i in range(5)]

    assert statuses == [[0, 0, 5, 5, 5], [0, 0, 5, 5, 5], [5, 5, 0, 5, 5], [5, 5, 5, 0, 0], [5, 5, 5, 5, 0]]


def test_mig_devices_of_the_gpu_with_that_minor() -> None:
    instances = (
        MIGGPUInstance(1, (MIGComputeInstance(0, "MIG-a"), MIGComputeInstance(1, "MIG-b"))),
        MIGGPUInstance(2, (MIGComputeInstance(0, "MIG-c"),)),
    )
    block = Block(node(runtime(), runtime(), mig=partitions(MIGGPU(1, instances))), 1)

    at = DEVICE.offsets["mig"]
    assert block.number("mig_count") == 3
    assert [block.unpack("<I4xII", at + i * MIG.size) for i in range(3)] == [(1, 1, 0), (1, 1, 1), (1, 2, 0)]
    assert [block.raw[at + i * MIG.size + MIG.offsets["uuid"] :][:6] for i in range(3)] == [
        b"MIG-a\0", b"MIG-b\0", b"MIG-c\0",
    ]  # fmt: skip


def refused(state: State) -> str:
    with pytest.raises(ImageError) as caught:
        encode(state)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("nonsense", 1, "nonsense: there is no such value"),
        ("persistence_mode", "on", "persistence_mode: 'on' is none of disabled, enabled"),
        ("pcie.max_link_gen", -1, "pcie.max_link_gen: -1 is not between 0 and 4294967295"),
        ("pcie.max_link_gen", 1 << 32, "pcie.max_link_gen: 4294967296 is not between 0 and 4294967295"),
        ("pcie.max_link_gen", "five", "pcie.max_link_gen: 'five' is no whole number"),
        ("pcie.max_link_gen", Gauge(1, 2), "pcie.max_link_gen: Gauge(base=1, span=2) is no whole number"),
        ("thermal.tlimit.shutdown_c", 1 << 31,
         "thermal.tlimit.shutdown_c: 2147483648 is not between -2147483648 and 2147483647"),
        ("utilization.gpu", Gauge(10, -11),
         "utilization.gpu: reaches -1, which is not between 0 and 9223372036854775807"),
        ("utilization.gpu", Gauge(0, 1 << 46), "utilization.gpu: span 70368744177664 is beyond 70368744177663"),
        ("utilization.gpu", Counter(0, 0, 0),
         "utilization.gpu: Counter(start=0, idle_rate=0, span_rate=0) is no whole number"),
        (ENERGY, Counter(0, -1.0, 0.0), f"{ENERGY}: a counter never falls: its rates must be 0 or more"),
        (ENERGY, Counter(0, 1e30, 0.0), f"{ENERGY}: Counter(start=0, idle_rate=1e+30, span_rate=0.0) is too large"),
        (ENERGY, Counter(0, float("inf"), 0.0), f"{ENERGY}: cannot convert Infinity to integer ratio"),
        ("board_part_number", "x" * 80, f"board_part_number: {'x' * 80!r} is longer than 79 bytes"),
        ("board_part_number", "a\0b", "board_part_number: 'a\\x00b' has a NUL in it"),
        ("board_part_number", 5, "board_part_number: 5 is no text"),
        ("fabric.cluster_uuid", "1234", "fabric.cluster_uuid: '1234' is no UUID of 32 hexadecimal digits"),
        ("fabric.cluster_uuid", 7, "fabric.cluster_uuid: 7 is no UUID"),
        ("serial", Refusal(0), "serial: 0 is no nvmlReturn_t of a refusal"),
    ],
)  # fmt: skip
def test_a_value_that_its_cell_cannot_hold_is_refused_by_key(key: str, value: Value, message: str) -> None:
    assert refused(node(runtime({key: value}))) == f"device 0: {message}"


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (node(*[runtime()] * 65), "devices: 65 are more than 64"),
        (node(runtime(processes=(ProcessSpec(1, "C", "x", 1),) * 257)), "device 0: processes: 257 are more than 256"),
        (node(runtime(processes=(ProcessSpec(1, "X", "x", 1),))),
         "device 0: processes[0].type: 'X' is none of C, G, C+G, M"),
        (node(runtime(processes=(ProcessSpec(1, "C", "x" * 216, 1),))),
         f"device 0: processes[0].name: {'x' * 216!r} is longer than 215 bytes"),
        (node(runtime(processes=(ProcessSpec(-1, "C", "x", 1),))),
         "device 0: processes[0]: argument out of range"),
        (node(runtime(clocks=(ClockTable(1, ()),) * 5)), "device 0: supported_clocks: 5 are more than 4"),
        (node(runtime(clocks=(ClockTable(1, (1,) * 321),))),
         "device 0: supported_clocks[0].graphics: 321 are more than 320"),
        (node(runtime(links=(LinkSpec(True, "switch", ""),) * 37)), "device 0: nvlink.links: 37 are more than 36"),
        (node(runtime(links=(LinkSpec(True, "toaster", ""),))),
         "device 0: nvlink.links[0].remote_device_type: 'toaster' is none of gpu, switch"),
        (node(runtime(links=(LinkSpec(True, "gpu", "", 1),))),
         "device 0: nvlink.links[0].remote_index: 1 is none of the node's 1 GPUs"),
        (node(runtime(load=LoadSpec("wavy"))),
         "device 0: load.pattern: 'wavy' is none of idle, steady, wave, bursty, training, inference"),
        (node(runtime(), roots=(RootComplex("pci0000:00", 0, ("0000:10:00.0",), "0-1280"),)),
         "pcie_topology.root_complexes.cpu_affinity: '0-1280' is not between 0 and 1279"),
        (node(runtime(), roots=(RootComplex("pci0000:00", 0, ("0000:10:00.0",), "all"),)),
         "pcie_topology.root_complexes.cpu_affinity: 'all' is no CPU list such as 0-55,112-167"),
        (node(runtime(), roots=(RootComplex("pci0000:00", 20, ("0000:10:00.0",), ""),)),
         "pcie_topology.root_complexes.numa_node: 20 has no place among 1280 CPUs"),
    ],
    ids=["devices", "processes", "process type", "process name", "pid", "clock tables", "clocks", "links", "link end",
         "link peer", "load", "cpu", "cpu list", "numa node"],
)  # fmt: skip
def test_what_the_image_has_no_room_for_is_refused_by_key(state: State, message: str) -> None:
    assert refused(state) == message


def test_equal_states_give_equal_bytes() -> None:
    def state() -> State:
        load = LoadSpec("training", 10, 95, 60.0, 5)
        links = (LinkSpec(True, "switch", "", 0),) * 18
        each = runtime({ENERGY: Counter(1, 68.0, 600.0), "utilization.gpu": Gauge(0, 100)}, load=load, links=links)
        return node(*[each] * 8, roots=TWO_SOCKETS)

    assert encode(state()) == encode(state())
