"""How the image lies in memory: records, their members, offsets, and the C header that says the same.

The image is one preallocated file: a header, two *slots* (each a whole copy of every value) and an event ring. A
publish writes the slot that is not in use and then flips; a reader copies what it needs and checks that the slot was
not being rewritten meanwhile. Scalars lie at their natural alignment and records at 8 bytes, here and in C alike.

Standard library only: the build runs this before anything is installed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

FORMAT = 1
MAGIC = 0x454D4944_4F4E4D53  # "SMNODIME" in memory order

MAX_DEVICES = 64
MAX_LINKS = 36  # NVML_NVLINK_MAX_LINKS since 610; 18 before
MAX_MIG_DEVICES = 8
MAX_MIG_PROFILES = 12  # no board has more
MAX_GPU_INSTANCES = 8
MAX_COMPUTE_PROFILES = 5
MAX_PROCESSES = 256
MAX_MEMORY_CLOCKS = 4
MAX_GRAPHICS_CLOCKS = 320
MAX_EVENTS = 1024
CPU_WORDS = 20  # 1280 CPUs: what nvidia-smi asks for
CURVE_SEGMENTS = 32
EPOCHS = 64  # identities of one index that a process can tell apart
IMAGE_NAME = f"image.{FORMAT}"

SCALARS = {"u8": 1, "char": 1, "u16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8}
C_SCALARS = {
    "u8": "uint8_t",
    "char": "char",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "i32": "int32_t",
    "u64": "uint64_t",
    "i64": "int64_t",
}


@dataclass(frozen=True)
class Member:
    """One member of a record: a scalar's or a record's name, and how many of them in a row."""

    name: str
    kind: str
    count: int = 1


@dataclass(frozen=True)
class Record:
    """A C struct. Scalars lie at their natural alignment, everything else at 8; the size is a multiple of 8."""

    name: str
    members: tuple[Member, ...]
    comment: str = ""
    records: dict[str, Record] = field(default_factory=dict, compare=False, repr=False)

    def size_of(self, kind: str) -> int:
        """Bytes of one `kind`, a scalar or a record known to this one."""
        return SCALARS[kind] if kind in SCALARS else self.records[kind].size

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Bytes from the start of the record, by member."""
        offsets: dict[str, int] = {}
        at = 0
        for member in self.members:
            align = SCALARS.get(member.kind, 8)
            at = (at + align - 1) // align * align
            offsets[member.name] = at
            at += self.size_of(member.kind) * member.count
        offsets[""] = (at + 7) // 8 * 8
        return offsets

    @property
    def size(self) -> int:
        """Bytes of the whole record, padding included."""
        return self.offsets[""]

    def header(self) -> str:
        """The C definition, with assertions that the compiler lays it out as this class does."""
        lines = [f"/* {self.comment} */"] if self.comment else []
        lines.append(f"struct sn_{self.name} {{")
        for member in self.members:
            kind = C_SCALARS.get(member.kind, f"struct sn_{member.kind}")
            array = f"[{member.count}]" if member.count > 1 else ""
            lines.append(f"    {kind} {member.name}{array};")
        lines.append("} __attribute__((aligned(8)));")
        lines.append(f'_Static_assert(sizeof(struct sn_{self.name}) == {self.size}, "layout");')
        last = self.members[-1].name
        lines.append(f'_Static_assert(offsetof(struct sn_{self.name}, {last}) == {self.offsets[last]}, "layout");')
        return "\n".join(lines) + "\n"


RECORDS: dict[str, Record] = {}


def record(name: str, comment: str, *members: tuple[str, str] | tuple[str, str, int]) -> Record:
    """Declare a record from (name, kind[, count]) tuples and remember it under its name."""
    made = Record(name, tuple(Member(*member) for member in members), comment, RECORDS)
    RECORDS[name] = made
    return made


