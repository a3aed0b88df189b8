"""What -q is asked about and in which forms, and how two programs' answers are compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from simnode.state import Refusal, State, Value
from tests.smi.conftest import OURS, Screen, Smi
from tests.smi.nodes import change, node, process, reading, running

BUILT = Smi(OURS)
"""Our nvidia-smi as it is shipped."""
FORMS = {"lines": ("-q",), "xml": ("-q", "-x")}
SECTIONS = (
    "MEMORY,UTILIZATION,ECC,TEMPERATURE,POWER,CLOCK,COMPUTE,PIDS,PERFORMANCE,SUPPORTED_CLOCKS,PAGE_RETIREMENT,ACCOUNTING,"
    "ENCODER_STATS,SUPPORTED_GPU_TARGET_TEMP,VOLTAGE,FBC_STATS,ROW_REMAPPER,RESET_STATUS,GSP_FIRMWARE_VERSION"
)
STAMP = re.compile(r"(?<=^Timestamp {33}: ).*$|(?<=<timestamp>).*(?=</timestamp>)", re.MULTILINE)
# A bus id that is not supported is, in the real program, whatever lies on its stack.
NO_BUS_ID = re.compile(r'^(GPU |\t<gpu id=")(?![0-9A-F]{8}:).*?\n(?=    |\t\t<)', re.MULTILINE | re.DOTALL)

COUNTS: dict[str, Value] = {
    "ecc.sram.aggregate.correctable": 7,
    "ecc.sram.volatile.uncorrectable_parity": 2,
    "ecc.sram.volatile.uncorrectable_secded": 5,
    "ecc.sram.uncorrectable_sources.sm": 4,
    "ecc.sram.threshold_exceeded": 1,
    "ecc.errors.volatile.single_bit.device_memory": 2**64 - 1,
    "ecc.errors.aggregate.double_bit.l2_cache": 3,
    "ecc.errors.aggregate.double_bit.total": 9,
    "remapped_rows.correctable": 1,
    "remapped_rows.uncorrectable": 2,
    "remapped_rows.pending": 1,
    "remapped_rows.failure_occurred": 1,
}
RETIRED: dict[str, Value] = {
    "retired_pages.single_bit_retirement.count": 3,
    "retired_pages.double_bit_retirement.count": 0,
    "retired_pages.pending_retirement": 1,
}
ABSOLUTE: dict[str, Value] = {"thermal.tlimit.reference_c": Refusal(3), "thermal.memory_max_c": 95}
PLENTY: dict[str, Value] = {
    "capabilities": 1,
    "c2c.mode": 1,
    "fan.speed_percent": 30,
    "pcie.atomic_caps_inbound": 0,
    "pcie.atomic_caps_outbound": 0x7F,
    "pcie.host_max_link_gen": 5,
    "thermal.target_temperature_c": 80,
    "power.module.average_draw_mw": 467170,
    "power.module.enforced_limit_mw": 2500000,
}


def _each(key: str, more: dict[str, Value] | None = None, count: int = 20) -> State:
    """A GPU for each value of a cell."""
    state = node(count)
    for gpu in range(count):
        state = change(state, {key: gpu} | (more or {}), gpu)
    return state


def _reasons() -> State:
    state = node(3)
    for gpu, (active, supported) in enumerate(((0xFFFF, 0), (0xFFFF, 0x55), (0, 0xFFFF))):
        values: dict[str, Value] = {
            "clocks_throttle_reasons.active": active,
            "clocks_throttle_reasons.supported": supported,
        }
        state = change(state, values, gpu)
    return state


MORE: dict[str, Callable[[], State]] = {
    "error-counts": partial(reading, COUNTS),
    "error-counts-turing": partial(reading, COUNTS | RETIRED | {"architecture": 6}),
    "error-counts-by-location": partial(reading, COUNTS | {"architecture": 5}),
    "retired-pages": partial(reading, RETIRED),
    "absolute-thresholds": partial(reading, ABSOLUTE),
    "plenty": partial(reading, PLENTY),
    "reasons": _reasons,
    "awkward-names": partial(running, process(5, name="a<b>&\"c'\n\x01é"), process(6, name="&" * 200)),
    "fabric-health": partial(_each, "fabric.health_mask", {"fabric.state": 3}),
    "fabric-status": partial(_each, "fabric.status"),
    **{
        key: partial(_each, key)
        for key in ("brand", "fabric.state", "virtualization.mode", "gpu_operation_mode.current", "addressing_mode")
    },
    "architecture": partial(_each, "architecture", count=13),
}
"""What the table does not show, by the name of the condition."""


def timeless(screen: Screen) -> Screen:
    """The screen without what may differ."""
    return Screen(screen.code, NO_BUS_ID.sub(r"\1?\n", STAMP.sub("", screen.output, count=1)), screen.errors)


def same(ours: Smi, real: Smi, image: Path, *arguments: str) -> None:
    """Both leave the same behind. In a time zone of its own: a moment is told in it."""
    mine, theirs = (timeless(smi.run(*arguments, image=image, zone="Asia/Kolkata")) for smi in (ours, real))
    assert mine == theirs
