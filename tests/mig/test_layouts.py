"""From the `mig:` section to a layout: where instances go, what they are called, and what is refused in one line."""

from __future__ import annotations

import uuid

import pytest

from simnode.partitions import MIGState
from simnode.profile import Options, Overrides, ProfileError, compile_state, load_board
from simnode.profile.compile import Compiler
from simnode.profile.overrides import assignments
from simnode.profile.schema import NODE_SECTIONS
from simnode.simulators.gpudriver.modules import FRONTEND_MAJOR, UVM_MAJOR
from simnode.state import State
from tests.mig.documents import compiled, document, named, one_gpu
from tests.profile.documents import readings

SEVEN = "{gpus: [{gpu_instances: [{profile: 1g.10gb, count: 7}]}]}"


def spans(state: State) -> list[str]:
    """GPU instances of the first partitioned GPU by id, as `id start:size`."""
    sizes = {profile.number: profile.size for profile in state.mig.profiles(state.mig.gpus[0].minor)}
    return [f"{one.id} {one.start}:{sizes[one.profile]}" for one in state.mig.gpus[0].gpu_instances]


@pytest.mark.parametrize(
    ("board", "instances", "expected"),
    [
        ("a100", named("3g.20gb", "3g.20gb"), ["1 0:4", "2 4:4"]),
        ("a100", named("3g.20gb", "1g.5gb", "2g.10gb", "1g.5gb"), ["2 4:4", "4 2:2", "7 0:1", "8 1:1"]),
        ("a100", named("1g.5gb", "2g.10gb", "4g.20gb"), ["1 0:4", "5 4:2", "13 6:1"]),
        ("h100", "{profile: 2g.20gb}, {profile: 1g.10gb, count: 5}",
         ["5 4:2", "7 0:1", "8 1:1", "9 2:1", "10 3:1", "13 6:1"]),
        ("h100", "{profile: 1g.10gb, count: 7}", [f"{7 + at} {at}:1" for at in range(7)]),
        ("h100", "{profile: 1g.20gb, count: 4}", ["3 0:2", "4 2:2", "5 4:2", "6 6:2"]),
        ("h100", named("7g.80gb"), ["0 0:8"]),
        ("h100", named("1g.10gb+me", "4g.40gb", "2g.20gb"), ["1 0:4", "5 4:2", "13 6:1"]),
        ("h100", "{profile: 3g.40gb, placement: 0}, {profile: 1g.10gb, placement: 6}", ["1 0:4", "13 6:1"]),
        ("b200", named("MIG 1g.23gb"), ["7 0:1"]),
    ],
    ids=["halves", "balanced", "small ones first", "five beside two", "seven", "doubles", "whole", "media", "placed",
         "name as nvidia-smi prints it"],
)  # fmt: skip
def test_instances_go_where_the_driver_puts_them(board: str, instances: str, expected: list[str]) -> None:
    assert spans(one_gpu(board, instances)) == expected


def test_a_gpu_instance_has_one_compute_instance_that_fills_it_unless_it_says_more() -> None:
    state = one_gpu("h100", "{profile: 3g.40gb, compute_instances: [1c.3g.40gb, 2c.3g.40gb]}, {profile: 1g.10gb}")
    parted, whole = state.mig.gpus[0].gpu_instances
    assert [(one.id, one.profile, one.start) for one in parted.compute_instances] == [(0, 0, 2), (1, 1, 0)]
    assert [(one.id, one.profile, one.start) for one in whole.compute_instances] == [(0, 0, 0)]
    empty = one_gpu("h100", "{profile: 3g.40gb, compute_instances: []}").mig.gpus[0].gpu_instances
    assert [one.compute_instances for one in empty] == [()]


def uuids(state: State) -> list[str]:
    """Of all MIG devices."""
    return [
        compute.uuid
        for gpu in state.mig.gpus
        for instance in gpu.gpu_instances
        for compute in instance.compute_instances
    ]


def test_uuids_are_of_version_5_and_follow_from_gpu_and_partition_alone() -> None:
    state = compiled("h100", SEVEN)
    made = [uuid.UUID(text.removeprefix("MIG-")) for text in uuids(state)]
    assert {one.version for one in made} == {5}
    assert len(set(made)) == 14
    assert uuids(compiled("h100", SEVEN, driver="550.163.01")) == uuids(state)
    other = compiled("h100", "{gpus: [{gpu_instances: [{profile: 1g.10gb+me}, {profile: 1g.10gb, count: 6}]}]}")
    assert len(set(uuids(other)) & set(uuids(state))) == 12  # only what has another profile is another


def test_an_entry_of_its_own_beats_the_one_for_all() -> None:
    every = f"{{gpu_instances: [{named('7g.80gb')}]}}"
    state = compiled("h100", f"{{gpus: [{every}, {{index: 1}}, {{index: 2, mode: disabled}}]}}", gpus=4)
    assert [gpu.minor for gpu in state.mig.gpus] == [0, 3]
    modes = [readings(state, index)["mig.mode_current"] for index in range(4)]
    assert modes == ["enabled", "enabled", "disabled", "enabled"]
    assert [readings(state, index)["mig.mode_pending"] for index in range(4)] == modes


