"""Runtime changes of the overrides, and the file that keeps them."""

from __future__ import annotations

import fcntl
import resource
import signal
import threading
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.profile import Compiler, Options, Overrides, ProfileError, load_overrides, load_text
from simnode.profile.changes import Target, assign, clear, inject, reset
from simnode.profile.document import Node, load, plain
from simnode.profile.overrides import assignments
from simnode.profile.schema import NODE_SECTIONS
from simnode.profile.store import OverrideStore
from simnode.profile.writing import replace_file, written
from tests.examples import examples
from tests.profile.documents import SMALL, readings

TEXTS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | TEXTS
    | st.sampled_from(
        ["0123", "1e5", "0x1F", "0o17", "null", "~", "yes", "N/A", "0000:07:00.0", "- a", "a: b", "#", ""]
    )
)
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))


def node_of(value: object) -> Node:
    if isinstance(value, dict):
        return Node({key: node_of(child) for key, child in value.items()}, "")
    if isinstance(value, list):
        return Node(tuple(map(node_of, value)), "")
    assert value is None or isinstance(value, (bool, int, float, str))
    return Node(value, "")


@given(st.dictionaries(TEXTS, TREES, min_size=1, max_size=4))
@examples(50)
def test_what_is_written_reads_the_same(tree: dict[str, object]) -> None:
    read = plain(load(written(node_of(tree)), "o.yaml").root)
    assert repr(read) == repr(tree)


def patched(*texts: str) -> Node:
    return assignments(texts, "set")


KEYS = st.sampled_from(["utilization.gpu=1", "utilization.gpu=2", "thermal.temperature_gpu_c=40", "ecc=null", "fan="])
TARGETS: st.SearchStrategy[Target] = st.sampled_from(["all", 0, 1])


@given(st.lists(st.tuples(TARGETS, KEYS), max_size=6))
@examples(50)
def test_any_changes_compile_as_a_fresh_reading_of_their_file_does(changes: list[tuple[Target, str]]) -> None:
    document = load_text(SMALL.encode(), "p.yaml")
    compiler, overrides = Compiler(document, Options(), {}), Overrides()
    for target, text in changes:
        overrides = assign(overrides, target, patched(text))
        state = compiler.compile(overrides)
        again = load_overrides(load(written(_tree(overrides)), "o.yaml"))
        assert state == Compiler(document, Options(), {}).compile(again)


def _tree(overrides: Overrides) -> Node:
    devices = {str(index): node for index, node in overrides.devices.items()}
    return Node({"all": overrides.all, "devices": Node(devices, "")}, "")


def test_a_change_of_one_device_leaves_the_others_the_very_same() -> None:
    compiler = Compiler(load_text(SMALL.encode(), "p.yaml"), Options(), {})
    before = compiler.compile().runtime.devices
    after = compiler.compile(assign(Overrides(), 1, patched("utilization.gpu=9"))).runtime.devices
    assert after[0] is before[0]
    assert dict(after[1].values)["utilization.gpu"] == 9


def test_reset_takes_back_what_was_set() -> None:
    overrides = assign(
        assign(Overrides(), "all", patched("utilization.gpu=1")), 1, patched("utilization.gpu=2", "fan=")
    )
    assert not reset(overrides, None, ())
    assert not reset(overrides, "all", ())
    assert list(reset(overrides, 1, ()).devices) == []
    assert plain(reset(overrides, "all", ("utilization.gpu",)).devices[1]) == {"fan": None}


def test_the_nodes_own_sections_beat_options_and_environment() -> None:
    document = load_text(SMALL.encode(), "p.yaml")
    compiler = Compiler(document, Options(gpus=3, driver_version="535.104.05"), {"SIMNODE_IMEX": "false"})
    sections = assignments(
        ("system.num_devices=5", "system.driver_version=580.65.06", "imex.enabled=true"), "set", NODE_SECTIONS
    )
    state = compiler.compile(assign(Overrides(), "node", sections))
    assert (len(state.devices), state.software.driver_version, state.imex.enabled) == (5, "580.65.06", True)
    assert state.software.cuda_version == "13.0"
    assert len(compiler.compile().devices) == 3


