"""The texts below /proc/driver/nvidia, byte for byte."""

from __future__ import annotations

import re

import msgspec
import pytest

from simnode.simulators.gpudriver import procfs
from tests.simulators.states import device


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_version_is_the_open_modules_banner(machine: str) -> None:
    assert procfs.version("550.163.01", machine).decode() == (
        f"NVRM version: NVIDIA UNIX Open Kernel Module for {machine}  550.163.01  Release Build  (builder)  "
        "Tue Jun 25 01:26:03 UTC 2024\n"
        "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
    )


def test_params_are_a_drivers_in_its_order() -> None:
    assert procfs.params().decode() == (
        "ResmanDebugLevel: 4294967295\n"
        "RmLogonRC: 1\n"
        "ModifyDeviceFiles: 1\n"
        "DeviceFileUID: 0\n"
        "DeviceFileGID: 0\n"
        "DeviceFileMode: 438\n"
        "InitializeSystemMemoryAllocations: 1\n"
        "UsePageAttributeTable: 4294967295\n"
        "EnableMSI: 1\n"
        "EnablePCIeGen3: 0\n"
        "MemoryPoolSize: 0\n"
        "KMallocHeapMaxSize: 0\n"
        "VMallocHeapMaxSize: 0\n"
        "IgnoreMMIOCheck: 0\n"
        "EnableStreamMemOPs: 0\n"
        "EnableUserNUMAManagement: 0\n"
        "NvLinkDisable: 0\n"
        "RmProfilingAdminOnly: 1\n"
        "PreserveVideoMemoryAllocations: 1\n"
        "EnableS0ixPowerManagement: 1\n"
        "S0ixPowerManagementVideoMemoryThreshold: 256\n"
        "DynamicPowerManagement: 3\n"
        "DynamicPowerManagementVideoMemoryThreshold: 200\n"
        "RegisterPCIDriver: 1\n"
        "EnablePCIERelaxedOrderingMode: 0\n"
        "EnableResizableBar: 0\n"
        "EnableGpuFirmware: 18\n"
        "EnableGpuFirmwareLogs: 2\n"
        "RmNvlinkBandwidthLinkCount: 0\n"
        "EnableDbgBreakpoint: 0\n"
        "OpenRmEnableUnsupportedGpus: 1\n"
        "DmaRemapPeerMmio: 1\n"
        "ImexChannelCount: 2048\n"
        "CreateImexChannel0: 0\n"
        "GrdmaPciTopoCheckOverride: 1\n"
        'CoherentGPUMemoryMode: "driver"\n'
        'RegistryDwords: ""\n'
        'RegistryDwordsPerDevice: ""\n'
        'RmMsg: ""\n'
        'GpuBlacklist: ""\n'
        'TemporaryFilePath: "/var/tmp"\n'
        'ExcludedGpus: ""\n'
    )


def test_nvidia_modprobe_reads_the_four_that_it_wants_before_it_stops() -> None:
    read = {}
    for line in procfs.params().decode().splitlines():
        match = re.match(r"([^:]{1,31}): *(\d+)", line)
        if match is None:
            break
        read[match[1]] = int(match[2])
    wanted = {"ModifyDeviceFiles": 1, "DeviceFileUID": 0, "DeviceFileGID": 0, "DeviceFileMode": 0o666}
    assert read.items() >= wanted.items()


def test_information_is_a_drivers() -> None:
    assert procfs.information(device(2), "535.129.03").decode() == (
        "Model: \t\t NVIDIA H100 80GB HBM3\n"
        "IRQ:   \t\t 254\n"
        "GPU UUID: \t GPU-00000000-0000-4000-8000-000000000002\n"
        "Video BIOS: \t 96.00.99.00.01\n"
        "Bus Type: \t PCIe\n"
        "DMA Size: \t 52 bits\n"
        "DMA Mask: \t 0xfffffffffffff\n"
        "Bus Location: \t 0000:09:00.0\n"
        "Device Minor: \t 61\n"
        "GPU Firmware: \t 535.129.03\n"
        "GPU Excluded:\t No\n"
    )


def test_information_without_identity_has_no_uuid_and_an_unknown_bios() -> None:
    text = procfs.information(msgspec.structs.replace(device(0), uuid="", vbios_version=""), "535.129.03").decode()
    assert "UUID" not in text
    assert "Video BIOS: \t ??.??.??.??.??\n" in text