def test_a_gpu_that_the_node_does_not_have_is_no_fault() -> None:
    assert compiled("h100", f"{{gpus: [{{index: 7, gpu_instances: [{named('7g.80gb')}]}}]}}").mig.gpus == ()


def test_an_override_of_the_mode_takes_the_partitions_away() -> None:
    state = compiled("h100", SEVEN, "mig.mode_current=disabled")
    assert not state.mig.partitioned()
    assert state.mig.caps() == ()
    assert readings(state)["mig.mode_current"] == "disabled"


@pytest.mark.parametrize("none", ["0", "N/A"])
def test_a_gpu_that_shall_have_no_mig_devices_has_no_partitions(none: str) -> None:
    state = compiled("h100", SEVEN, f"mig.max_gpu_instances={none}")
    assert not state.mig.partitioned()
    assert "mig.mode_current" not in readings(state)


def test_a_gpu_that_shall_tell_of_fewer_mig_devices_than_it_has_is_refused() -> None:
    """NVML would list the first, and the rest would have capabilities that nobody finds."""
    assert compiled("h100", SEVEN, "mig.max_gpu_instances=7", gpus=1).mig.partitioned()
    with pytest.raises(ProfileError) as raised:
        compiled("h100", SEVEN, "mig.max_gpu_instances=3", gpus=1)
    assert [str(fault) for fault in raised.value.faults] == [
        "--set: mig.max_gpu_instances: 3 is less than the 7 MIG devices that GPU 0 is partitioned into"
    ]


def test_an_override_partitions_a_node() -> None:
    compiler = Compiler(document("h100", "{}"), Options(gpus=2), {})
    assert not compiler.compile().mig.partitioned()
    patch = assignments([f"mig.gpus=[{{index: 1, gpu_instances: [{named('3g.40gb')}]}}]"], "set", NODE_SECTIONS)
    state = compiler.compile(Overrides(node=patch))
    assert [gpu.minor for gpu in state.mig.gpus] == [1]
    assert readings(state, 1)["mig.mode_current"] == "enabled"
    assert compiler.compile().mig.gpus == ()


def test_a_partitioned_gpu_tells_no_utilisation() -> None:
    values = readings(compiled("h100", SEVEN, "load={pattern: steady, min: 50, max: 50}"))
    plain = readings(compiled("h100", "{}"))
    for key in ("utilization.gpu", "utilization.memory", "utilization.encoder"):
        assert values[key] != plain.get(key)
        assert getattr(values[key], "code", None) == 3


def test_a_board_without_mig_tells_its_utilisation_whatever_mode_it_is_given() -> None:
    state = compile_state(load_board("l40s"), Options(1, overrides=("mig.mode_current=enabled",)), {})
    assert (
        readings(state)["utilization.gpu"]
        == readings(compile_state(load_board("l40s"), Options(1), {}))["utilization.gpu"]
    )


def test_no_section_is_no_mig() -> None:
    state = compiled("h100", "{}")
    assert state.mig == MIGState(tables=state.mig.tables)
    assert readings(state)["mig.mode_current"] == "disabled"


GPU, INSTANCE = "mig.gpus[0]", "mig.gpus[0].gpu_instances[0]"


