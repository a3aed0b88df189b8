"""The profiles that the fire asks for: a built-in board with a few of its features turned, and what must come of it."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache

from simnode.profile import load_board
from simnode.state import State

DRIVERS = ("580.105.08", "550.163.01", "535.261.03")
MIG = {"a100": "1g.5gb", "h100": "1g.10gb", "b200": "1g.23gb"}
BOARDS = ("t4", "a100", "h100", "b200", "gb200")
MOST_GPUS = 16

TOPOLOGY = """\
version: 1
domains:
  - uuid: 00000000-0000-0000-0000-000000000001
    cliques:
      - {id: 3, nodes: [node-1]}
"""
GARBAGE = ("", "{", "version: 1\nsystem: [", "system: {num_devices: many}\n", "\x00\x01", "- 1\n")
"""Documents that are no profiles."""
BROKEN = (*GARBAGE[1:], "}")
"""Documents that are nothing at all, with the one that a topology is broken with."""


@cache
def _board(name: str) -> str:
    return load_board(name).raw.decode()


@dataclass(frozen=True)
class Wish:
    """What a profile asks for."""

    board: str = "h100"
    gpus: int = 8
    driver: str = DRIVERS[0]
    nvlink: bool = True
    fabric_manager: bool = False
    imex: int = 0
    mig: int = 0

    @classmethod
    def any(cls, chance: random.Random) -> Wish:
        """One by chance: mostly few GPUs, for each costs time."""
        board = chance.choice(BOARDS)
        gpus = chance.choice((0, 1, 1, 2, 2, 2, 3, 4, 4, 8, MOST_GPUS))
        return cls(
            board,
            gpus,
            chance.choice(DRIVERS),
            chance.random() < 0.7,
            chance.random() < 0.5,
            chance.choice((0, 0, 1, 4)),
            chance.randint(0, 3) if board in MIG and gpus else 0,
        )

    def changed(self, chance: random.Random) -> Wish:
        """The same but for a part of it, which may come out as it was."""
        other = Wish.any(chance)
        return chance.choice(
            (
                other,
                Wish(self.board, other.gpus, self.driver, self.nvlink, self.fabric_manager, self.imex),
                Wish(self.board, self.gpus, other.driver, self.nvlink, self.fabric_manager, self.imex, self.mig),
                Wish(self.board, self.gpus, self.driver, other.nvlink, other.fabric_manager, other.imex, self.mig),
            )
        )

    @property
    def text(self) -> str:
        """The document."""
        text = _board(self.board)
        text = re.sub(r"num_devices: \d+", f"num_devices: {self.gpus}", text)
        text = re.sub(r'driver_version: "[\d.]+"', f'driver_version: "{self.driver}"', text)
        text = re.sub(r'nvml_version: "[\d.]+"', f'nvml_version: "13.{self.driver}"', text)
        # The T4's root complexes name devices that a smaller node does not have
        gone = ["nvlink"] * (not self.nvlink) + ["pcie_topology"] * (self.board == "t4")
        for section in gone:
            text = re.sub(rf"^{section}:\n(?:[ #].*\n|\n)*", "", text, flags=re.MULTILINE)
        text += f"\nfabricmanager: {{enabled: {str(self.fabric_manager).lower()}}}\n"
        if self.imex:
            text += f"imex: {{enabled: true, channels: {self.imex}}}\n"
        if self.mig:
            instances = ", ".join([f"{{profile: {MIG[self.board]}}}"] * self.mig)
            text += f"mig: {{gpus: [{{gpu_instances: [{instances}]}}]}}\n"
        return text

    def came_true(self, state: State) -> bool:
        """True if this is the State that such a profile gives."""
        instances = max((len(gpu.gpu_instances) for gpu in state.mig.gpus), default=0)
        manager = bool(state.fabric.manager_state_dir)
        channels = state.imex.channels if state.imex.enabled else 0
        found = (len(state.devices), state.software.driver_version, manager, channels, instances)
        return found == (self.gpus, self.driver, self.fabric_manager, self.imex, self.mig)
