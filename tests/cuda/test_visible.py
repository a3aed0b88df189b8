"""CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, as the CUDA programming guide describes them."""

from __future__ import annotations

import msgspec
import pytest

from tests.cuda.conftest import NO_DEVICE, Scene
from tests.nvml.nodes import device, node, runtime

UUIDS = ("GPU-10000000-aaaa", "GPU-10000001-bbbb", "GPU-20000000-cccc", "GPU-30000000-dddd")
NODE = node(
    *[runtime()] * 4, devices=tuple(device(i, f"{uuid}-2222-3333-444444444444") for i, uuid in enumerate(UUIDS))
)


@pytest.mark.parametrize(
    ("visible", "answer"),
    [
        pytest.param("0,1,2,3", ["10", "11", "12", "13"], id="all"),
        pytest.param("2,1", ["12", "11"], id="in-their-order"),
        pytest.param(" 3 , 0", ["13", "10"], id="blanks"),
        pytest.param("0,2,-1,1", ["10", "12"], id="up-to-a-negative"),
        pytest.param("1,4,0", ["11"], id="up-to-one-that-there-is-not"),
        pytest.param("1,99999999999999999999,0", ["11"], id="up-to-a-huge-one"),
        pytest.param("1gpu2,2", ["11", "12"], id="a-number-ends-with-its-digits"),
        pytest.param("0,NoDevFiles", ["10"], id="up-to-a-word"),
        pytest.param("0,,1", ["10"], id="up-to-a-gap"),
        pytest.param("", [NO_DEVICE], id="empty"),
        pytest.param("none", [NO_DEVICE], id="a-word"),
        pytest.param("1,2,1", [NO_DEVICE], id="twice"),
        pytest.param(f"{UUIDS[3]}-2222-3333-444444444444,0", ["13", "10"], id="a-whole-uuid"),
        pytest.param("GPU-2,GPU-10000001", ["12", "11"], id="the-beginnings-of-uuids"),
        pytest.param("GPU-2,GPU-1,0", ["12"], id="up-to-an-ambiguous-one"),
        pytest.param("GPU-,0", [NO_DEVICE], id="no-digit-of-a-uuid"),
        pytest.param("GPU-2,2", [NO_DEVICE], id="twice-under-two-names"),
        pytest.param("MIG-10000000-aaaa-2222-3333-444444444444,1", ["11"], id="mig-devices-are-passed-over"),
        pytest.param("MIG-10000000-aaaa-2222-3333-444444444444", [NO_DEVICE], id="a-mig-device-alone"),
    ],
)
def test_the_list_picks(scene: Scene, visible: str, answer: list[object]) -> None:
    scene.publish(NODE)
    assert scene.run("show(seen())", CUDA_VISIBLE_DEVICES=visible) == answer


MIXED = node(
    runtime({"multiprocessor_count": 58, "clocks.sm_max": 1590}),
    runtime({"multiprocessor_count": 132, "clocks.sm_max": 1980}),
    runtime({"multiprocessor_count": 132, "clocks.sm_max": 1980}),
    devices=(
        *(device(i) for i in range(2)),
        msgspec.structs.replace(device(2), pci_bus_id="0000:05:00.0"),
    ),
)


@pytest.mark.parametrize(
    ("order", "answer"),
    [
        pytest.param(None, ["05", "11", "10"], id="fastest-first"),
        pytest.param("FASTEST_FIRST", ["05", "11", "10"], id="fastest-first-by-name"),
        pytest.param("PCI_BUS_ID", ["05", "10", "11"], id="bus"),
    ],
)
def test_the_order(scene: Scene, order: str | None, answer: list[str]) -> None:
    """Equally fast ones follow their buses; the list counts in this order."""
    scene.publish(MIXED)
    environ = {} if order is None else {"CUDA_DEVICE_ORDER": order}
    assert scene.run("show(seen())", **environ) == answer
    assert scene.run("show(seen())", CUDA_VISIBLE_DEVICES="2", **environ) == answer[2:]
