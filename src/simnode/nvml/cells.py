"""The one table of NVML values: name, kind, unit, the functions and field ids it feeds, its `nvidia-smi -q -x` element,
and what an unset value answers.

A cell's key is the profile's dotted key. From this table derive the C header and the plain getters
(`simnode.nvml.header`), the encoder (`simnode.nvml.image`), and everything else that must know which values there are.
Function names, enum values and field ids are those of nvml.h; units are NVML's.

Standard library only: the build runs this before anything is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from simnode.nvml import layout
from simnode.nvml.layout import RECORDS, Member, Record

SUCCESS = 0
NOT_SUPPORTED = 3
NO_PERMISSION = 4

_SWITCH = {"disabled": 0, "enabled": 1}


@dataclass(frozen=True)
class Cell:
    """One value of one device.

    `kind`: word, int (a signed word), wide, gauge, counter, guid, or text with its `length` in bytes, NUL included.
    `getters` are functions `(device, out*)`, for text `(device, char*, unsigned length)`, generated from this table;
    `functions` use the cell but are written by hand. `fields` are (field id, scope or -1 for any, value type letter: u
    unsigned int, i int, l unsigned long long). `unset` is the nvmlReturn_t when the profile says nothing; `default`, if
    given, is the value then, with SUCCESS. `choices` maps the profile's words to NVML's enum.
    """

    key: str
    kind: str
    unit: str = ""
    getters: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    fields: tuple[tuple[int, int, str], ...] = ()
    xml: str = ""
    unset: int = NOT_SUPPORTED
    default: int | None = None
    choices: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    length: int = 0

    @property
    def member(self) -> str:
        """The name of the cell in the C struct."""
        return self.key.replace(".", "_")

    @property
    def record(self) -> str:
        """The record that holds it."""
        if self.kind == "text":
            return f"text{self.length}"
        return "word" if self.kind == "int" else self.kind


def _d(*names: str) -> tuple[str, ...]:
    return tuple(f"nvmlDeviceGet{name}" for name in names)


def _word(key: str, *getters: str, unit: str = "", **more: object) -> Cell:
    return Cell(key, "word", unit, _d(*getters), **more)  # type: ignore[arg-type]


def _text(key: str, length: int, *getters: str, **more: object) -> Cell:
    return Cell(key, "text", "", _d(*getters), length=length, **more)  # type: ignore[arg-type]


def _gauge(key: str, unit: str, *getters: str, **more: object) -> Cell:
    return Cell(key, "gauge", unit, _d(*getters), **more)  # type: ignore[arg-type]


def _wide(key: str, unit: str = "", *getters: str, **more: object) -> Cell:
    return Cell(key, "wide", unit, _d(*getters), **more)  # type: ignore[arg-type]


BRANDS = {
    "unknown": 0,
    "quadro": 1,
    "tesla": 2,
    "nvs": 3,
    "grid": 4,
    "geforce": 5,
    "titan": 6,
    "nvidia_rtx": 13,
    "nvidia": 14,
}
ARCHITECTURES = {
    "kepler": 2,
    "maxwell": 3,
    "pascal": 4,
    "volta": 5,
    "turing": 6,
    "ampere": 7,
    "ada": 8,
    "ada_lovelace": 8,
    "hopper": 9,
    "blackwell": 10,
}
COMPUTE_MODES = {"default": 0, "exclusive_thread": 1, "prohibited": 2, "exclusive_process": 3}
VIRTUALIZATION = {"none": 0, "passthrough": 1, "vgpu": 2, "host_vgpu": 3, "host_vsga": 4}
ADDRESSING = {"none": 0, "hmm": 1, "ats": 2}
FABRIC_STATES = {"not_supported": 0, "not_started": 1, "in_progress": 2, "completed": 3}
PEER_TYPES = {"direct": 0, "switch_connected": 1}
PSTATES = {f"P{n}": n for n in range(16)} | {"unknown": 32}
OPERATION_MODES = {"all_on": 0, "compute": 1, "low_dp": 2}

_ECC_LOCATIONS = {"l1_cache": 0, "l2_cache": 1, "device_memory": 2, "register_file": 3, "texture_memory": 4, "cbu": 6}
# NVML_FI_DEV_ECC_{SBE,DBE}_{VOL,AGG}_*: totals 3-6, then per location (nvml.h)
_ECC_FIELDS = {
    ("volatile", "single_bit"): {"total": 3, "l1_cache": 7, "l2_cache": 9, "device_memory": 11, "register_file": 13,
                                 "texture_memory": 15},
    ("volatile", "double_bit"): {"total": 4, "l1_cache": 8, "l2_cache": 10, "device_memory": 12, "register_file": 14,
                                 "texture_memory": 16, "cbu": 17},
    ("aggregate", "single_bit"): {"total": 5, "l1_cache": 18, "l2_cache": 20, "device_memory": 22, "register_file": 24,
                                  "texture_memory": 26},
    ("aggregate", "double_bit"): {"total": 6, "l1_cache": 19, "l2_cache": 21, "device_memory": 23, "register_file": 25,
                                  "texture_memory": 27, "cbu": 28},
}  # fmt: skip


def _ecc() -> tuple[Cell, ...]:
    cells = []
    for (scope, bits), ids in _ECC_FIELDS.items():
        for location in (*_ECC_LOCATIONS, "total"):
            ids_of = ((ids[location], -1, "l"),) if location in ids else ()
            functions = (
                ("nvmlDeviceGetTotalEccErrors",) if location == "total" else ("nvmlDeviceGetMemoryErrorCounter",)
            )
            key = f"ecc.errors.{scope}.{bits}.{location}"
            cells.append(Cell(key, "wide", "", functions=functions, fields=ids_of, default=0))
    for scope in ("volatile", "aggregate"):
        for what in ("correctable", "uncorrectable_parity", "uncorrectable_secded"):
            cells.append(_wide(f"ecc.sram.{scope}.{what}", functions=_d("SramEccErrorStatus", "MemoryErrorCounter"),
                               xml=f"ecc_errors/{scope}/sram_{what}", default=0))  # fmt: skip
    for source in ("l2", "sm", "microcontroller", "pcie", "other"):
        cells.append(_wide(f"ecc.sram.uncorrectable_sources.{source}", functions=_d("SramEccErrorStatus"), default=0,
                           xml=f"ecc_errors/aggregate_uncorrectable_sram_sources/sram_{source}"))  # fmt: skip
    return tuple(cells)


# The values that monitors poll come first, so that they share cache lines.
CELLS: tuple[Cell, ...] = (
    _gauge("thermal.temperature_gpu_c", "C", functions=_d("Temperature", "TemperatureV", "ThermalSettings"),
           xml="temperature/gpu_temp"),
    _gauge("power.current_draw_mw", "mW", "PowerUsage", fields=((186, 0, "u"),),
           xml="gpu_power_readings/instant_power_draw"),
    _gauge("power.average_draw_mw", "mW", fields=((185, 0, "u"),), xml="gpu_power_readings/average_power_draw"),
    _gauge("utilization.gpu", "%", functions=_d("UtilizationRates"), xml="utilization/gpu_util"),
    _gauge("utilization.memory", "%", functions=_d("UtilizationRates"), xml="utilization/memory_util"),
    _wide("memory.total_bytes", "B", functions=_d("MemoryInfo", "MemoryInfo_v2"), xml="fb_memory_usage/total"),
    _wide("memory.reserved_bytes", "B", functions=_d("MemoryInfo_v2"), xml="fb_memory_usage/reserved", default=0),
    _gauge("memory.used_bytes", "B", functions=_d("MemoryInfo", "MemoryInfo_v2"), xml="fb_memory_usage/used"),
    _gauge("clocks.graphics_current", "MHz", functions=_d("ClockInfo", "Clock"), xml="clocks/graphics_clock"),
    _gauge("clocks.sm_current", "MHz", functions=_d("ClockInfo", "Clock"), xml="clocks/sm_clock"),
    _gauge("clocks.memory_current", "MHz", functions=_d("ClockInfo", "Clock"), xml="clocks/mem_clock"),
    _gauge("clocks.video_current", "MHz", functions=_d("ClockInfo", "Clock"), xml="clocks/video_clock"),
    _gauge("thermal.temperature_memory_c", "C", fields=((82, -1, "u"),), xml="temperature/memory_temp"),
    _gauge("fan.speed_percent", "%", "FanSpeed", functions=_d("FanSpeed_v2"), xml="fan_speed"),
    Cell("power.total_energy_consumption_mj", "counter", "mJ", _d("TotalEnergyConsumption"),
         fields=((83, -1, "l"), (191, -1, "l"))),
    _word("performance_state", "PerformanceState", "PowerState", choices=PSTATES, xml="performance_state"),
    _wide("clocks_throttle_reasons.active", "mask", "CurrentClocksEventReasons", "CurrentClocksThrottleReasons",
          default=0),
    _wide("clocks_throttle_reasons.supported", "mask", "SupportedClocksEventReasons", "SupportedClocksThrottleReasons",
          default=0x1FF),
    # identity
    _text("name", 96, xml="product_name", functions=_d("Name")),
    _text("uuid", 96, xml="uuid", functions=_d("UUID")),
    _text("serial", 32, "Serial", xml="serial"),
    _word("minor_number", "MinorNumber", xml="minor_number"),
    _word("brand", "Brand", choices=BRANDS, xml="product_brand", default=0),
    _word("architecture", "Architecture", choices=ARCHITECTURES, xml="product_architecture", default=0xFFFFFFFF),
    _word("compute_capability.major", functions=_d("CudaComputeCapability")),
    _word("compute_capability.minor", functions=_d("CudaComputeCapability")),
    _word("num_gpu_cores", "NumGpuCores"),
    _text("vbios_version", 32, "VbiosVersion", xml="vbios_version"),
    _text("board_part_number", 80, "BoardPartNumber", xml="board_part_number"),
    _text("gpu_part_number", 80, xml="gpu_part_number"),
    _text("gpu_fru_part_number", 24, xml="gpu_fru_part_number"),
    _word("board_id", "BoardId", xml="board_id"),
    _word("multigpu_board", "MultiGpuBoard", xml="multigpu_board", default=0),
    _wide("pdi", "", xml="pdi", functions=_d("Pdi")),
    _word("addressing_mode", choices=ADDRESSING, xml="addressing_mode", functions=_d("AddressingMode")),
    _word("sparse_operation_mode", choices=_SWITCH, xml="sparse_operation_mode"),
    _word("capabilities", functions=_d("Capabilities"), default=0),
    _word("recovery_action", fields=((230, -1, "u"),), xml="gpu_recovery_action", default=0),
    _word("gpu_reset.required", fields=((226, -1, "u"),), xml="gpu_reset_status/reset_required", default=0),
    _word("gpu_reset.drain_recommended", fields=((227, -1, "u"),),
          xml="gpu_reset_status/drain_and_reset_recommended"),
    _word("multiprocessor_count"),
    _text("inforom.image_version", 16, "InforomImageVersion", xml="inforom_version/img_version"),
    _text("inforom.oem_object", 16, xml="inforom_version/oem_object", functions=_d("InforomVersion")),
    _text("inforom.ecc_object", 16, xml="inforom_version/ecc_object", functions=_d("InforomVersion")),
    _text("inforom.pwr_object", 16, xml="inforom_version/pwr_object", functions=_d("InforomVersion")),
    _wide("inforom.bbx_flush_time_us", "us", functions=_d("LastBBXFlushTime"),
          xml="inforom_bbx_flush/latest_timestamp"),
    _wide("inforom.bbx_flush_duration_us", "us", functions=_d("LastBBXFlushTime"),
          xml="inforom_bbx_flush/latest_duration"),
    _word("gsp_firmware.mode", choices=_SWITCH, functions=_d("GspFirmwareMode"), default=1),
    _text("gsp_firmware.version", 64, xml="gsp_firmware_version", functions=_d("GspFirmwareVersion")),
    _text("platform.chassis_serial_number", 24, xml="platformInfo/chassis_serial_number", functions=_d("PlatformInfo")),
    _word("platform.slot_number", xml="platformInfo/slot_number", functions=_d("PlatformInfo")),
    _word("platform.tray_index", xml="platformInfo/tray_index", functions=_d("PlatformInfo")),
    _word("platform.host_id", xml="platformInfo/host_id", functions=_d("PlatformInfo")),
    _word("platform.peer_type", choices=PEER_TYPES, xml="platformInfo/peer_type", functions=_d("PlatformInfo")),
    _word("platform.module_id", "ModuleId", xml="platformInfo/module_id"),
    Cell("platform.fabric_guid", "wide", "", functions=_d("PlatformInfo"), xml="platformInfo/gpu_fabric_guid"),
    # PCI
    _word("pci.domain", xml="pci/pci_domain", functions=_d("PciInfo_v3", "PciInfoExt")),
    _word("pci.bus", xml="pci/pci_bus", functions=_d("PciInfo_v3", "PciInfoExt")),
    _word("pci.device", xml="pci/pci_device", functions=_d("PciInfo_v3", "PciInfoExt")),
    _word("pci.device_id", xml="pci/pci_device_id", functions=_d("PciInfo_v3", "PciInfoExt")),
    _word("pci.subsystem_id", xml="pci/pci_sub_system_id", functions=_d("PciInfo_v3", "PciInfoExt")),
    _word("pci.base_class", xml="pci/pci_base_class", functions=_d("PciInfoExt"), default=3),
    _word("pci.sub_class", xml="pci/pci_sub_class", functions=_d("PciInfoExt"), default=2),
    _word("pcie.max_link_gen", "MaxPcieLinkGeneration", xml="pci/pci_gpu_link_info/pcie_gen/max_link_gen"),
    _word("pcie.current_link_gen", "CurrPcieLinkGeneration", xml="pci/pci_gpu_link_info/pcie_gen/current_link_gen"),
    _word("pcie.device_max_link_gen", "GpuMaxPcieLinkGeneration",
          xml="pci/pci_gpu_link_info/pcie_gen/max_device_link_gen"),
    _word("pcie.host_max_link_gen", xml="pci/pci_gpu_link_info/pcie_gen/max_host_link_gen"),
    _word("pcie.max_link_width", "MaxPcieLinkWidth", xml="pci/pci_gpu_link_info/link_widths/max_link_width"),
    _word("pcie.current_link_width", "CurrPcieLinkWidth", xml="pci/pci_gpu_link_info/link_widths/current_link_width"),
    _word("pcie.replay_counter", "PcieReplayCounter", fields=((94, -1, "u"),), xml="pci/replay_counter", default=0),
    _word("pcie.replay_rollover_counter", fields=((95, -1, "u"),), xml="pci/replay_rollover_counter", default=0),
    _gauge("pcie.tx_throughput_kbps", "KB/s", functions=_d("PcieThroughput"), xml="pci/tx_util", default=0),
    _gauge("pcie.rx_throughput_kbps", "KB/s", functions=_d("PcieThroughput"), xml="pci/rx_util", default=0),
    _word("pcie.atomic_caps_outbound", fields=((228, -1, "u"),), xml="pci/atomic_caps_outbound"),
    _word("pcie.atomic_caps_inbound", fields=((229, -1, "u"),), xml="pci/atomic_caps_inbound"),
    *(_word(f"pcie.errors.{name}", fields=((field_id, -1, "u"),), default=0)
      for name, field_id in (("l0_to_recovery", 169), ("correctable", 173), ("naks_received", 174), ("receiver", 175),
                             ("bad_tlp", 176), ("naks_sent", 177), ("bad_dllp", 178), ("non_fatal", 179),
                             ("fatal", 180), ("unsupported_request", 181), ("lcrc", 182), ("lane", 183))),
    # memory
    _word("memory.memory_bus_width", "MemoryBusWidth", unit="bit"),
    _wide("bar1_memory.total_bytes", "B", functions=_d("BAR1MemoryInfo"), xml="bar1_memory_usage/total"),
    _wide("bar1_memory.used_bytes", "B", functions=_d("BAR1MemoryInfo"), xml="bar1_memory_usage/used", default=0),
    _wide("cc_protected_memory.total_bytes", "B", functions=_d("ConfComputeProtectedMemoryUsage"),
          xml="cc_protected_memory_usage/total", default=0),
    _wide("cc_protected_memory.used_bytes", "B", functions=_d("ConfComputeProtectedMemoryUsage"),
          xml="cc_protected_memory_usage/used", default=0),
    # power
    _word("power.management_mode", "PowerManagementMode", choices=_SWITCH),
    _word("power.enforced_limit_mw", "EnforcedPowerLimit", fields=((190, 0, "u"),), unit="mW",
          xml="gpu_power_readings/current_power_limit"),
    _word("power.requested_limit_mw", "PowerManagementLimit", fields=((192, 0, "u"),), unit="mW",
          xml="gpu_power_readings/requested_power_limit"),
    _word("power.default_limit_mw", "PowerManagementDefaultLimit", fields=((189, 0, "u"),), unit="mW",
          xml="gpu_power_readings/default_power_limit"),
    _word("power.min_limit_mw", fields=((187, 0, "u"),), functions=_d("PowerManagementLimitConstraints"), unit="mW",
          xml="gpu_power_readings/min_power_limit"),
    _word("power.max_limit_mw", fields=((188, 0, "u"),), functions=_d("PowerManagementLimitConstraints"), unit="mW",
          xml="gpu_power_readings/max_power_limit"),
    _gauge("power.memory.average_draw_mw", "mW", fields=((185, 2, "u"),),
           xml="gpu_memory_power_readings/average_power_draw"),
    _gauge("power.memory.current_draw_mw", "mW", fields=((186, 2, "u"),),
           xml="gpu_memory_power_readings/instant_power_draw"),
    _gauge("power.module.average_draw_mw", "mW", fields=((185, 1, "u"),),
           xml="module_power_readings/average_power_draw"),
    _gauge("power.module.current_draw_mw", "mW", fields=((186, 1, "u"),),
           xml="module_power_readings/instant_power_draw"),
    _word("power.module.enforced_limit_mw", fields=((190, 1, "u"),), unit="mW",
          xml="module_power_readings/current_power_limit"),
    _word("power.module.requested_limit_mw", fields=((192, 1, "u"),), unit="mW",
          xml="module_power_readings/requested_power_limit"),
    _word("power.module.default_limit_mw", fields=((189, 1, "u"),), unit="mW",
          xml="module_power_readings/default_power_limit"),
    _word("power.module.min_limit_mw", fields=((187, 1, "u"),), unit="mW", xml="module_power_readings/min_power_limit"),
    _word("power.module.max_limit_mw", fields=((188, 1, "u"),), unit="mW", xml="module_power_readings/max_power_limit"),
    _word("power.edpp_multiplier", fields=((274, -1, "u"),), unit="%", xml="edpp_multiplier"),
    _word("power_smoothing.mode", choices=_SWITCH, xml="power_smoothing"),
    _wide("power_profiles.requested", "mask", xml="power_profiles/power_profile_requested_profiles"),
    _wide("power_profiles.enforced", "mask", xml="power_profiles/power_profile_enforced_profiles"),
    # thermal
    _word("thermal.shutdown_threshold_c", functions=_d("TemperatureThreshold"), unit="C"),
    _word("thermal.slowdown_threshold_c", functions=_d("TemperatureThreshold"), unit="C"),
    _word("thermal.max_operating_c", functions=_d("TemperatureThreshold"), unit="C"),
    _word("thermal.memory_max_c", functions=_d("TemperatureThreshold"), unit="C"),
    _word("thermal.target_temperature_c", functions=_d("TemperatureThreshold"), unit="C"),
    _word("thermal.tlimit.reference_c", functions=_d("MarginTemperature"), unit="C"),
    Cell("thermal.tlimit.shutdown_c", "int", "C", fields=((193, -1, "i"),),
         xml="temperature/gpu_temp_max_tlimit_threshold"),
    Cell("thermal.tlimit.slowdown_c", "int", "C", fields=((194, -1, "i"),),
         xml="temperature/gpu_temp_slow_tlimit_threshold"),
    Cell("thermal.tlimit.memory_max_c", "int", "C", fields=((195, -1, "i"),),
         xml="temperature/gpu_temp_max_mem_tlimit_threshold"),
    Cell("thermal.tlimit.max_operating_c", "int", "C", fields=((196, -1, "i"),),
         xml="temperature/gpu_temp_max_gpu_tlimit_threshold"),
    _word("fan.count", "NumFans", default=0),
    # clocks
    _word("clocks.graphics_max", functions=_d("MaxClockInfo"), unit="MHz", xml="max_clocks/graphics_clock"),
    _word("clocks.sm_max", functions=_d("MaxClockInfo"), unit="MHz", xml="max_clocks/sm_clock"),
    _word("clocks.memory_max", functions=_d("MaxClockInfo"), unit="MHz", xml="max_clocks/mem_clock"),
    _word("clocks.video_max", functions=_d("MaxClockInfo"), unit="MHz", xml="max_clocks/video_clock"),
    _word("clocks.graphics_app", functions=_d("ApplicationsClock"), unit="MHz",
          xml="applications_clocks/graphics_clock"),
    _word("clocks.memory_app", functions=_d("ApplicationsClock"), unit="MHz", xml="applications_clocks/mem_clock"),
    _word("clocks.graphics_app_default", functions=_d("DefaultApplicationsClock"), unit="MHz",
          xml="default_applications_clocks/graphics_clock"),
    _word("clocks.memory_app_default", functions=_d("DefaultApplicationsClock"), unit="MHz",
          xml="default_applications_clocks/mem_clock"),
    _word("clocks.graphics_customer_boost_max", functions=_d("MaxCustomerBoostClock", "Clock"), unit="MHz",
          xml="max_customer_boost_clocks/graphics_clock"),
    *(Cell(f"clocks_throttle_reasons.counters.{cause}_us", "counter", "us", functions=_d("ViolationStatus"),
           xml=f"clocks_event_reasons_counters/clocks_event_reasons_counters_{element}")
      for cause, element in (("sw_power_cap", "sw_power_cap"), ("sync_boost", "sync_boost"),
                             ("sw_thermal_slowdown", "sw_therm_slowdown"), ("hw_thermal_slowdown", "hw_therm_slowdown"),
                             ("hw_power_brake_slowdown", "hw_power_brake"))),
    # utilisation
    _gauge("utilization.encoder", "%", functions=_d("EncoderUtilization"), xml="utilization/encoder_util", default=0),
    _gauge("utilization.decoder", "%", functions=_d("DecoderUtilization"), xml="utilization/decoder_util", default=0),
    _gauge("utilization.jpeg", "%", functions=_d("JpgUtilization"), xml="utilization/jpeg_util"),
    _gauge("utilization.ofa", "%", functions=_d("OfaUtilization"), xml="utilization/ofa_util"),
    *(_word(f"{unit}_stats.{what}", functions=_d(function), xml=f"{unit}_stats/{xml}", default=0)
      for unit, function in (("encoder", "EncoderStats"), ("fbc", "FBCStats"))
      for what, xml in (("session_count", "session_count"), ("average_fps", "average_fps"),
                        ("average_latency_us", "average_latency"))),
    # modes
    _word("persistence_mode", "PersistenceMode", choices=_SWITCH, xml="persistence_mode", default=0),
    _word("compute_mode", "ComputeMode", choices=COMPUTE_MODES, xml="compute_mode", default=0),
    _word("display.mode", "DisplayMode", choices=_SWITCH, xml="display_mode", default=0),
    _word("display.active", "DisplayActive", choices=_SWITCH, xml="display_active", default=0),
    _word("mig.mode_current", choices=_SWITCH, functions=_d("MigMode"), xml="mig_mode/current_mig"),
    _word("mig.mode_pending", choices=_SWITCH, functions=_d("MigMode"), xml="mig_mode/pending_mig"),
    _word("mig.max_gpu_instances", functions=_d("MaxMigDeviceCount"), default=0),
    _word("accounting.mode", "AccountingMode", choices=_SWITCH, xml="accounting_mode"),
    _word("accounting.buffer_size", "AccountingBufferSize", xml="accounting_mode_buffer_size"),
    _word("virtualization.mode", "VirtualizationMode", choices=VIRTUALIZATION, default=0,
          xml="gpu_virtualization_mode/virtualization_mode"),
    _word("gpu_operation_mode.current", choices=OPERATION_MODES, functions=_d("GpuOperationMode"),
          xml="gpu_operation_mode/current_gom"),
    _word("gpu_operation_mode.pending", choices=OPERATION_MODES, functions=_d("GpuOperationMode"),
          xml="gpu_operation_mode/pending_gom"),
    _word("c2c.mode", choices=_SWITCH, functions=_d("C2cModeInfoV"), xml="c2c_mode"),
    # reliability
    _word("dram_encryption.mode_current", choices=_SWITCH, functions=_d("DramEncryptionMode"),
          xml="dram_encryption_mode/current_dram_encryption"),
    _word("dram_encryption.mode_pending", choices=_SWITCH, functions=_d("DramEncryptionMode"),
          xml="dram_encryption_mode/pending_dram_encryption"),
    _word("ecc.mode_current", choices=_SWITCH, functions=_d("EccMode"), fields=((1, -1, "u"),),
          xml="ecc_mode/current_ecc"),
    _word("ecc.mode_pending", choices=_SWITCH, functions=_d("EccMode"), fields=((2, -1, "u"),),
          xml="ecc_mode/pending_ecc"),
    _word("ecc.default_mode", "DefaultEccMode", choices=_SWITCH),
    _word("ecc.sram.threshold_exceeded", functions=_d("SramEccErrorStatus"), default=0,
          xml="ecc_errors/aggregate/sram_threshold_exceeded"),
    *_ecc(),
    _word("retired_pages.single_bit_retirement.count", functions=_d("RetiredPages")),
    _word("retired_pages.double_bit_retirement.count", functions=_d("RetiredPages")),
    _word("retired_pages.pending_retirement", "RetiredPagesPendingStatus"),
    _word("remapped_rows.correctable", functions=_d("RemappedRows"), fields=((142, -1, "u"),),
          xml="remapped_rows/remapped_row_corr"),
    _word("remapped_rows.uncorrectable", functions=_d("RemappedRows"), fields=((143, -1, "u"),),
          xml="remapped_rows/remapped_row_unc"),
    _word("remapped_rows.correctable_inactive", functions=_d("RemappedRows_v2"), fields=((301, -1, "u"),),
          xml="remapped_rows/remapped_row_corr_inactive"),
    _word("remapped_rows.uncorrectable_inactive", functions=_d("RemappedRows_v2"), fields=((302, -1, "u"),),
          xml="remapped_rows/remapped_row_unc_inactive"),
    _word("remapped_rows.pending", functions=_d("RemappedRows"), fields=((144, -1, "u"),),
          xml="remapped_rows/remapped_row_pending"),
    _word("remapped_rows.failure_occurred", functions=_d("RemappedRows"), fields=((145, -1, "u"),),
          xml="remapped_rows/remapped_row_failure"),
    *(_word(f"remapped_rows.availability_histogram.{grade}", functions=_d("RowRemapperHistogram"), unit="banks",
            xml=f"remapped_rows/row_remapper_histogram/row_remapper_histogram_{grade}")
      for grade in ("max", "high", "partial", "low", "none")),
    _word("repair.channel_pending", functions=_d("RepairStatus"), xml="ecc_errors/channel_repair_pending"),
    _word("repair.tpc_pending", functions=_d("RepairStatus"), xml="ecc_errors/tpc_repair_pending"),
    _word("repair.unrepairable_memory", functions=_d("UnrepairableMemoryFlag_v1"),
          xml="ecc_errors/unrepairable_memory"),
    # fabric and topology
    Cell("fabric.cluster_uuid", "guid", functions=_d("GpuFabricInfo", "GpuFabricInfoV"), xml="fabric/clusterUuid"),
    _word("fabric.clique_id", functions=_d("GpuFabricInfo", "GpuFabricInfoV"), xml="fabric/cliqueId"),
    _word("fabric.state", choices=FABRIC_STATES, functions=_d("GpuFabricInfo", "GpuFabricInfoV"), xml="fabric/state"),
    _word("fabric.status", functions=_d("GpuFabricInfo", "GpuFabricInfoV"), xml="fabric/status", default=0),
    _word("fabric.health_mask", functions=_d("GpuFabricInfoV"), default=0),
    _word("fabric.health_summary", functions=_d("GpuFabricInfoV"), xml="fabric/health/summary", default=0),
    _word("numa_node", "NumaNodeId"),
    # NVLink's generation as products count it; each link carries the nvmlNvlinkVersion_t that follows
    _word("nvlink.version"),
)  # fmt: skip

BY_KEY: Mapping[str, Cell] = MappingProxyType({cell.key: cell for cell in CELLS})

for _length in sorted({cell.length for cell in CELLS if cell.kind == "text"} | {80}):
    layout.record(f"text{_length}", "a NUL-terminated string", ("value", "char", _length), ("status", "u32"))

NODE: Record = layout.record(
    "node",
    "what belongs to the node as a whole; counters_until is 0 or the last tick at which this slot's counters may be "
    "read (set once, by the publish that is about to supersede them); anchors are ticks of boot boot_id; init_code is "
    "what nvmlInit answers",
    ("generation", "u64"),
    ("counters_until", "u64"),
    ("device_count", "u32"),
    ("cuda_version", "u32"),
    ("init_code", "u32"),
    ("driver_version", "char", 80),
    ("nvml_version", "char", 80),
    ("boot_id", "char", 40),
)
DEVICE: Record = Record(
    "device",
    (
        Member("present", "u32"),
        Member("epoch", "u32"),
        Member("lost", "u32"),
        Member("clocks_count", "u32"),
        Member("process_count", "u32"),
        Member("link_count", "u32"),
        Member("mig_count", "u32"),
        *(Member(cell.member, cell.record) for cell in CELLS),
        Member("curve", "curve"),
        Member("old_curve", "curve"),
        Member("cpu_affinity", "u64", layout.CPU_WORDS),
        Member("memory_affinity", "u64", 4),
        Member("ancestor", "u8", layout.MAX_DEVICES),
        Member("p2p", "u8", layout.MAX_DEVICES),
        Member("clocks", "clocks", layout.MAX_MEMORY_CLOCKS),
        Member("link", "link", layout.MAX_LINKS),
        Member("mig", "mig", layout.MAX_MIG_DEVICES),
        Member("gpu_instance", "gpu_instance", layout.MAX_GPU_INSTANCES),
        Member("mig_profile", "mig_profile", layout.MAX_MIG_PROFILES),
        Member("process", "process", layout.MAX_PROCESSES),
    ),
    "one device: epoch counts the identities this index has had; lost is 0 or what every getter answers; ancestor is "
    "nvmlGpuTopologyLevel_t and p2p nvmlGpuP2PStatus_t towards each other device",
    RECORDS,
)
RECORDS["device"] = DEVICE
SLOT: Record = layout.record("slot", "every value, whole", ("node", "node"), ("device", "device", layout.MAX_DEVICES))
HEADER: Record = layout.record(
    "header",
    "publish n goes to slot n & 1: begin = n, the slot, done = n. A copy from slot done & 1 is whole if afterwards "
    "begin < done + 2. event_sequence (a futex) is the number of the newest event, event_total its 64 bits",
    ("magic", "u64"),
    ("format", "u32"),
    ("header_bytes", "u32"),
    ("slot_bytes", "u64"),
    ("image_bytes", "u64"),
    ("begin", "u64"),
    ("done", "u64"),
    ("event_total", "u64"),
    ("event_sequence", "u32"),
)
IMAGE: Record = layout.record(
    "image",
    "the whole file",
    ("header", "header"),
    ("padding", "u8", 4096 - HEADER.size),
    ("slot", "slot", 2),
    ("event", "event", layout.MAX_EVENTS),
)
