"""Every key a profile may have, as shapes.

The device part grows out of the table of cells (`simnode.nvml.cells`): a cell's key is a profile key, its kind gives
the type and its choices the words. Beside them stand the keys that no single cell carries. The keys are those that
existing profiles use (all of them load) and our own: `load`, `fabricmanager`, `imex`, `mig`, `vgpu_guest` and cells of
NVML that no profile named before. Units are the cells'.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from simnode.nvml import layout
from simnode.nvml.cells import CELLS, Cell
from simnode.profile.pci_ports import PORTS
from simnode.profile.shapes import Either, Items, Scalar, Shape, Table

U32 = (1 << 32) - 1
I63 = (1 << 63) - 1
U64 = (1 << 64) - 1

BUS_ID = re.compile(r"(0000)?[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]")
ROOT_ID = re.compile(r"pci(0000)?[0-9a-fA-F]{4}:[0-9a-fA-F]{2}")
UUID = re.compile(r"GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
DRIVER_VERSION = re.compile(r"[0-9]{3}\.[0-9]{2,3}(\.[0-9]{2})?")
DRIVER_FORM = "a driver version such as 550.163.01"

# Cells that State derives from a device's identity, or that other keys add up to.
DERIVED = frozenset(
    [
        "uuid",
        "minor_number",
        "board_id",
        "pci.domain",
        "pci.bus",
        "pci.device",
        "clocks_throttle_reasons.active",
    ]
)
# Words of NVML that are yes or no.
FLAGS = frozenset(
    [
        "multigpu_board",
        "gpu_reset.required",
        "gpu_reset.drain_recommended",
        "ecc.sram.threshold_exceeded",
        "retired_pages.pending_retirement",
        "remapped_rows.pending",
        "remapped_rows.failure_occurred",
        "repair.channel_pending",
        "repair.tpc_pending",
        "repair.unrepairable_memory",
    ]
)
FEATURES = [
    "transformer_engine",
    "fp4_support",
    "fp6_support",
    "fp8_support",
    "confidential_compute",
    "nvlink_c2c",
    "decompression_engine",
    "fifth_gen_tensor_cores",
]
THROTTLE_REASONS = MappingProxyType(
    {  # nvmlClocksEventReason* bits
        "gpu_idle": 0x1,
        "applications_clocks_setting": 0x2,
        "sw_power_cap": 0x4,
        "hw_slowdown": 0x8,
        "sync_boost": 0x10,
        "sw_thermal_slowdown": 0x20,
        "hw_thermal_slowdown": 0x40,
        "hw_power_brake_slowdown": 0x80,
        "display_clocks_setting": 0x100,
    }
)
HEALTH_SUMMARIES = MappingProxyType({"not_supported": 0, "healthy": 1, "unhealthy": 2, "limited_capacity": 3})
MISCONFIGURATIONS = (  # nvmlGpuFabricHealth incorrect configuration, value 0 first
    "not_supported",
    "none",
    "incorrect_sysguid",
    "incorrect_chassis_sn",
    "no_partition",
    "insufficient_nvlinks",
    "incompatible_gpu_fw",
    "invalid_location",
    "gpu_state_invalid",
)
NO_PERMISSION_WORD = "no_permission"  # for a value that the driver tells to none but root
PATTERNS = ("idle", "steady", "wave", "bursty", "training", "inference")
DYNAMIC_PATTERNS = ("idle", "busy", "burst", "steady")
FAILURE_MODES = ("healthy", "lost", "fallen_off_bus", "ecc_uncorrectable")
TOPOLOGY_LEVELS = ("internal", "single", "multiple", "hostbridge", "node", "cpu", "system")
PROCESS_TYPES = ("C", "G", "C+G")
LINK_STATES = ("active", "up", "enabled", "inactive", "down", "disabled")
LINK_REMOTES = ("gpu", "switch", "nvswitch", "cpu", "c2c")

_UNIT_RANGES = {"%": 100, "C": 250, "mW": 100_000_000, "MHz": 65_535, "bit": 1 << 20, "KB/s": U32}
_MOST = {  # members of NVML's structs that are narrower than a word, and what there is room for
    "platform.slot_number": 255,
    "platform.tray_index": 255,
    "platform.host_id": 255,
    "platform.module_id": 255,
    "pcie.max_link_gen": 7,
    "pcie.current_link_gen": 7,
    "pcie.device_max_link_gen": 7,
    "pcie.host_max_link_gen": 7,
    "pcie.max_link_width": 32,
    "pcie.current_link_width": 32,
    "bar1_memory.total_bytes": 1 << 44,  # 64 of them fit below the 52 bits of a GPU's addresses
    "pci.base_class": 255,
    "pci.sub_class": 255,
    "fan.count": 16,
    "mig.max_gpu_instances": layout.MAX_GPU_INSTANCES,
    "retired_pages.single_bit_retirement.count": 64,
    "retired_pages.double_bit_retirement.count": 64,
}


def _count(most: float = U32) -> Scalar:
    return Scalar("int", 0, most)


def _word(*choices: str) -> Scalar:
    return Scalar("word", choices=choices)


def _text(length: int = 255) -> Scalar:
    return Scalar("text", length=length)


def _matching(pattern: re.Pattern[str] | str, expect: str, length: int = 255) -> Scalar:
    return Scalar("text", pattern=re.compile(pattern), expect=expect, length=length)


FLAG = Scalar("flag")
BYTES = _count(I63)
MEGAHERTZ = _count(65_535)
PERCENT = _count(100)
BUS = _matching(BUS_ID, "a PCI bus id such as 0000:1b:00.0")
VERSION = _matching(DRIVER_VERSION, DRIVER_FORM)
_CELSIUS = Scalar("int", -50, 250)
_MILLIWATT = _count(100_000_000)
_SECONDS = Scalar("float", 0.1, 86_400)
_SEED = Scalar("int", -I63 - 1, I63)


def cell_shape(cell: Cell) -> Scalar:
    """What a profile may say for a cell."""
    if cell.kind == "text":
        return _text(cell.length - 1)
    if cell.kind == "guid":
        return _matching(r"[0-9a-fA-F]{1,32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "a UUID")
    if cell.key == "fabric.state":
        return _word(*cell.choices, "auto")
    if cell.key == "fabric.health_summary":
        return _word(*HEALTH_SUMMARIES, "auto")
    if cell.key == "power_smoothing.mode":
        return _word(*cell.choices, NO_PERMISSION_WORD)
    if cell.choices:
        return _word(*cell.choices)
    if cell.key in FLAGS:
        return FLAG
    if cell.kind == "int":
        return Scalar("int", -1000, 1000)
    widest = U64 if cell.kind == "wide" else I63 if cell.kind in ("gauge", "counter") else U32
    most = min(_MOST.get(cell.key, widest), _UNIT_RANGES.get(cell.unit, widest), widest)
    return Scalar("int", 0, most, spelled=cell.key.startswith("fan."))


CLOCKS = Either(
    Items(MEGAHERTZ, layout.MAX_GRAPHICS_CLOCKS),
    Table(
        {"from": Scalar("float", 0, 65_535), "to": Scalar("float", 0, 65_535), "step": Scalar("float", 0.5, 10_000)},
        ("from", "to", "step"),
    ),
)
LOAD = Table(
    {"pattern": _word(*PATTERNS), "min": PERCENT, "max": PERCENT, "period_s": _SECONDS, "seed": _SEED},
)
DYNAMIC_METRICS = Table(
    {
        "seed": _SEED,
        "temperature": Table(
            {"base_c": _CELSIUS, "variance_c": _count(250), "ramp_c": _count(250), "ramp_period_sec": _SECONDS}
        ),
        "power": Table({"base_mw": _MILLIWATT, "variance_mw": _MILLIWATT}),
        "utilization": Table(
            {
                "pattern": _word(*DYNAMIC_PATTERNS),
                "gpu_min": PERCENT,
                "gpu_max": PERCENT,
                "memory_min": PERCENT,
                "memory_max": PERCENT,
                "burst_period_sec": _SECONDS,
            }
        ),
    }
)
FAILURE = Table(
    {
        "mode": _word(*FAILURE_MODES),
        "probability": Scalar("float", 0, 1),
        "after_calls": _count(),
        "seed": _SEED,
        "xid": Table({"code": _count()}),
        "injection": _count(I63),
    }
)
PROCESS = Table(
    {
        "pid": Scalar("int", 1, (1 << 31) - 1),
        "type": _word(*PROCESS_TYPES),
        "name": _text(4096),
        "used_memory_mib": _count(I63 >> 20),
        "sm_util": PERCENT,
        "mem_util": PERCENT,
        "enc_util": PERCENT,
        "dec_util": PERCENT,
    },
    ("pid",),
)
_HEALTH = dict.fromkeys(("degraded_bandwidth", "degraded_bw", "route_recovery", "route_unhealthy"), FLAG)
_ADDRESSES = Items(Scalar("text", length=32, expect="an address"))

# Keys of a device that are no cell, by dotted key.
_OTHER_DEVICE_KEYS: dict[str, Shape] = {
    "memory.free_bytes": BYTES,
    "bar1_memory.free_bytes": BYTES,
    "power.management_supported": FLAG,
    "power.power_state": _text(),
    "fan.target_speed_percent": Scalar("int", 0, 100, spelled=True),
    **{f"clocks_throttle_reasons.{reason}": FLAG for reason in THROTTLE_REASONS},
    "supported_clocks.memory_clocks": Items(
        Table({"freq_mhz": MEGAHERTZ, "graphics_clocks": CLOCKS}, ("freq_mhz", "graphics_clocks")),
        layout.MAX_MEMORY_CLOCKS,
    ),
    "retired_pages.single_bit_retirement.addresses": _ADDRESSES,
    "retired_pages.double_bit_retirement.addresses": _ADDRESSES,
    "retired_pages.pending_blacklist": FLAG,
    "driver_model.current": _text(),
    "driver_model.pending": _text(),
    "virtualization.host_vgpu_mode": _text(),
    **{f"features.{feature}": FLAG for feature in FEATURES},
    "grace_superchip.enabled": FLAG,
    "grace_superchip.cpu_cores": _count(),
    "grace_superchip.cpu_memory_gb": _count(),
    "grace_superchip.coherent_memory": FLAG,
    "topology.default_level": _word(*TOPOLOGY_LEVELS),
    "gpm.supported": FLAG,
    "fabric.health": Table(
        {
            **_HEALTH,
            "access_timeout_recovery": FLAG,
            "incorrect_configuration": _word(*MISCONFIGURATIONS),
            "partition_assigned": FLAG,
        }
    ),
    "nvlink_error.rate": Scalar("float", 0, 1e9),
    "nvlink_error.links": Items(_count(layout.MAX_LINKS - 1), layout.MAX_LINKS),
    "processes": Items(PROCESS, layout.MAX_PROCESSES),
    "dynamic_metrics": DYNAMIC_METRICS,
    "failure": FAILURE,
    "load": LOAD,
}
# Keys that only an entry of `devices` has: what makes the device this one.
_IDENTITY_KEYS: dict[str, Shape] = {
    "index": _count(layout.MAX_DEVICES - 1),
    "uuid": _matching(UUID, "a UUID such as GPU-8c1f2e70-3b5d-4a96-b0d2-57e13f4c9a68"),
    "minor_number": _count(254),  # 255 is nvidiactl's
    "pci.bus_id": BUS,
    "grace_cpu_pair": _count(),
    "vgpu_guest": Table({"host_driver_version": _text(10), "host_driver_branch": _text(10)}, ("host_driver_version",)),
}


def _nested(flat: dict[str, Shape]) -> Table:
    tables: dict[str, dict[str, Shape]] = {}
    keys: dict[str, Shape] = {}
    for key, shape in flat.items():
        name, _, rest = key.partition(".")
        if rest:
            tables.setdefault(name, {})[rest] = shape
        else:
            keys[name] = shape
    return Table({**keys, **{name: _nested(table) for name, table in tables.items()}})


_DEFAULT_KEYS: dict[str, Shape] = {
    **{cell.key: cell_shape(cell) for cell in CELLS if cell.key not in DERIVED},
    **_OTHER_DEVICE_KEYS,
}
DEVICE_DEFAULTS: Table = _nested(_DEFAULT_KEYS)
DEVICE: Table = _nested({**_DEFAULT_KEYS, **_IDENTITY_KEYS})

_LINK = Table(
    {
        "link": _count(layout.MAX_LINKS - 1),
        "state": _word(*LINK_STATES),
        "remote_device_type": _word(*LINK_REMOTES),
        "remote_pci_bus_id": BUS,
        "remote_index": Scalar("int", -1, 255),
    },
    ("link",),
)
_LINKS = Items(_LINK, layout.MAX_LINKS)
NVLINK = Table(
    {
        "version": _count(8),
        "links_per_gpu": _count(layout.MAX_LINKS),
        "bandwidth_per_link_mbps": _count(),
        "c2c_enabled": FLAG,
        "links": _LINKS,
        "switches": Items(
            Table({"bdf": BUS, "uuid": _text(), "device_id": _count(), "subsystem_id": _count()}, ("bdf",)), 64
        ),
        "remote_switches": _count(64),
        "defaults": Table(
            {
                "state": _word(*LINK_STATES),
                "duty_cycle": Scalar("float", 0, 1),
                "counter_seed": _SEED,
                "error_rate": Scalar("float", 0, 1e9),
            }
        ),
        "device_links": Items(
            Table({"index": _count(layout.MAX_DEVICES - 1), "links": _LINKS}, ("index", "links")), layout.MAX_DEVICES
        ),
    }
)
PCIE_TOPOLOGY = Table(
    {
        "root_complexes": Items(
            Table(
                {
                    "id": _matching(ROOT_ID, "a PCI root such as pci0000:00"),
                    "numa_node": Scalar("int", -1, 63),
                    "devices": Items(BUS, layout.MAX_DEVICES),
                    "bridges": Items(
                        Table({"bdf": BUS, "port": _word(*PORTS), "bus": _count(255)}, ("bdf", "port", "bus")), 256
                    ),
                    "cpu_affinity": _matching(
                        r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*", "CPUs such as 0-55,112-167"
                    ),
                },
                ("id",),
            ),
            layout.MAX_DEVICES,
        ),
        "cores_per_numa": Scalar("int", 1, 1024),
    }
)
INFINIBAND = Table(
    {
        "enabled": FLAG,
        "hca_count": _count(64),
        "hcas_per_gpu": _count(16),
        "hca_type": _matching(r"[A-Za-z0-9_.-]+", "an adapter type such as MT4129"),
        "fw_version": _text(63),
        "hw_rev": _text(15),
        "board_id": _text(31),
        "node_desc_template": _text(63),
        "link_layer": _word("InfiniBand", "Ethernet"),
        "rate_gbps": _count(10_000),
        "port_state": _word("DOWN", "INIT", "ARMED", "ACTIVE"),
        "phys_state": _word("Sleep", "Polling", "Disabled", "LinkUp", "LinkErrorRecovery"),
        "guid_prefix": _matching(r"[0-9a-fA-F]{1,6}(:[0-9a-fA-F]{1,4}){0,3}", "a GUID's start such as a088c2:0300:ab"),
    }
)
STATE_DIR = _matching(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._+@-]+)+", "an absolute path without . or ..")
_MAJOR = Scalar("int", 1, 4095)
DRIVER_MAJORS = MappingProxyType({195: "nvidia", 510: "nvidia-uvm"})
"""The majors that the GPUs' own device files have."""
MIG = Table(
    {
        "caps_major": _MAJOR,
        "gpus": Items(
            Table(
                {
                    "index": _matching(r"all|[0-9]|[1-5][0-9]|6[0-3]", "a GPU's index, or all"),
                    "mode": _word("disabled", "enabled"),
                    "gpu_instances": Items(
                        Table(
                            {
                                "profile": _text(31),
                                "count": Scalar("int", 1, 7),
                                "placement": _count(7),
                                "compute_instances": Items(_text(31), 7),
                            },
                            ("profile",),
                        ),
                        7,
                    ),
                }
            ),
            layout.MAX_DEVICES + 1,
        ),
    }
)
_SOFTWARE = Table(
    {
        "url": _matching(r"(https?|file)://[!-~]+", "a URL of https, http or file", 2047),
        "sha256": _matching(r"[0-9a-f]{64}", "a SHA-256: 64 digits of 0-9 and a-f"),
    }
)
PROFILE = Table(
    {
        "version": _matching(r"1(\.[0-9]+)?", "a schema version that is known: 1.0"),
        "system": Table(
            {
                "driver_version": VERSION,
                "loaded_version": VERSION,
                "nvml_version": _matching(r"[0-9]{2}\.[0-9]{3}(\.[0-9]{2,3}){0,2}", "a version such as 12.550.163.01"),
                "cuda_version": _matching(r"[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]+)?", "a CUDA version such as 12.4"),
                "cuda_version_major": Scalar("int", 1, 99),
                "cuda_version_minor": Scalar("int", 0, 99),
                "num_devices": _count(layout.MAX_DEVICES),
            }
        ),
        "device_defaults": DEVICE_DEFAULTS,
        "devices": Items(DEVICE, layout.MAX_DEVICES),
        "nvlink": NVLINK,
        "pcie_topology": PCIE_TOPOLOGY,
        "infiniband": INFINIBAND,
        "dynamic_metrics_defaults": DYNAMIC_METRICS,
        "fabricmanager": Table({"enabled": FLAG, "state_dir": STATE_DIR}),
        "imex": Table(
            {
                "enabled": FLAG,
                "imex_major": _MAJOR,
                "caps_major": _MAJOR,
                "channels": Scalar("int", 1, 2048),
                "software": _SOFTWARE,
            }
        ),
        "mig": MIG,
    },
    ("version",),
)
_NODE_SECTIONS = ("system", "nvlink", "pcie_topology", "infiniband", "fabricmanager", "imex", "mig")
NODE_SECTIONS = Table({name: PROFILE.keys[name] for name in _NODE_SECTIONS})
TOPOLOGY = Table(
    {
        "version": Scalar("int", 1, 1),
        "domains": Items(
            Table(
                {
                    "name": _text(),
                    "uuid": _matching(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "a UUID"),
                    "cliques": Items(Table({"id": _count(), "nodes": Items(_text(253))}, ("id",))),
                },
                ("uuid",),
            )
        ),
    },
    ("version",),
)
