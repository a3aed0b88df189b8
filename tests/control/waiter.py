"""A process that waits for events: prints "ready", then the XID and the time of each event; ends with its input.

python -m tests.control.waiter LIBRARY INDEX…
"""

from __future__ import annotations

import ctypes
import sys
import time

XID = 0x8
TIMEOUT = 10


class EventData(ctypes.Structure):
    """nvmlEventData_t."""

    _fields_ = (
        ("device", ctypes.c_void_p),
        ("type", ctypes.c_uint64),
        ("data", ctypes.c_uint64),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def main(library: str, indices: list[int], seconds: float) -> None:
    nvml = ctypes.CDLL(library)
    assert nvml.nvmlInit_v2() == 0
    events = ctypes.c_void_p()
    assert nvml.nvmlEventSetCreate(ctypes.byref(events)) == 0
    for index in indices:
        device = ctypes.c_void_p()
        assert nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0
        assert nvml.nvmlDeviceRegisterEvents(device, ctypes.c_uint64(XID), events) == 0
    print("ready", flush=True)
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        data = EventData()
        code = nvml.nvmlEventSetWait_v2(events, ctypes.byref(data), int(left * 1000) + 1)
        if code == 0:
            print(data.data, time.monotonic(), flush=True)
        else:
            assert code == TIMEOUT, code


if __name__ == "__main__":
    main(sys.argv[1], [int(word) for word in sys.argv[3:]], float(sys.argv[2]))
