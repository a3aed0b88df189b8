"""What a program must show: taken from the compiled profile, not from what the node staged."""

from __future__ import annotations

from dataclasses import dataclass

from simnode.profile import Options, compile_state, load_board

MIB = 1024 * 1024


@dataclass(frozen=True)
class GPU:
    """One GPU in NVML's units: bytes, degrees Celsius, milliwatts; the bus id as NVML writes it."""

    index: int
    name: str
    uuid: str
    bus_id: str
    memory_total: int
    temperature: int
    power: int

    def csv(self) -> str:
        """The row of `--query-gpu=index,name,uuid,pci.bus_id,memory.total,temperature.gpu,power.draw --format=csv`."""
        return (
            f"{self.index}, {self.name}, {self.uuid}, {self.bus_id}, {self.memory_total // MIB} MiB, "
            f"{self.temperature}, {self.power / 1000:.2f} W"
        )


def gpus(*, board: str = "h100", count: int | None = None, overrides: tuple[str, ...] = ()) -> list[GPU]:
    """The GPUs of a built-in board, in NVML's order."""
    state = compile_state(load_board(board), Options(gpus=count, overrides=overrides), {}, generation=1)
    found = []
    for device, runtime in zip(state.devices, state.runtime.devices, strict=True):
        values = dict(runtime.values)
        temperature, power = values["thermal.temperature_gpu_c"], values["power.current_draw_mw"]
        assert isinstance(temperature, int)
        assert isinstance(power, int)
        bus_id = f"0000{device.pci_bus_id.upper()}"
        row = GPU(device.index, device.name, device.uuid, bus_id, device.memory_total_bytes, temperature, power)
        found.append(row)
    return found
