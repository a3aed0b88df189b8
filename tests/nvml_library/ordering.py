"""Changes a GPU through nvidia-ml-py and prints what it read before, after, and after the change was taken back.

Run as a program inside a node whose control socket it may use. GPU 1 is a witness: nothing of it may change.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable

import pynvml as n

Step = Callable[[n.c_nvmlDevice_t], object]


def limit(device: n.c_nvmlDevice_t, scope: int, milliwatts: int, tag: int = n.nvmlPowerValue_v2) -> None:
    """nvmlDeviceSetPowerManagementLimit_v2, of which nvidia-ml-py does not look at the code."""
    value = n.c_nvmlPowerValue_v2_t(tag, scope, milliwatts)
    code = n._nvmlGetFunctionPointer("nvmlDeviceSetPowerManagementLimit_v2")(device, ctypes.byref(value))
    if code:
        raise n.NVMLError(code)


STEPS: dict[str, tuple[Step, Step, Step]] = {
    "persistence": (
        lambda d: n.nvmlDeviceSetPersistenceMode(d, 0),
        n.nvmlDeviceGetPersistenceMode,
        lambda d: n.nvmlDeviceSetPersistenceMode(d, 1),
    ),
    "compute": (
        lambda d: n.nvmlDeviceSetComputeMode(d, 3),
        n.nvmlDeviceGetComputeMode,
        lambda d: n.nvmlDeviceSetComputeMode(d, 0),
    ),
    "ecc": (
        lambda d: n.nvmlDeviceSetEccMode(d, 0),
        n.nvmlDeviceGetEccMode,
        lambda d: n.nvmlDeviceSetEccMode(d, 1),
    ),
    "power": (
        lambda d: n.nvmlDeviceSetPowerManagementLimit(d, 400_000),
        lambda d: [n.nvmlDeviceGetPowerManagementLimit(d), n.nvmlDeviceGetEnforcedPowerLimit(d)],
        lambda d: n.nvmlDeviceSetPowerManagementLimit(d, 700_000),
    ),
    "power of the GPU": (
        lambda d: limit(d, n.NVML_POWER_SCOPE_GPU, 500_000),
        lambda d: [n.nvmlDeviceGetPowerManagementLimit(d), n.nvmlDeviceGetEnforcedPowerLimit(d)],
        lambda d: limit(d, n.NVML_POWER_SCOPE_GPU, 700_000),
    ),
    "application clocks": (
        lambda d: n.nvmlDeviceSetApplicationsClocks(d, 1593, 1200),
        lambda d: [n.nvmlDeviceGetApplicationsClock(d, kind) for kind in (0, 2)],
        n.nvmlDeviceResetApplicationsClocks,
    ),
    "locked clocks": (
        lambda d: n.nvmlDeviceSetGpuLockedClocks(d, 1000, 1200),
        lambda d: [n.nvmlDeviceGetClockInfo(d, kind) for kind in (0, 1)],
        n.nvmlDeviceResetGpuLockedClocks,
    ),
    "locked memory clocks": (
        lambda d: n.nvmlDeviceSetMemoryLockedClocks(d, 1593, 1593),
        lambda d: n.nvmlDeviceGetClockInfo(d, 2),
        n.nvmlDeviceResetMemoryLockedClocks,
    ),
    "accounting": (
        lambda d: n.nvmlDeviceSetAccountingMode(d, 1),
        n.nvmlDeviceGetAccountingMode,
        lambda d: n.nvmlDeviceSetAccountingMode(d, 0),
    ),
    "accounted processes": (
        n.nvmlDeviceClearAccountingPids,
        n.nvmlDeviceGetAccountingPids,
        n.nvmlDeviceClearAccountingPids,
    ),
    "mig": (
        lambda d: n.nvmlDeviceSetMigMode(d, 1),
        n.nvmlDeviceGetMigMode,
        lambda d: n.nvmlDeviceSetMigMode(d, 0),
    ),
    "ecc counts": (
        lambda d: n.nvmlDeviceClearEccErrorCounts(d, 0),
        lambda d: [n.nvmlDeviceGetTotalEccErrors(d, 1, kind) for kind in (0, 1)],
        lambda d: n.nvmlDeviceClearEccErrorCounts(d, 1),
    ),
}
REFUSED: dict[str, Step] = {
    "below the least limit": lambda d: n.nvmlDeviceSetPowerManagementLimit(d, 100),
    "above the highest limit": lambda d: n.nvmlDeviceSetPowerManagementLimit(d, 701_000),
    "below the least limit of the GPU": lambda d: limit(d, n.NVML_POWER_SCOPE_GPU, 100),
    "the module's limit": lambda d: limit(d, n.NVML_POWER_SCOPE_MODULE, 400_000),
    "a limit of another version": lambda d: limit(d, n.NVML_POWER_SCOPE_GPU, 400_000, tag=0x0100000C),
    "no such mode": lambda d: n.nvmlDeviceSetComputeMode(d, 9),
    "no such clocks": lambda d: n.nvmlDeviceSetApplicationsClocks(d, 1, 2),
    "a range upside down": lambda d: n.nvmlDeviceSetGpuLockedClocks(d, 2, 1),
    "no such counters": lambda d: n.nvmlDeviceClearEccErrorCounts(d, 7),
    "not on this board": lambda d: n.nvmlDeviceSetGpuOperationMode(d, 0),
    "an administrator's": lambda d: n.nvmlDeviceSetAPIRestriction(d, 0, 0),
}


def main() -> None:
    """Readings of GPU 0 by step, GPU 1's beside them, and the codes of what is refused."""
    n.nvmlInit()
    first, second = (n.nvmlDeviceGetHandleByIndex(index) for index in range(2))
    read: dict[str, object] = {}
    for name, (change, look, back) in STEPS.items():
        seen, witness = [look(first)], look(second)
        for step in (change, back):
            step(first)
            seen.append(look(first))
        read[name] = [seen, look(second) == witness]
    codes = {}
    for name, step in REFUSED.items():
        try:
            step(first)
        except n.NVMLError as error:
            codes[name] = error.value
    json.dump({"read": read, "codes": codes}, sys.stdout)


if __name__ == "__main__":
    main()
