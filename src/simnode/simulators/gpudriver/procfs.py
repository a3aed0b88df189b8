"""The texts below /proc/driver/nvidia, as the open kernel module of a driver release prints them.

Their forms are a real driver's, white space included: nvidia-modprobe scans `params` with "%31[^:]: %u" and stops at
the first line that does not match, so there the order matters, too.
"""

from __future__ import annotations

from simnode.state import DeviceSpec

BUILT = "Tue Jun 25 01:26:03 UTC 2024"
COMPILER = "gcc version 12.2.0 (Debian 12.2.0-14)"
UNKNOWN_VBIOS = "??.??.??.??.??"

_NUMBERS = {
    "ResmanDebugLevel": 4294967295,
    "RmLogonRC": 1,
    "ModifyDeviceFiles": 1,
    "DeviceFileUID": 0,
    "DeviceFileGID": 0,
    "DeviceFileMode": 0o666,
    "InitializeSystemMemoryAllocations": 1,
    "UsePageAttributeTable": 4294967295,
    "EnableMSI": 1,
    "EnablePCIeGen3": 0,
    "MemoryPoolSize": 0,
    "KMallocHeapMaxSize": 0,
    "VMallocHeapMaxSize": 0,
    "IgnoreMMIOCheck": 0,
    "EnableStreamMemOPs": 0,
    "EnableUserNUMAManagement": 0,
    "NvLinkDisable": 0,
    "RmProfilingAdminOnly": 1,
    "PreserveVideoMemoryAllocations": 1,
    "EnableS0ixPowerManagement": 1,
    "S0ixPowerManagementVideoMemoryThreshold": 256,
    "DynamicPowerManagement": 3,
    "DynamicPowerManagementVideoMemoryThreshold": 200,
    "RegisterPCIDriver": 1,
    "EnablePCIERelaxedOrderingMode": 0,
    "EnableResizableBar": 0,
    "EnableGpuFirmware": 18,
    "EnableGpuFirmwareLogs": 2,
    "RmNvlinkBandwidthLinkCount": 0,
    "EnableDbgBreakpoint": 0,
    "OpenRmEnableUnsupportedGpus": 1,
    "DmaRemapPeerMmio": 1,
    "ImexChannelCount": 2048,
    "CreateImexChannel0": 0,
    "GrdmaPciTopoCheckOverride": 1,
}
_TEXTS = {
    "CoherentGPUMemoryMode": "driver",
    "RegistryDwords": "",
    "RegistryDwordsPerDevice": "",
    "RmMsg": "",
    "GpuBlacklist": "",
    "TemporaryFilePath": "/var/tmp",
    "ExcludedGpus": "",
}


def version(driver_version: str, machine: str) -> bytes:
    """`version`: the banner of the open module for `machine` (as `uname -m` says), with a fixed date of build."""
    banner = f"NVIDIA UNIX Open Kernel Module for {machine}  {driver_version}  Release Build  (builder)  {BUILT}"
    return f"NVRM version: {banner}\nGCC version:  {COMPILER}\n".encode()


def params(imex_channels: int = 2048) -> bytes:
    """`params`: the module's parameters, numbers first; device files are 0666 and the driver may modify them."""
    numbers = {**_NUMBERS, "ImexChannelCount": imex_channels}
    lines = [f"{key}: {value}" for key, value in numbers.items()]
    lines += [f'{key}: "{value}"' for key, value in _TEXTS.items()]
    return ("\n".join(lines) + "\n").encode()


def information(device: DeviceSpec, driver_version: str) -> bytes:
    """`gpus/<bdf>/information`: what identifies one GPU; a line without a UUID is left out, as before it is known."""
    identity = f"GPU UUID: \t {device.uuid}\n" if device.uuid else ""
    return (
        f"Model: \t\t {device.name}\n"
        "IRQ:   \t\t 254\n"
        f"{identity}"
        f"Video BIOS: \t {device.vbios_version or UNKNOWN_VBIOS}\n"
        "Bus Type: \t PCIe\n"
        "DMA Size: \t 52 bits\n"
        "DMA Mask: \t 0xfffffffffffff\n"
        f"Bus Location: \t {device.pci_bus_id}\n"
        f"Device Minor: \t {device.minor_number}\n"
        f"GPU Firmware: \t {driver_version}\n"
        "GPU Excluded:\t No\n"
    ).encode()
