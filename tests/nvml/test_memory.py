"""The encoder's memory: what it leaves out, it would have made the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simnode.nvml.encode import Memory, encode
from simnode.profile import Options, compile_state, load_board
from simnode.state import Facts, State
from tests.examples import examples

BOARD = load_board("h100")
CHANGES = [
    (),
    ("thermal.temperature_gpu_c=91",),
    ("thermal.temperature_gpu_c=null",),
    ("thermal.temperature_gpu_c=N/A", "serial=A"),
    ("serial=0123456789",),
    ("failure.mode=lost",),
    ("load={pattern: wave, min: 10, max: 90}",),
    ("processes=[{pid: 7, name: a}]",),
    ("nvlink.version=3",),
    ("fabric.state=auto",),
    ("power.current_draw_mw=300000", "utilization.gpu=99"),
    ("ecc.mode_current=disabled",),
    ("fabric.cluster_uuid=00000000-0000-0000-0000-00000000000b",),
]
STATES: list[State] = [
    compile_state(BOARD, Options(gpus=gpus, overrides=change), {}) for change in CHANGES for gpus in (1, 3)
]


@given(st.lists(st.tuples(st.sampled_from(STATES), st.booleans()), min_size=2, max_size=6))
@examples(50)
def test_it_changes_no_byte(sequence: list[tuple[State, bool]]) -> None:
    memory = Memory()
    for state, ready in sequence:
        facts = Facts.of(fabric_ready=ready)
        assert encode(state, facts, memory) == encode(state, facts)
