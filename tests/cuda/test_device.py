"""Who a device is: name, UUID, memory, bus, peers."""

from __future__ import annotations

import msgspec
import pytest

from simnode.state import LinkSpec
from tests.cuda.conftest import INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, Scene
from tests.nvml.nodes import device, node, runtime

ONE = node(runtime({"memory.reserved_bytes": 502792192}))
TWO = node(runtime(), runtime())
NVIDIA = "NVIDIA H100 80GB HBM3"


def test_an_ordinal_that_there_is_not_is_refused(scene: Scene) -> None:
    program = """[number("cuDeviceGet", 2), number("cuDeviceGet", -1), number("cuDeviceGet", 1), name(2), bus_id(7),
        attribute(1, -1), number("cuDeviceCanAccessPeer", 0, 2)]"""
    refused = [INVALID_DEVICE]
    assert scene.show(TWO, program) == [refused, refused, 1, *[refused] * 4]


def test_a_name_that_is_too_long_is_cut(scene: Scene) -> None:
    assert scene.show(ONE, "[name(0, n) for n in (96, 22, 21, 7, 1, 0)]") == [
        NVIDIA,
        NVIDIA,
        NVIDIA[:20],
        NVIDIA[:6],
        "",
        [INVALID_VALUE],
    ]


def test_a_uuid_is_its_sixteen_bytes(scene: Scene) -> None:
    names = ("cuDeviceGetUuid", "cuDeviceGetUuid_v2")
    program = f"[(cuda[name](out := create_string_buffer(20), 0), out.raw.hex()) for name in {names}]"
    state = node(runtime(), devices=(device(0, "GPU-01234567-89ab-CDEF-0123-456789abcdef"),))
    expected = [SUCCESS, "0123456789abcdef0123456789abcdef" + "00" * 4]
    assert scene.show(state, program) == [expected, expected]


def test_a_text_that_is_no_uuid_has_no_bytes(scene: Scene) -> None:
    state = node(runtime(), devices=(device(0, "GPU-none"),))
    assert scene.show(state, "cuda.cuDeviceGetUuid(create_string_buffer(16), 0)") == NOT_SUPPORTED


def test_memory_is_what_the_driver_does_not_reserve(scene: Scene) -> None:
    """As H100s tell it to PyTorch: 81079 MiB. A size of 32 bits is as large as it can be."""
    program = """[cuda.cuDeviceTotalMem_v2(byref(size := c_size_t()), 0), size.value, number("cuDeviceTotalMem", 0)]"""
    assert scene.show(ONE, program) == [SUCCESS, (81559 << 20) - 502792192, -1]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("0000:11:00.0", 1, id="cuda's"),
        pytest.param("00000000:11:00.0", 1, id="nvml's"),
        pytest.param("11:00.0", 1, id="no-domain"),
        pytest.param("0000:10:00", 0, id="no-function"),
        pytest.param("0000:12:00.0", [INVALID_DEVICE], id="nothing-there"),
        pytest.param("0000:11:00.1", [INVALID_DEVICE], id="another-function"),
        pytest.param("GPU", [INVALID_VALUE], id="no-address"),
    ],
)
def test_a_device_is_found_by_its_bus_id(scene: Scene, text: str, answer: object) -> None:
    assert scene.show(TWO, f"number('cuDeviceGetByPCIBusId', {text.encode()!r})") == answer


def test_a_bus_id_is_written_in_capitals(scene: Scene) -> None:
    """Into no fewer than 13 bytes."""
    state = node(runtime(), devices=(msgspec.structs.replace(device(0), pci_bus_id="0001:af:1c.0"),))
    assert scene.show(state, "[bus_id(0), bus_id(0, 12)]") == ["0001:AF:1C.0", [INVALID_VALUE]]


def test_peers_are_those_of_nvml(scene: Scene) -> None:
    """Two behind NVSwitches reach each other, the third neither; no device is its own peer."""
    switched = runtime(links=(LinkSpec(True, "switch", "", 0),))
    program = """[[number("cuDeviceCanAccessPeer", a, b) for a in range(3) for b in range(3)],
        [number("cuDeviceGetP2PAttribute", which, 0, 1) for which in (2, 1, 0, 9)],
        number("cuDeviceGetP2PAttribute", 2, 1, 1)]"""
    peers, attributes, own = scene.show(node(switched, switched, runtime()), program)
    assert peers == [0, 1, 0, 1, 0, 0, 0, 0, 0]
    assert attributes == [1, [NOT_SUPPORTED], [INVALID_VALUE], [INVALID_VALUE]]
    assert own == [INVALID_DEVICE]


def test_a_null_pointer_is_an_invalid_value(scene: Scene) -> None:
    program = """[cuda.cuDeviceGetCount(None), cuda.cuDeviceGet(None, 0), cuda.cuDeviceGetName(None, 9, 0),
        cuda.cuDeviceGetUuid(None, 0), cuda.cuDeviceTotalMem_v2(None, 0), cuda.cuDeviceGetAttribute(None, 1, 0),
        cuda.cuDeviceGetPCIBusId(None, 13, 0), cuda.cuDeviceGetByPCIBusId(None, b"0:0.0"),
        cuda.cuDeviceCanAccessPeer(None, 0, 0), cuda.cuDriverGetVersion(None), cuda.cuCtxGetCurrent(None),
        cuda.cuGetErrorName(0, None), cuda.cuGetErrorString(0, None), cuda.cuDeviceTotalMem(None, 0)]"""
    assert set(scene.show(ONE, program)) == {INVALID_VALUE}
