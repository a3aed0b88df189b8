"""Asks an NVML library what it sees, as a program of its own: `python probe.py LIBRARY` prints one line of JSON.

It is run apart from the doctor because what it loads may crash or hang. Only the standard library is there.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

_UUID_BYTES, _VERSION_BYTES = 96, 80  # nvml.h: NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
_SUCCESS, _ABSENT = 0, -1
_MOST_GPUS, _MOST_MIGS = 256, 64  # what a library that counts more has to be believed


class _Fabric(ctypes.Structure):
    """nvmlGpuFabricInfo_t (nvml.h)."""

    _fields_ = (
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    )


def main(path: str) -> dict[str, Any]:
    """What the library at `path` answers."""
    answer: dict[str, Any] = {"fault": "", "code": -1, "driver_version": "", "gpus": []}
    try:
        nvml = ctypes.CDLL(path)
    except OSError as error:
        return {**answer, "fault": f"cannot be loaded: {error}"}
    code = _call(nvml, "nvmlInit_v2")
    if code != _SUCCESS:
        return {**answer, "code": code, "fault": f"refuses to be initialised: {_text(nvml, code)}"}
    version = ctypes.create_string_buffer(_VERSION_BYTES)
    _call(nvml, "nvmlSystemGetDriverVersion", version, _VERSION_BYTES)
    count = ctypes.c_uint()
    _call(nvml, "nvmlDeviceGetCount_v2", ctypes.byref(count))
    gpus = [_gpu(nvml, index) for index in range(min(count.value, _MOST_GPUS))]
    _call(nvml, "nvmlShutdown")
    return {**answer, "code": code, "driver_version": version.value.decode(errors="replace"), "gpus": gpus}


def _gpu(nvml: ctypes.CDLL, index: int) -> dict[str, Any]:
    handle, minor = ctypes.c_void_p(), ctypes.c_uint()
    uuid = ctypes.create_string_buffer(_UUID_BYTES)
    found: dict[str, Any] = {"index": index, "minor": -1, "uuid": "", "fault": "", "migs": [], "fabric": None}
    for name, *arguments in (
        ("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle)),
        ("nvmlDeviceGetUUID", handle, uuid, _UUID_BYTES),
        ("nvmlDeviceGetMinorNumber", handle, ctypes.byref(minor)),
    ):
        code = _call(nvml, name, *arguments)
        if code != _SUCCESS:
            return {**found, "fault": _text(nvml, code)}
    fabric = _Fabric()
    code = _call(nvml, "nvmlDeviceGetGpuFabricInfo", handle, ctypes.byref(fabric))
    known = [fabric.state, fabric.status] if code == _SUCCESS else None
    migs = list(_migs(nvml, handle))
    return {**found, "minor": minor.value, "uuid": uuid.value.decode(errors="replace"), "migs": migs, "fabric": known}


def _migs(nvml: ctypes.CDLL, gpu: ctypes.c_void_p) -> Any:
    most = ctypes.c_uint()
    if _call(nvml, "nvmlDeviceGetMaxMigDeviceCount", gpu, ctypes.byref(most)) != _SUCCESS:
        return
    for index in range(min(most.value, _MOST_MIGS)):
        mig, instance, compute = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
        asked = (
            ("nvmlDeviceGetMigDeviceHandleByIndex", gpu, index, ctypes.byref(mig)),
            ("nvmlDeviceGetGpuInstanceId", mig, ctypes.byref(instance)),
            ("nvmlDeviceGetComputeInstanceId", mig, ctypes.byref(compute)),
        )
        if all(_call(nvml, name, *arguments) == _SUCCESS for name, *arguments in asked):
            yield [instance.value, compute.value]


def _call(nvml: ctypes.CDLL, name: str, *arguments: Any) -> int:
    function = getattr(nvml, name, None)
    return _ABSENT if function is None else int(function(*arguments))


def _text(nvml: ctypes.CDLL, code: int) -> str:
    if code == _ABSENT or not hasattr(nvml, "nvmlErrorString"):
        return "it lacks a function"
    nvml.nvmlErrorString.restype = ctypes.c_char_p
    return str(nvml.nvmlErrorString(code).decode(errors="replace"))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