WORD = record("word", "a value of 4 bytes or less with its nvmlReturn_t", ("value", "u32"), ("status", "u32"))
WIDE = record("wide", "a value of 8 bytes", ("value", "u64"), ("status", "u32"))
GUID = record("guid", "16 raw bytes", ("value", "u8", 16), ("status", "u32"))
GAUGE = record(
    "gauge",
    "base + span * load / 65536, rounded; span 0 reads no clock",
    ("base", "i64"),
    ("span", "i64"),
    ("status", "u32"),
)
COUNTER = record(
    "counter",
    "never falls: the old rule up to tick `anchor`, the new rule from there on; rates are 2^-48 units a ns and, for "
    "the load's part, 2^-48 units per unit of the curve's integral. start, idle_rate, span_rate: what the State asks",
    ("start", "u64"),
    ("idle_rate", "u64"),
    ("span_rate", "u64"),
    ("anchor", "u64"),
    ("value", "u64"),
    ("old_anchor", "u64"),
    ("old_value", "u64"),
    ("old_idle_rate", "u64"),
    ("old_span_rate", "u64"),
    ("status", "u32"),
)
CURVE = record(
    "curve",
    "load over time, 0 … 65536, periodic and piecewise linear: phase = low 64 bits of t * inverse_period, whole "
    "periods = high 64 bits; cumulative is the integral at each knot in 2^-32 segments of full load",
    ("inverse_period", "u64"),
    ("knot", "u32", CURVE_SEGMENTS + 1),
    ("cumulative", "u64", CURVE_SEGMENTS + 1),
)
CLOCKS = record(
    "clocks",
    "one supported memory clock and its graphics clocks, MHz, fastest first",
    ("memory_mhz", "u32"),
    ("count", "u32"),
    ("graphics_mhz", "u16", MAX_GRAPHICS_CLOCKS),
)
PROCESS = record(
    "process",
    "a process on the GPU; type: 1 compute, 2 graphics, 4 MPS client; ids 0xffffffff where there is no instance",
    ("pid", "u32"),
    ("type", "u32"),
    ("used_bytes", "u64"),
    ("gpu_instance", "u32"),
    ("compute_instance", "u32"),
    ("sm_util", "u32"),
    ("mem_util", "u32"),
    ("enc_util", "u32"),
    ("dec_util", "u32"),
    ("name", "char", 216),
)
LINK = record(
    "link",
    "one NVLink; remote_type is nvmlIntNvLinkDeviceType_t",
    ("present", "u32"),
    ("active", "u32"),
    ("version", "u32"),
    ("speed_mbps", "u32"),
    ("remote_type", "u32"),
    ("remote_domain", "u32"),
    ("remote_bus", "u32"),
    ("remote_device", "u32"),
    ("remote_device_id", "u32"),
    ("remote_link", "u32"),
    ("replay_errors", "u64"),
    ("recovery_errors", "u64"),
    ("crc_errors", "u64"),
    ("tx_kib", "counter"),
    ("rx_kib", "counter"),
)
MIG_COMPUTE = record(
    "mig_compute",
    "a kind of compute instance in a kind of GPU instance: number is nvml.h's, and nvidia-smi's id",
    ("number", "u8"),
    ("slices", "u8"),
    ("instances", "u8"),
    ("placement_count", "u8"),
    ("multiprocessors", "u16"),
    ("placement", "u8", 8),
)
MIG_PROFILE = record(
    "mig_profile",
    "a kind of GPU instance of the board: number is nvml.h's, id nvidia-smi's; remaining is how many still fit",
    ("present", "u16"),
    ("number", "u16"),
    ("id", "u16"),
    ("slices", "u16"),
    ("instances", "u16"),
    ("remaining", "u16"),
    ("multiprocessors", "u16"),
    ("copy_engines", "u16"),
    ("decoders", "u16"),
    ("encoders", "u16"),
    ("jpegs", "u16"),
    ("ofas", "u16"),
    ("graphics", "u16"),
    ("size", "u16"),
    ("placement_count", "u8"),
    ("compute_count", "u8"),
    ("memory_mb", "u32"),
    ("placement", "u8", 8),
    ("name", "char", 24),
    ("compute", "mig_compute", MAX_COMPUTE_PROFILES),
)
GPU_INSTANCE = record(
    "gpu_instance",
    "a GPU instance; profile is its number, remaining how many of each of its compute profiles still fit",
    ("present", "u32"),
    ("id", "u32"),
    ("profile", "u32"),
    ("start", "u32"),
    ("size", "u32"),
    ("remaining", "u32", MAX_COMPUTE_PROFILES),
)
MIG = record(
    "mig",
    "one MIG device of the GPU, a compute instance, in the order of nvmlDeviceGetMigDeviceHandleByIndex; the profiles "
    "are numbers",
    ("present", "u32"),
    ("epoch", "u32"),
    ("gpu_instance", "u32"),
    ("compute_instance", "u32"),
    ("gpu_profile", "u32"),
    ("compute_profile", "u32"),
    ("multiprocessors", "u32"),
    ("copy_engines", "u32"),
    ("decoders", "u32"),
    ("encoders", "u32"),
    ("jpegs", "u32"),
    ("ofas", "u32"),
    ("gpu_slices", "u32"),
    ("compute_slices", "u32"),
    ("compute_start", "u32"),
    ("memory_total_bytes", "u64"),
    ("memory_reserved_bytes", "u64"),
    ("memory_used_bytes", "u64"),
    ("bar1_total_bytes", "u64"),
    ("name", "char", 96),
    ("uuid", "char", 96),
)
EVENT = record(
    "event",
    "one event: valid while sequence is the number it was written under (from 1)",
    ("sequence", "u64"),
    ("type", "u64"),
    ("data", "u64"),
    ("device", "u32"),
    ("epoch", "u32"),
    ("gpu_instance", "u32"),
    ("compute_instance", "u32"),
)
