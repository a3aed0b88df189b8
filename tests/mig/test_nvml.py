"""GPU instances, compute instances and their profiles through NVML, against the State that they were made from."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simnode.partitions import MIGProfile
from simnode.profile import ProfileError
from simnode.profile.mig_tables import BOARDS, profiles_of
from simnode.state import State
from tests.examples import examples
from tests.mig.documents import compiled, named, one_gpu
from tests.nvml.nodes import node, runtime
from tests.nvml_library.conftest import (
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    UNINITIALIZED,
    WRONG_TAG,
    Handle,
    Library,
    Scene,
    filled,
)

MIXED = "{profile: 3g.40gb, compute_instances: [2c.3g.40gb, 1c.3g.40gb]}, {profile: 2g.20gb}, {profile: 1g.10gb+me}"
LOST = ("failure.mode=lost",)
ONE_SLICE, THREE_SLICES, GIB = 0, 2, 1 << 30
INFO, COMPUTE_INFO = "nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlGpuInstanceGetComputeInstanceProfileInfoV"


def instances(library: Library, profile_id: int, gpu: int = 0) -> list[Handle]:
    """The GPU instances of a profile."""
    found, count = (ctypes.c_void_p * 7)(), ctypes.c_uint()
    library.call("nvmlDeviceGetGpuInstances", library.handle(gpu), profile_id, found, ctypes.byref(count))
    return [Handle(handle) for handle in found[: count.value]]


def computes(library: Library, instance: Handle, profile_id: int) -> list[Handle]:
    """The compute instances of a profile in a GPU instance."""
    found, count = (ctypes.c_void_p * 7)(), ctypes.c_uint()
    library.call("nvmlGpuInstanceGetComputeInstances", instance, profile_id, found, ctypes.byref(count))
    return [Handle(handle) for handle in found[: count.value]]


def described(library: Library, name: str, handle: Handle, size: int, layout: str) -> tuple[int, ...]:
    """The struct that a function writes about a handle."""
    buffer = ctypes.create_string_buffer(size)
    library.call(name, handle, buffer)
    return struct.unpack(layout, buffer.raw)


def instance_info(library: Library, instance: Handle) -> tuple[int, ...]:
    """Device, id, profile id, start, size."""
    return described(library, "nvmlGpuInstanceGetInfo", instance, 24, "<QIIII")


def compute_info(library: Library, compute: Handle) -> tuple[int, ...]:
    """Device, GPU instance, id, profile id, start, size."""
    return described(library, "nvmlComputeInstanceGetInfo_v2", compute, 32, "<QQIIII")


def mig_devices(library: Library, gpu: int = 0) -> Iterator[Handle]:
    """In the order of their indices, to the first that there is not."""
    device = library.handle(gpu)
    for index in range(library.number("nvmlDeviceGetMaxMigDeviceCount", device)):
        found = Handle()
        code = library.code("nvmlDeviceGetMigDeviceHandleByIndex", device, index, ctypes.byref(found))
        assert code in (SUCCESS, NOT_FOUND)
        if code == NOT_FOUND:
            return
        yield found


def memory(library: Library, device: Handle) -> tuple[int, ...]:
    """Total, reserved, free, used."""
    buffer = ctypes.create_string_buffer(struct.pack("<I", 0x02000028), 40)
    library.call("nvmlDeviceGetMemoryInfo_v2", device, buffer)
    return struct.unpack("<8x4Q", buffer.raw)


def test_gpu_instances_by_profile_and_by_id(scene: Scene) -> None:
    library = scene.start(one_gpu("h100", MIXED))
    found = {profile: instances(library, profile) for profile in (19, 20, 15, 14, 9, 5, 0)}
    assert {profile: len(handles) for profile, handles in found.items() if handles} == {20: 1, 14: 1, 9: 1}
    info = {profile: instance_info(library, found[profile][0])[1:] for profile in (9, 14, 20)}
    assert info == {9: (2, 9, 4, 4), 14: (4, 14, 2, 2), 20: (7, 20, 0, 1)}
    assert instance_info(library, found[9][0])[0] == library.handle().value
    for profile, handles in found.items():
        if handles:
            again = Handle()
            library.call("nvmlDeviceGetGpuInstanceById", library.handle(), info[profile][0], ctypes.byref(again))
            assert again.value == handles[0].value
    out = ctypes.byref(Handle())
    for wrong in (0, 1, 8, 15, 1000):
        assert library.code("nvmlDeviceGetGpuInstanceById", library.handle(), wrong, out) == NOT_FOUND


def test_compute_instances_are_the_mig_devices(scene: Scene) -> None:
    library = scene.start(one_gpu("h100", MIXED))
    (parted,) = instances(library, 9)
    two, one = computes(library, parted, 1), computes(library, parted, 0)
    device = library.handle().value
    assert [compute_info(library, compute) for compute in two] == [(device, parted.value, 0, 1, 0, 2)]
    assert [compute_info(library, compute) for compute in one] == [(device, parted.value, 1, 0, 2, 1)]
    assert described(library, "nvmlComputeInstanceGetInfo", one[0], 24, "<QQII") == (device, parted.value, 1, 0)
    found = Handle()
    library.call("nvmlGpuInstanceGetComputeInstanceById", parted, 1, ctypes.byref(found))
    assert found.value == one[0].value
    code = library.code("nvmlGpuInstanceGetComputeInstanceById", parted, 2, ctypes.byref(found))
    assert code == NOT_FOUND
    assert len(list(mig_devices(library))) == 4


def test_a_mig_device_has_the_share_of_its_gpu_instance(scene: Scene) -> None:
    library = scene.start(one_gpu("h100", MIXED))
    first, _, third, _ = mig_devices(library)
    assert library.text("nvmlDeviceGetName", first) == "NVIDIA H100 80GB HBM3 MIG 2c.3g.40gb"
    assert library.text("nvmlDeviceGetName", third) == "NVIDIA H100 80GB HBM3 MIG 2g.20gb"
    attributes = described(library, "nvmlDeviceGetAttributes_v2", first, 40, "<8IQ")
    assert attributes == (32, 3, 3, 0, 3, 0, 3, 2, 40448)
    assert described(library, "nvmlDeviceGetAttributes_v2", third, 40, "<8IQ") == (32, 2, 2, 0, 2, 0, 2, 2, 20096)
    assert memory(library, third) == (20096 << 20, 0, 20096 << 20, 0)
    bar1 = described(library, "nvmlDeviceGetBAR1MemoryInfo", third, 24, "<3Q")
    assert bar1 == (32 * GIB - (1 << 20), 32 * GIB - (1 << 20), 0)


def test_errors_of_a_mig_device(scene: Scene) -> None:
    """Uncorrected ones of SRAM are counted, as nvidia-smi shows in its table; others only for the whole GPU."""
    library = scene.start(one_gpu("h100", MIXED))
    device = next(mig_devices(library))
    assert library.wide("nvmlDeviceGetMemoryErrorCounter", device, 1, 0, 7) == 0
    out = ctypes.byref(ctypes.c_ulonglong())
    assert library.code("nvmlDeviceGetMemoryErrorCounter", device, 1, 0, 2, out) == NOT_SUPPORTED


@pytest.mark.parametrize(("mode", "most"), [("enabled", 7), ("disabled", 0)])
def test_the_most_mig_devices_are_none_outside_mig_mode(scene: Scene, mode: str, most: int) -> None:
    library = scene.start(compiled("h100", "{}", f"mig.mode_current={mode}", gpus=1))
    assert library.number("nvmlDeviceGetMaxMigDeviceCount", library.handle()) == most
    buffer, count = (ctypes.c_void_p * 7)(), ctypes.c_uint()
    code = library.code("nvmlDeviceGetGpuInstances", library.handle(), 19, buffer, ctypes.byref(count))
    assert (code, count.value) == (SUCCESS if most else NOT_SUPPORTED, 0)
    remaining = library.number("nvmlDeviceGetGpuInstanceRemainingCapacity", library.handle(), 19)
    assert remaining == most


def test_a_board_without_mig_has_none_of_it(scene: Scene) -> None:
    library = scene.start(compiled("l40s", "{}", gpus=1))
    device, out = library.handle(), ctypes.create_string_buffer(152)
    assert library.number("nvmlDeviceGetMaxMigDeviceCount", device) == 0
    for name in ("GpuInstanceProfileInfo", "GpuInstanceRemainingCapacity", "GpuInstanceById"):
        assert library.code(f"nvmlDeviceGet{name}", device, 0, out) == NOT_SUPPORTED


def test_profiles_in_every_layout(scene: Scene) -> None:
    library = scene.start(one_gpu("h100", MIXED))
    numbers = (1, 7, 16, 1, 1, 0, 1, 0)
    second = filled(library, INFO, 152, 0x02000098, ONE_SLICE)
    assert struct.unpack_from("<III8IxxxxQ16s", second) == (
        0x02000098,
        19,
        0,
        *numbers,
        9984,
        b"MIG 1g.10gb" + bytes(5),
    )
    third = filled(library, INFO, 152, 0x03000098, ONE_SLICE)
    assert struct.unpack_from("<II8IQ16s", third) == (0x03000098, 19, *numbers, 9984, b"MIG 1g.10gb" + bytes(5))
    first = filled(library, "nvmlDeviceGetGpuInstanceProfileInfo", 48, None, ONE_SLICE)
    assert struct.unpack("<10IQ", first) == (19, 0, *numbers, 9984)
    assert filled(library, "nvmlDeviceGetGpuInstanceProfileInfoByIdV", 152, 0x02000098, 19) == second
    bad = ctypes.create_string_buffer(struct.pack("<I", 0x04000098), 152)
    assert library.code(INFO, library.handle(), ONE_SLICE, bad) == WRONG_TAG


def test_compute_profiles_in_every_layout(scene: Scene) -> None:
    library = scene.start(one_gpu("h100", MIXED))
    (instance,) = instances(library, 9)
    plain = ctypes.create_string_buffer(36)
    library.call("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, 1, 0, plain)
    assert struct.unpack("<9I", plain.raw) == (1, 2, 1, 32, 3, 3, 0, 3, 0)
    for tag, size in ((0x02000088, 136), (0x0300008C, 140)):
        tagged = ctypes.create_string_buffer(struct.pack("<I", tag), size)
        library.call(COMPUTE_INFO, instance, 1, 0, tagged)
        assert struct.unpack_from("<10I16s", tagged.raw) == (tag, 1, 2, 1, 32, 3, 3, 0, 3, 0, b"MIG 2c.3g.40gb\0\0")
        library.call(COMPUTE_INFO, instance, 2, 0, tagged)
        assert tagged.raw[40:55] == b"MIG 3g.40gb" + bytes(4)
    for number, engines, code in ((3, 0, NOT_SUPPORTED), (9, 0, INVALID_ARGUMENT), (1, 1, INVALID_ARGUMENT)):
        assert library.code(COMPUTE_INFO, instance, number, engines, plain) == code
    wrong = ctypes.create_string_buffer(140)
    assert library.code(COMPUTE_INFO, instance, 1, 0, wrong) == WRONG_TAG


@pytest.mark.parametrize(
    ("instances_made", "left"),
    [
        ("", {19: 7, 20: 1, 15: 4, 14: 3, 9: 2, 5: 1, 0: 1}),
        (named("3g.40gb"), {19: 4, 20: 1, 15: 2, 14: 2, 9: 1, 5: 1, 0: 0}),
        (named("1g.10gb+me"), {19: 6, 20: 0, 15: 3, 14: 2, 9: 1, 5: 0, 0: 0}),
        ("{profile: 1g.10gb, count: 7}", {19: 0, 20: 0, 15: 0, 14: 0, 9: 0, 5: 0, 0: 0}),
        (named("4g.40gb", "2g.20gb"), {19: 1, 20: 1, 15: 1, 14: 0, 9: 0, 5: 0, 0: 0}),
    ],
    ids=["nothing", "a half", "the one with engines", "all", "most"],
)
def test_what_still_fits(scene: Scene, instances_made: str, left: dict[int, int]) -> None:
    library = scene.start(one_gpu("h100", instances_made))
    name = "nvmlDeviceGetGpuInstanceRemainingCapacity"
    assert {profile: library.number(name, library.handle(), profile) for profile in left} == left


def test_what_still_fits_a_gpu_instance(scene: Scene) -> None:
    library = scene.start(one_gpu("h100", "{profile: 4g.40gb, compute_instances: [2c.4g.40gb]}"))
    (instance,) = instances(library, 5)
    name = "nvmlGpuInstanceGetComputeInstanceRemainingCapacity"
    assert [library.number(name, instance, profile) for profile in (0, 1, 3)] == [2, 1, 0]


def test_placements(scene: Scene) -> None:
    library = scene.start(one_gpu("h100", named("3g.40gb")))
    name, count = "nvmlDeviceGetGpuInstancePossiblePlacements_v2", ctypes.c_uint(0)
    library.call(name, library.handle(), 14, None, ctypes.byref(count))
    places = (ctypes.c_uint * 2 * 7)()
    count.value = 0
    library.call(name, library.handle(), 14, places, ctypes.byref(count))
    assert [tuple(place) for place in places[: count.value]] == [(0, 2), (2, 2), (4, 2)]
    older = name.removesuffix("_v2")
    assert library.code(older, library.handle(), 9, None, ctypes.byref(count)) == INVALID_ARGUMENT
    library.call(older, library.handle(), 9, places, ctypes.byref(count))
    assert [tuple(place) for place in places[: count.value]] == [(0, 4), (4, 4)]
    (instance,) = instances(library, 9)
    library.call("nvmlGpuInstanceGetComputeInstancePossiblePlacements", instance, 0, places, ctypes.byref(count))
    assert [tuple(place) for place in places[: count.value]] == [(0, 1), (1, 1), (2, 1)]
    out = ctypes.byref(count)
    assert library.code(name, library.handle(), 3, None, out) == INVALID_ARGUMENT


def test_a_gpu_instance_handle_dies_with_its_instance_and_no_sooner(scene: Scene) -> None:
    library = scene.start(one_gpu("h100", MIXED))
    (kept,), (gone,) = instances(library, 9), instances(library, 14)
    (compute,) = computes(library, gone, 1)
    scene.publish(one_gpu("h100", "{profile: 3g.40gb}, {profile: 1g.20gb, placement: 2}"))
    assert instance_info(library, kept)[1] == 2
    out = ctypes.create_string_buffer(32)
    assert library.code("nvmlGpuInstanceGetInfo", gone, out) == GPU_IS_LOST
    assert library.code("nvmlComputeInstanceGetInfo_v2", compute, out) == GPU_IS_LOST


def test_a_mig_device_of_a_lost_gpu_is_lost_also_to_whoever_asks_by_its_uuid(scene: Scene) -> None:
    """As its GPU is; a UUID that there never was is not found."""
    whole, broken = (compiled("h100", f"{{gpus: [{{gpu_instances: [{MIXED}]}}]}}", *failure) for failure in ((), LOST))
    library = scene.start(whole)
    uuids = [library.text("nvmlDeviceGetUUID", device) for device in mig_devices(library)]
    gpu = library.text("nvmlDeviceGetUUID", library.handle())
    scene.publish(broken)
    out = Handle()
    for uuid in (gpu, *uuids):
        assert library.code("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(out)) == GPU_IS_LOST
    unknown = b"MIG-00000000-0000-0000-0000-000000000000"
    assert library.code("nvmlDeviceGetHandleByUUID", unknown, ctypes.byref(out)) == NOT_FOUND
    scene.publish(whole)
    assert library.code("nvmlDeviceGetHandleByUUID", uuids[0].encode(), ctypes.byref(out)) == SUCCESS


@pytest.mark.parametrize("handle", [0, 8, 12345])
def test_a_wrong_handle_is_told(scene: Scene, handle: int) -> None:
    library = scene.start(one_gpu("h100", MIXED))
    out = ctypes.create_string_buffer(152)
    assert library.code("nvmlGpuInstanceGetInfo", Handle(handle), out) == INVALID_ARGUMENT
    assert library.code("nvmlComputeInstanceGetInfo_v2", Handle(handle), out) == INVALID_ARGUMENT
    assert library.code("nvmlGpuInstanceGetInfo", library.handle(), out) == INVALID_ARGUMENT
    library.stop()
    assert library.code("nvmlGpuInstanceGetInfo", Handle(handle), out) == UNINITIALIZED


def test_gpus_without_a_table_have_no_profiles(scene: Scene) -> None:
    library = scene.start(node(runtime({"mig.mode_current": 1})))
    out = ctypes.create_string_buffer(48)
    assert library.code("nvmlDeviceGetGpuInstanceProfileInfo", library.handle(), 0, out) == NOT_SUPPORTED
    assert library.code("nvmlDeviceGetGpuInstanceProfileInfo", library.handle(), 18, out) == INVALID_ARGUMENT


@st.composite
def layouts(draw: st.DrawFn) -> str:
    """GPU instances that a GPU may or may not have room for."""
    board = draw(st.sampled_from(["a100", "h100", "b200", "gb300"]))
    return board + ":" + ", ".join(draw(st.lists(st.deferred(lambda: entries(board)), min_size=1, max_size=5)))


def entries(board: str) -> st.SearchStrategy[str]:
    """A GPU instance, with or without compute instances of its own."""
    device = {"a100": 0x20B0, "h100": 0x2330, "b200": 0x2901, "gb300": 0x31C2}[board]
    return st.one_of([_entry(profile) for profile in profiles_of(next(b for b in BOARDS if device in b.devices), 580)])


def _entry(profile: MIGProfile) -> st.SearchStrategy[str]:
    parts = [f"{part.slices}c.{profile.name}" for part in profile.compute[:-1]]
    split = st.lists(st.sampled_from(parts), min_size=1, max_size=3) if parts else st.nothing()
    return st.none().map(lambda _: f"{{profile: {profile.name}}}") | split.map(
        lambda names: f"{{profile: {profile.name}, compute_instances: [{', '.join(names)}]}}"
    )


@settings(examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layout=layouts())
def test_state_and_nvml_agree_on_any_layout(scene: Scene, layout: str) -> None:
    """Ids, minors and UUIDs are unique, instances do not overlap, memory fits, and NVML says what State says."""
    board, _, listed = layout.partition(":")
    try:
        state = one_gpu(board, listed)
    except ProfileError:
        return
    (gpu,) = state.mig.gpus
    profiles = {profile.number: profile for profile in state.mig.profiles(gpu.minor)}
    caps = state.mig.caps()
    assert len({cap.minor for cap in caps}) == len({cap.name for cap in caps}) == len(caps)
    slices = [
        slice_
        for instance in gpu.gpu_instances
        for slice_ in range(instance.start, instance.start + profiles[instance.profile].size)
    ]
    assert len(set(slices)) == len(slices)
    assert (
        sum(profiles[one.profile].memory_mib for one in gpu.gpu_instances) << 20 <= state.devices[0].memory_total_bytes
    )
    check_nvml(scene.start(state), state)
    scene.library.stop()


def check_nvml(library: Library, state: State) -> None:
    """NVML has exactly the MIG devices and GPU instances of the State, in its order."""
    (gpu,) = state.mig.gpus
    profiles = {profile.number: profile for profile in state.mig.profiles(gpu.minor)}
    wanted = [(one.id, compute.id, compute.uuid) for one in gpu.gpu_instances for compute in one.compute_instances]
    found = [
        (
            library.number("nvmlDeviceGetGpuInstanceId", device),
            library.number("nvmlDeviceGetComputeInstanceId", device),
            library.text("nvmlDeviceGetUUID", device),
        )
        for device in mig_devices(library)
    ]
    assert found == wanted
    assert len({text for _, _, text in found}) == len(found)
    listed = [
        instance_info(library, handle)[1:] for profile in profiles.values() for handle in instances(library, profile.id)
    ]
    assert sorted(listed) == [
        (one.id, profiles[one.profile].id, one.start, profiles[one.profile].size) for one in gpu.gpu_instances
    ]