def test_the_nodes_own_sections_are_checked_together() -> None:
    text = SMALL + "mig: {gpus: [{index: 0, gpu_instances: []}]}\n"
    compiler = Compiler(load_text(text.encode(), "p.yaml"), Options(), {})
    twice = assignments(
        ("mig.gpus=[{index: 1, gpu_instances: []}, {index: 1, gpu_instances: []}]",), "set", NODE_SECTIONS
    )
    with pytest.raises(ProfileError, match=r"is already that of mig\.gpus"):
        compiler.compile(assign(Overrides(), "node", twice))


def test_an_injected_fault_is_in_force_whatever_the_profile_waits_for() -> None:
    text = SMALL.replace("architecture: ampere", "failure: {mode: lost, after_calls: 3}\n  architecture: ampere")
    compiler = Compiler(load_text(text.encode(), "p.yaml"), Options(), {})
    assert [device.lost for device in compiler.compile().runtime.devices] == [0, 0]
    state = compiler.compile(inject(Overrides(), 1, "fallen_off_bus", 79, 5))
    assert [device.lost for device in state.runtime.devices] == [0, 15]
    assert [(event.number, event.data) for event in state.runtime.devices[1].events] == [(5, 79)]


@pytest.mark.parametrize(
    "base", ["{mode: fallen_off_bus, xid: {code: 79}, injection: 4}", "{mode: lost, after_calls: 3}"]
)
@pytest.mark.parametrize("injected", [None, 1, "all"])
def test_a_mode_that_is_set_replaces_the_whole_failure(base: str, injected: Target | None) -> None:
    text = SMALL.replace("architecture: ampere", f"failure: {base}\n  architecture: ampere")
    compiler = Compiler(load_text(text.encode(), "p.yaml"), Options(), {})
    before = Overrides() if injected is None else inject(Overrides(), injected, "ecc_uncorrectable", 48, 5)
    device = compiler.compile(assign(before, 1, patched("failure.mode=lost"))).runtime.devices[1]
    assert (device.lost, device.events) == (15, ())
    device = compiler.compile(assign(before, 1, patched("failure.xid.code=31", "failure.mode=lost"))).runtime.devices[1]
    assert (device.lost, [event.data for event in device.events]) == (15, [31])


def test_the_mode_of_an_option_replaces_the_whole_failure_of_the_profile() -> None:
    text = SMALL.replace(
        "architecture: ampere", "failure: {mode: lost, after_calls: 3, xid: {code: 79}}\n  architecture: ampere"
    )
    state = Compiler(load_text(text.encode(), "p.yaml"), Options(overrides=("failure.mode=lost",)), {}).compile()
    assert [(device.lost, device.events) for device in state.runtime.devices] == [(15, ())] * 2


def test_what_is_set_beside_a_mode_keeps_it() -> None:
    compiler = Compiler(load_text(SMALL.encode(), "p.yaml"), Options(), {})
    failing = inject(Overrides(), 1, "fallen_off_bus", 79, 5)
    device = compiler.compile(assign(failing, 1, patched("failure.xid.code=31"))).runtime.devices[1]
    assert (device.lost, [event.data for event in device.events]) == (15, [31])


@pytest.mark.parametrize(
    ("block", "xids"),
    [
        ("{mode: lost, xid: {code: 79}}", [79]),
        ("{mode: healthy, xid: {code: 79}}", []),
        ("{xid: {code: 31}}", [31]),
        ("{mode: lost, after_calls: 2, xid: {code: 79}}", []),
        ("{mode: lost}", []),
    ],
)
def test_the_xid_of_a_failure_block_is_in_force_when_the_failure_is(block: str, xids: list[int]) -> None:
    text = SMALL.replace("architecture: ampere", f"failure: {block}\n  architecture: ampere")
    state = Compiler(load_text(text.encode(), "p.yaml"), Options(), {}).compile()
    assert [event.data for event in state.runtime.devices[0].events] == xids


