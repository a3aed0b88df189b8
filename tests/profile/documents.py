"""Documents for the tests of this room, and short ways to what becomes of them."""

from __future__ import annotations

from simnode.profile import Options, ProfileError, compile_state, load_board, load_text
from simnode.profile.compile import lacking
from simnode.state import State, Value

SMALL = """\
version: "1.0"
system: {driver_version: 550.163.01, num_devices: 2}
device_defaults:
  name: NVIDIA A100-SXM4-40GB
  architecture: ampere
  memory: {total_bytes: 42949672960}
  pci: {device_id: 0x20B010DE}
devices:
  - index: 0
    uuid: GPU-00000000-0000-0000-0000-00000000000a
    pci: {bus_id: 0000:07:00.0}
  - index: 1
    uuid: GPU-00000000-0000-0000-0000-00000000000b
    pci: {bus_id: 0000:0F:00.0}
"""


def faults(text: str | bytes, options: Options | None = None, **environ: str) -> list[str]:
    """Every fault of a document, loaded and, if that goes well, compiled."""
    raw = text if isinstance(text, bytes) else text.encode()
    given = options or Options()
    try:
        compile_state(load_text(raw, "p.yaml", lacks=lacking(given, environ)), given, environ)
    except ProfileError as error:
        return [str(fault) for fault in error.faults]
    return []


def small(addition: str = "", *overrides: str, gpus: int | None = None) -> State:
    """The small profile with some lines more."""
    document = load_text((SMALL + addition).encode(), "p.yaml")
    return compile_state(document, Options(gpus=gpus, overrides=overrides), {})


def h100(*overrides: str, gpus: int | None = None, driver: str | None = None, **environ: str) -> State:
    """The built-in board h100."""
    return compile_state(load_board("h100"), Options(gpus, driver, overrides), environ)


def readings(state: State, index: int = 0) -> dict[str, Value]:
    """What one device reads, by key."""
    return dict(state.runtime.devices[index].values)
