"""IMEX: the channels by which the nodes of an NVLink domain share memory, and the capability to manage them."""

from simnode.simulators.imex.simulator import IMEX
from simnode.simulators.imex.software import Software

__all__ = ["IMEX", "Software"]