def test_clearing_cancels_what_lies_below_and_forgets_what_does_not() -> None:
    failing = inject(Overrides(), "all", "lost", None, 1)
    cancelled = clear(failing, 1, below=False)
    assert plain(cancelled.devices[1]) == {"failure": None}
    assert not clear(inject(Overrides(), 1, "lost", None, 1), 1, below=False)
    assert plain(clear(Overrides(), "all", below=True).all) == {"failure": None}
    assert list(inject(cancelled, "all", "lost", None, 2).devices) == []


def test_a_store_starts_empty_and_keeps_what_is_put_into_it(tmp_path: Path) -> None:
    store = OverrideStore(tmp_path / "deep/overrides.yaml")
    assert not store.load()
    store.update(lambda old: assign(old, 1, patched("utilization.gpu=9")))
    assert plain(OverrideStore(store.path).load().devices[1]) == {"utilization": {"gpu": 9}}
    assert sorted(path.name for path in store.path.parent.iterdir()) == ["overrides.yaml", "overrides.yaml.lock"]


def test_an_update_that_raises_changes_nothing(tmp_path: Path) -> None:
    store = OverrideStore(tmp_path / "overrides.yaml")
    store.update(lambda old: assign(old, 1, patched("utilization.gpu=9")))
    before = store.path.read_bytes()

    def refuse(_: Overrides) -> Overrides:
        raise ProfileError(())

    with pytest.raises(ProfileError):
        store.update(refuse)
    assert store.path.read_bytes() == before


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    def write(index: int) -> None:
        store = OverrideStore(tmp_path / "overrides.yaml")
        for value in range(20):
            patch = patched(f"utilization.gpu={value}")
            store.update(partial(assign, target=index, patch=patch))

    writers = [threading.Thread(target=write, args=(index,)) for index in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    kept = OverrideStore(tmp_path / "overrides.yaml").load()
    assert [plain(kept.devices[index]) for index in range(4)] == [{"utilization": {"gpu": 19}}] * 4


def test_a_lock_that_is_not_let_go_is_a_fault(tmp_path: Path) -> None:
    store = OverrideStore(tmp_path / "overrides.yaml", patience=0.05)
    with (tmp_path / "overrides.yaml.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ProfileError, match=r"is locked by another writer for 0\.05 s now"):
            store.update(lambda old: old)


def test_what_a_killed_writer_left_goes_unless_somebody_writes(tmp_path: Path) -> None:
    store = OverrideStore(tmp_path / "overrides.yaml", patience=0.05)
    store.sweep()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "overrides.yaml.tmp").write_bytes(b"half")
    with (tmp_path / "overrides.yaml.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        store.sweep()
        assert (tmp_path / "overrides.yaml.tmp").exists()
    store.sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["overrides.yaml.lock"]


@pytest.mark.parametrize("raw", [b"", b"\n \n", b"version: 1\n", b"all:\ndevices: {'1': }\n", b"null\n"])
def test_a_store_with_nothing_in_it_is_empty(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "overrides.yaml").write_bytes(raw)
    assert not OverrideStore(tmp_path / "overrides.yaml").load()


def test_a_directory_in_the_stores_place_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "overrides.yaml").mkdir()
    with pytest.raises(ProfileError, match="is a directory"):
        OverrideStore(tmp_path / "overrides.yaml").load()
    assert [path.name for path in tmp_path.iterdir()] == ["overrides.yaml"]


def test_a_pinned_reading_does_not_move() -> None:
    text = SMALL.replace(
        "architecture: ampere", "load: {pattern: wave}\n  thermal: {temperature_gpu_c: 30}\n  architecture: ampere"
    )
    compiler = Compiler(load_text(text.encode(), "p.yaml"), Options(), {})
    state = compiler.compile(assign(Overrides(), 1, patched("thermal.temperature_gpu_c=91")))
    assert readings(state, 1)["thermal.temperature_gpu_c"] == 91
    assert not isinstance(readings(state, 0)["thermal.temperature_gpu_c"], int)


def test_a_disk_that_takes_no_more_is_told_with_the_file(tmp_path: Path) -> None:
    """A write through a descriptor fails without a name."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, hard))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            replace_file(tmp_path / "file", b"too much", 0o644)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert raised.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
