"""Calls every wrapper of the nvidia-ml-py release that is imported, in one process, and prints how each ended, as JSON.

Runs inside a node, with nothing of this project's on its path. Per wrapper: {"value": …}, {"error": NVML's code} or
{"python": why the wrapper itself refused}. What asks comes first, then what changes the node, then what ends it; should
one crash, its name is the last line of standard error.

    python wrappers.py call                      every wrapper, on the first GPU
    python wrappers.py read '[[wrapper, …], …]'  these, each with the arguments that follow, on every GPU
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pynvml as nvml

Wrapper = Callable[..., Any]
ROOM = 1 << 16
"""Bytes, zeroed, for a structure whose type a wrapper does not tell: more than any has."""
CHANGING = ("Set", "Reset", "Clear", "Create", "Destroy", "Remove", "Modify", "Discover", "Freeze", "Update")
LAST = ("nvmlDeviceRemoveGpu", "nvmlShutdown")
BEST = ("value", "error", "python")
NO_CALLS = ("nvmlExceptionClass", "nvmlFriendlyObjectToStruct", "nvmlStructToFriendlyObject")
"""Public, and nothing of the library's."""

# Structures that a caller fills in: their names in the releases, and the name of the tag where they do not set it.
STRUCTURES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "nvmlDeviceGetPciInfoExt": (("nvmlPciInfoExt_v1_t",), "nvmlPciInfoExt_v1"),
    "nvmlDeviceGetGpuFabricInfo": (("c_nvmlGpuFabricInfo_t",), None),
    "nvmlDeviceGetGpuFabricInfoV": (("c_nvmlGpuFabricInfo_v2_t", "c_nvmlGpuFabricInfoV_t"), "nvmlGpuFabricInfo_v2"),
    "nvmlDeviceGetGpuFabricInfo_v4": (("c_nvmlGpuFabricInfo_v4_t",), None),
    "nvmlDeviceGetSramEccErrorStatus": (("c_nvmlEccSramErrorStatus_v1_t",), None),
    "nvmlDeviceGetCapabilities": (("c_nvmlDeviceCapabilities_v1_t",), None),
    "nvmlDeviceGetPlatformInfo": (("c_nvmlPlatformInfo_v2_t", "c_nvmlPlatformInfo_v1_t"), None),
    "nvmlDeviceGetNvLinkInfo": (("c_nvmlNvLinkInfo_v2_t",), None),
    "nvmlDeviceGetRemappedRows_v2": (("c_nvmlRemappedRowsInfo_v2_t",), None),
    "nvmlSystemGetConfComputeSettings": (("c_nvmlSystemConfComputeSettings_v1_t",), None),
}

# Wrappers that want a tag as their argument `version`.
TAGS = {
    "nvmlDeviceGetRunningProcessDetailList": "nvmlProcessDetailList_v1",
    "nvmlSystemEventSetCreate": "nvmlSystemEventSetCreateRequest_v1",
    "nvmlSystemEventSetFree": "nvmlSystemEventSetFreeRequest_v1",
    "nvmlSystemRegisterEvents": "nvmlSystemRegisterEventRequest_v1",
}


def arguments(wrapper: Wrapper, handle: Any, other: Any) -> Iterator[list[Any]]:
    """What to call it with: zeros where its parameters say little, then room for a structure, then what it asks for."""
    known: dict[str, Callable[[], Any]] = {
        **dict.fromkeys(("handle", "device", "device1", "handle1", "migDevice"), lambda: handle),
        **dict.fromkeys(("device2", "handle2"), lambda: other),
        **dict.fromkeys(("gpuInstance", "computeInstance", "unit"), lambda: None),
        **dict.fromkeys(("vgpuTypeId", "vgpuInstance"), lambda: 1),
        **dict.fromkeys(("cpuSetSize", "nodeSetSize"), lambda: 4),
        **dict.fromkeys(("timeoutms", "timeoutMs"), lambda: 1),
        "uuid": lambda: nvml.nvmlDeviceGetUUID(handle),
        "serial": lambda: nvml.nvmlDeviceGetSerial(handle),
        "pciBusId": lambda: nvml.nvmlDeviceGetPciInfo(handle).busId,
        "pciInfo": lambda: nvml.nvmlDeviceGetPciInfo(handle),
        "pid": os.getpid,
        "memoryClockMHz": lambda: nvml.nvmlDeviceGetSupportedMemoryClocks(handle)[0],
        "fieldIds": lambda: [nvml.NVML_FI_DEV_ECC_CURRENT],
        "level": lambda: nvml.NVML_TOPOLOGY_SYSTEM,
        "eventTypes": lambda: nvml.nvmlEventTypeXidCriticalError,
        "eventSet": nvml.nvmlEventSetCreate,
        "gpmSample": lambda: nvml.nvmlGpmSampleAlloc(),  # noqa: PLW0108  (older releases have none)
        "c_nonce": lambda: [0] * 32,
        "c_vgpu_placements": lambda: nvml.c_nvmlVgpuCreatablePlacementInfo_v1_t(),  # noqa: PLW0108
        "hostname": lambda: "node",
        "requestedProfiles": lambda: ctypes.create_string_buffer(ROOM),
    }
    parameters = [p for p in inspect.signature(wrapper).parameters.values() if p.default is inspect.Parameter.empty]
    yield [known.get(p.name, int)() for p in parameters]
    if all(p.name in known for p in parameters):
        return
    yield [known.get(p.name, lambda: ctypes.create_string_buffer(ROOM))() for p in parameters]
    if filled := structure(wrapper):
        yield [known[p.name]() if p.name in known else ctypes.byref(filled) for p in parameters]
    if version := TAGS.get(wrapper.__name__):
        yield [getattr(nvml, version) if p.name == "version" else known.get(p.name, int)() for p in parameters]


