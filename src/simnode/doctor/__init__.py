"""Looks at a node from outside, as each consumer would meet it, and says what that consumer would find wrong.

It judges by what is on disk and by what NVML and the agent answer; it asks neither profile nor State, changes nothing,
and takes for granted what a node says that it does not have (partitions, IMEX, a fabric manager).
"""

from simnode.doctor.consumers import CONSUMERS, examine
from simnode.doctor.findings import Finding
from simnode.doctor.view import View, beside, of_host, of_local

__all__ = ["CONSUMERS", "Finding", "View", "beside", "examine", "of_host", "of_local"]
