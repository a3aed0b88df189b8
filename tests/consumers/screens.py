"""What nvidia-smi's screens say, as figures."""

from __future__ import annotations

import re


def monitored(output: str) -> list[dict[str, str]]:
    """The rows of `dmon` or `pmon`, each cell by the name of its column."""
    lines = [line.split() for line in output.splitlines()]
    return [dict(zip(lines[0][1:], cells, strict=True)) for cells in lines if cells[0] != "#"]


def matrix(output: str) -> list[list[str]]:
    """The cells between GPUs of `topo -m` or `topo -p2p`."""
    lines = re.findall(r"^ ?GPU\d+\t(.*)$", output, re.M)
    return [[cell.strip() for cell in line.split("\t")[: len(lines)]] for line in lines]


def between(count: int, cell: str) -> list[list[str]]:
    """The matrix of so many GPUs that are all the same to one another."""
    return [["X" if row == column else cell for column in range(count)] for row in range(count)]