def structure(wrapper: Wrapper) -> Any:
    """The one that a wrapper wants filled in, tagged, if this release has it."""
    names, tag = STRUCTURES.get(wrapper.__name__, ((), None))
    for name in names:
        if kind := getattr(nvml, name, None):
            filled = kind()
            if tag:
                filled.version = getattr(nvml, tag)
            return filled
    return None


def outcome(wrapper: Wrapper, given: list[Any]) -> dict[str, Any]:
    """How one call ended. Some wrappers return NVML's code, others nothing, where a structure was filled in."""
    try:
        value = wrapper(*given)
    except nvml.NVMLError as error:
        return {"error": error.value}
    except (TypeError, ValueError, AttributeError, ctypes.ArgumentError) as error:
        return {"python": f"{type(error).__name__}: {error}"}
    filled = [argument._obj for argument in given if hasattr(argument, "_obj")]
    if not filled:
        return {"value": plain(value)}
    return {"error": value} if value else {"value": plain(filled[0])}


def plain(value: Any) -> Any:
    """A value as JSON has it; a structure by its fields, a pointer as text."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, ctypes.Structure | ctypes.Union):
        return {field[0]: plain(getattr(value, field[0])) for field in type(value)._fields_}
    if isinstance(value, ctypes.Array | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, ctypes._SimpleCData):
        return plain(value.value)
    return value if isinstance(value, int | float | str | None) else type(value).__name__


def call_all() -> dict[str, dict[str, Any]]:
    """The best that each wrapper answered: a value before an error before a refusal of its own."""
    wrappers = {
        name: member
        for name, member in vars(nvml).items()
        if name.startswith("nvml") and inspect.isfunction(member) and name not in NO_CALLS
    }
    handle, other = nvml.nvmlDeviceGetHandleByIndex(0), nvml.nvmlDeviceGetHandleByIndex(1)
    ended: dict[str, dict[str, Any]] = {}
    for name in sorted(wrappers, key=lambda name: (order(name), name)):
        print(name, file=sys.stderr, flush=True)
        try:
            tried = [outcome(wrappers[name], given) for given in arguments(wrappers[name], handle, other)]
        except nvml.NVMLError as error:
            tried = [{"error": error.value}]
        ended[name] = tried[-1] if name in STRUCTURES else min(tried, key=lambda one: min(map(BEST.index, one)))
    return ended


def order(name: str) -> int:
    """What changes the node, by its verb, comes after what asks, and before what takes away."""
    if name in LAST:
        return 2 + LAST.index(name)
    return "Get" not in name and any(verb in name for verb in CHANGING)


def read(calls: list[list[Any]]) -> list[dict[str, Any]]:
    """Per GPU, how each call ended; a wrapper that this release lacks is left out."""
    known = [(name, given) for name, *given in calls if hasattr(nvml, name)]
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    return [
        {" ".join(map(str, [name, *given])): outcome(getattr(nvml, name), [handle, *given]) for name, given in known}
        for handle in handles
    ]


if __name__ == "__main__":
    nvml.nvmlInit()
    json.dump(call_all() if sys.argv[1] == "call" else read(json.loads(sys.argv[2])), sys.stdout)