@pytest.mark.parametrize(
    ("instances", "key", "message"),
    [
        ("{profile: 1g.10gb, count: 8}", f"{INSTANCE}.count", "must be an integer from 1 to 7, not 8"),
        ("{profile: 1g.10}", f"{INSTANCE}.profile", 'is no profile of this board; did you mean "1g.10gb"?'),
        ("{profile: 1g.5gb}", f"{INSTANCE}.profile", '"1g.5gb" is no profile of this board'),
        ("{profile: 1g.10gb, cont: 3}", f"{INSTANCE}.cont", 'is no known key; did you mean "count"?'),
        ("{count: 3}", f"{INSTANCE}.profile", "is missing"),
        ("{profile: 2g.20gb, placement: 1}", f"{INSTANCE}.placement", "2g.20gb can begin at 0, 2, 4, not at 1"),
        (
            named("3g.40gb", "3g.40gb", "3g.40gb"),
            GPU,
            "3 of 3g.40gb do not fit on one GPU; 2 do",
        ),
        (
            named("4g.40gb", "3g.40gb", "1g.10gb"),
            GPU,
            "1 x 4g.40gb, 1 x 3g.40gb, 1 x 1g.10gb do not fit on one GPU: they need 9 of 8 memory slices and 8 of 7 "
            "compute slices, each at a place of its own",
        ),
        ("{profile: 1g.10gb, placement: 1}, {profile: 1g.10gb, placement: 1}", GPU, "2 x 1g.10gb do not fit"),
        (
            "{profile: 3g.40gb, compute_instances: [4c.3g.40gb]}",
            f"{INSTANCE}.compute_instances[0]",
            '"4c.3g.40gb" is no compute instance of 3g.40gb; those are 1c.3g.40gb, 2c.3g.40gb, 3g.40gb',
        ),
        (
            "{profile: 2g.20gb, compute_instances: [2g.20gb, 1c.2g.20gb]}",
            f"{INSTANCE}.compute_instances",
            "do not fit: 3 compute slices are wanted, and a 2g.20gb has 2",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(instances: str, key: str, message: str) -> None:
    with pytest.raises(ProfileError) as raised:
        one_gpu("h100", instances)
    (fault,) = raised.value.faults
    assert (fault.file, fault.key) == ("p.yaml", key)
    assert fault.line is not None
    assert message in fault.message


@pytest.mark.parametrize(
    "section", ["{gpus: [{mode: enabled}]}", f"{{gpus: [{{gpu_instances: [{named('1g.10gb')}]}}]}}"]
)
def test_a_board_without_mig_refuses(section: str) -> None:
    with pytest.raises(ProfileError, match=r'p\.yaml:\d+: mig\.gpus\[0\]: "NVIDIA L40S" is a board without MIG$'):
        compiled("l40s", section)


def test_a_minor_that_the_driver_has_no_capability_for_is_refused_once() -> None:
    with pytest.raises(ProfileError) as raised:
        compiled("h100", SEVEN, gpus=64)
    assert [fault.message for fault in raised.value.faults] == [
        "the driver has MIG capabilities for GPUs with minor numbers 0 to 31 only"
    ]


@pytest.mark.parametrize(
    "twice", ["{index: 1}, {index: 1}", "{index: all}, {index: all}", "{}, {index: all}", "{}, {}"]
)
def test_a_gpu_is_named_once(twice: str) -> None:
    with pytest.raises(ProfileError, match=r"index (1|all) is already that of mig\.gpus\[0\]"):
        document("h100", f"{{gpus: [{twice}]}}")


def test_whatever_fits_in_some_order_is_found() -> None:
    """The order in which a section lists instances does not matter, as it does for nvidia-smi's."""
    listed = ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]
    layouts = {
        frozenset(spans(one_gpu("h100", named(*listed[at:], *listed[:at])))) for at in range(len(listed))
    }  # fmt: skip
    assert layouts == {frozenset(["2 4:4", "4 2:2", "7 0:1", "8 1:1"])}


def test_a_section_that_only_the_options_beat_is_compiled_with_them() -> None:
    """`--gpus` may leave GPUs out that the section partitions."""
    state = compile_state(document("h100", SEVEN), Options(gpus=0), {})
    assert not state.mig.partitioned()


MAJORS = "%s\nimex: %s\n"


def test_mig_and_imex_have_one_major_for_capabilities() -> None:
    one = "gpus: [{gpu_instances: [{profile: 1g.10gb}]}]"
    for sections in (MAJORS % (f"{{caps_major: 300, {one}}}", "{enabled: true}"),
                     MAJORS % (f"{{{one}}}", "{enabled: true, caps_major: 300}")):  # fmt: skip
        state = compiled("h100", sections)
        assert (state.mig.caps_major, state.imex.caps_major) == (300, 300)
    with pytest.raises(ProfileError, match=r"mig\.caps_major: 300 is not imex\.caps_major, 301"):
        document("h100", MAJORS % ("{caps_major: 300}", "{caps_major: 301}"))


@pytest.mark.parametrize(("major", "name"), [(FRONTEND_MAJOR, "nvidia"), (UVM_MAJOR, "nvidia-uvm")])
def test_the_majors_of_the_gpus_own_devices_are_refused(major: int, name: str) -> None:
    for section, key in (("{caps_major: %d}", "mig.caps_major"), ("{}\nimex: {imex_major: %d}", "imex.imex_major")):
        with pytest.raises(ProfileError, match=rf"{key}: must not be {major}, the major of {name}$"):
            document("h100", section % major)
    with pytest.raises(ProfileError, match=f"environment: SIMNODE_CAPS_MAJOR: must not be {major}"):
        compile_state(document("h100", "{}"), Options(), {"SIMNODE_CAPS_MAJOR": str(major)})


@pytest.mark.parametrize(
    ("sections", "environ", "place"),
    [
        (MAJORS % ("{caps_major: 235}", "{enabled: true}"), {}, r"p\.yaml:\d+: mig\.caps_major"),
        (MAJORS % ("{}", "{enabled: true, imex_major: 236}"), {}, r"p\.yaml:\d+: imex\.imex_major"),
        (MAJORS % ("{}", "{enabled: true}"), {"SIMNODE_CAPS_MAJOR": "235"}, "environment: SIMNODE_IMEX_MAJOR"),
    ],
    ids=["MIG's", "IMEX's", "the environment's"],
)
def test_channels_and_capabilities_want_a_major_each(sections: str, environ: dict[str, str], place: str) -> None:
    with pytest.raises(ProfileError, match=f"^{place}: 23[56] cannot be the major of both"):
        compile_state(document("h100", sections), Options(1), environ)
