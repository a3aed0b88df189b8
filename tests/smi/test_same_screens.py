"""Our nvidia-smi prints what the real one prints in every condition of a node: to the byte, but for the time of day."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.smi.conditions import CONDITIONS
from tests.smi.conftest import Images, Screen, Smi

# The real program is of one release whatever driver it meets; ours is always the node's.
OWN_RELEASE = re.compile(r"(?<=^\| NVIDIA-SMI )[0-9.]+ +(?=Driver Version)", re.MULTILINE)
CLOCK = re.compile(r"\A[A-Z][a-z]{2} [A-Z][a-z]{2} [ 1-3]\d \d\d:\d\d:\d\d \d{4} {7}\n")

# Who a GPU is, whether it is there, and how it is partitioned.
TOLD_BY_LIST = ("gpus-", "name", "uuid-", "bus-id-", "addresses", "lost-", "sick-", "driver-", "mig-", "mixed-", "all-")
VIEWS = (
    "",
    "-L",
    "-q",
    "-q -x",
    "--query-gpu=name,uuid,power.draw,clocks_throttle_reasons.active --format=csv",
    "--query-compute-apps=gpu_name,pid,name,used_memory --format=csv",
    "--query-supported-clocks=memory,graphics --format=csv",
    "--query-retired-pages=gpu_uuid,retired_pages.address --format=csv",
    "topo -m",
    "topo -p2p r",
    "nvlink -s",
    "nvlink -e -i 0",
)


def timeless(screen: Screen) -> Screen:
    """The screen without what may differ."""
    return Screen(screen.code, CLOCK.sub("", OWN_RELEASE.sub("", screen.output)), screen.errors)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_table_is_the_same(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """Every line, and the exit code."""
    image = images(condition)
    assert timeless(ours.run(image=image)) == timeless(real.run(image=image))


@pytest.mark.parametrize("condition", [condition for condition in CONDITIONS if condition.startswith(TOLD_BY_LIST)])
def test_the_list_is_the_same(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """Every line of -L, and the exit code."""
    image = images(condition)
    assert ours.run("-L", image=image) == real.run("-L", image=image)


@pytest.mark.parametrize("condition", ["mixed-3", "mig-with-processes", "all-erring"])
@pytest.mark.parametrize("view", VIEWS)
def test_nothing_stays_allocated(view: str, condition: str, images: Images, twin: Path) -> None:
    """A loop would add it up."""
    assert Smi(twin).run(*view.split(), image=images(condition)).errors == ""
