"""Queries in comma separated values: what the real one tells of the same node, to the byte, but for the time of day."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from simnode.profile import Options, compile_state, load_board
from simnode.state import State
from tests.conftest import Obtain
from tests.smi.conftest import Images, Screen, Smi
from tests.smi.fleets import REFUSALS, VALUES
from tests.smi.nodes import DRIVER, change, node

Publish = Callable[[State], Path]
STAMP = re.compile(r"\b\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}\b")
KEY = re.compile(r'"([a-zA-Z_0-9.]+)"')
GPU = "timestamp,gpu_name,gpu_bus_id,gpu_serial,gpu_uuid"
LISTS = {
    "--query-compute-apps": f"{GPU},pid,process_name,name,used_gpu_memory,used_memory",
    "--query-accounted-apps": f"{GPU},vgpu_instance,pid,gpu_util,mem_utilization,max_memory_usage,time",
    "--query-retired-pages": f"{GPU},retired_pages.address,retired_pages.timestamp,retired_pages.cause",
    "--query-remapped-rows": ",".join(
        (GPU, *(f"remapped_rows.{part}" for part in ("correctable", "uncorrectable", "pending", "failure")))
    ),
    "--query-supported-clocks": f"{GPU},memory,mem,graphics,gr",
}
NODES = ["gpus-0", "gpus-1", "gpus-64", "names", "addresses", "lost-middle", "lost-all", "sick-4", "sick-6", "sick-999"]
NODES += ["mig-on-two-gpus", "mixed-3"]
PROCESSES = ["twice-in-different-lists", "many", "memory-unknown", "memory-rounded-down", "name-longest", "name-empty"]
RELEASES = {"nvidia-smi-535": "535.261.03", "nvidia-smi-550": DRIVER, "nvidia-smi-555": "555.58.02"}


def rows(screen: Screen) -> list[list[str]]:
    """The fields of each line, without times."""
    return [line.split(", ") for line in STAMP.sub("now", screen.output).split("\n")]


def same(ours: Smi, real: Smi, image: Path, *arguments: str) -> None:
    """Exit code and every field."""
    mine, theirs = ours.run(*arguments, image=image), real.run(*arguments, image=image)
    assert rows(mine) == rows(theirs)
    assert (mine.code, mine.errors) == (theirs.code, theirs.errors)


@cache
def keys(smi: Smi, image: Path) -> str:
    """Every property and every other name of one that this program's help lists."""
    lines = smi.run("--help-query-gpu", image=image).output.split("\n")
    return ",".join(key for line in lines if line.startswith('"') for key in KEY.findall(line))


@pytest.mark.parametrize("made", VALUES)
def test_every_value_is_the_same(made: str, publish_state: Publish, real: Smi, ours: Smi) -> None:
    """All properties of many GPUs, with units and without."""
    image = publish_state(VALUES[made]())
    query = f"--query-gpu={keys(real, image)}"
    same(ours, real, image, query, "--format=csv")
    same(ours, real, image, query, "--format=noheader,csv,nounits")


@pytest.mark.parametrize("made", REFUSALS)
def test_every_refusal_is_the_same(made: str, publish_state: Publish, real: Smi, ours: Smi) -> None:
    """All properties, one of them refused on each GPU."""
    image = publish_state(REFUSALS[made]())
    same(ours, real, image, f"--query-gpu={keys(real, image)}", "--format=csv")


@pytest.mark.parametrize("condition", NODES)
def test_every_node_is_the_same(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """However many GPUs, whatever happened to them."""
    image = images(condition)
    same(ours, real, image, "--query-gpu=index,timestamp,name,pci.bus_id,count,mig.mode.current", "--format=csv")


@pytest.mark.parametrize("query", LISTS)
@pytest.mark.parametrize("made", ["retired-pages", "all-refused-by-each-code"])
def test_every_list_is_the_same(made: str, query: str, publish_state: Publish, real: Smi, ours: Smi) -> None:
    """Of clocks, pages and rows: there are none, one or many, or they are refused."""
    same(ours, real, publish_state(VALUES[made]()), f"{query}={LISTS[query]}", "--format=csv")


@pytest.mark.parametrize("condition", [*(f"processes-{name}" for name in PROCESSES), "mig-with-processes", "gpus-0"])
def test_processes_are_the_same(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """Who computes, in which memory."""
    query = "--query-compute-apps"
    same(ours, real, images(condition), f"{query}={LISTS[query]}", "--format=csv,nounits")


@pytest.mark.parametrize("release", RELEASES)
def test_other_releases_have_their_own_properties(
    release: str, program: Obtain, libraries: Path, publish_state: Publish, ours: Smi
) -> None:
    """What this release's nvidia-smi knows, and how it rounds."""
    real = Smi(program(release).path, libraries)
    image = publish_state(change(node(2, RELEASES[release]), {"memory.used_bytes": 2**20 + 1}))
    listed = keys(real, image)
    assert sorted(keys(ours, image).split(",")) == sorted(set(listed.split(",")))
    same(ours, real, image, f"--query-gpu={listed}", "--format=csv")


def test_newer_releases_have_more(publish_state: Publish, ours: Smi) -> None:
    """Properties of 570 and 580, of which there is no nvidia-smi here to compare with."""
    board = compile_state(load_board("gb200"), Options(gpus=1, driver_version="580.173.02"), {})
    expected = {
        "gpu_recovery_action": "None",
        "display_mode": "[Requested functionality has been deprecated]",
        "display_attached": "Yes",
        "clocks_event_reasons_counters.sync_boost": "0 us",
        "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": "No",
        "remapped_rows.histogram.max": "3968",
        "module.power.limit": "2500.00 W",
        "fabric.state": "Completed",
        "fabric.status": "Success",
        "fabric.cliqueId": "2",
        "fabric.clusterUuid": "00000001-0000-0000-0000-000000000001",
        "platform.chassis_serial_number": "1820000000001",
        "platform.peer_type": "Switch Connected",
        "platform.gpu_fabric_guid": "0x0000000000000001",
    }
    screen = ours.run(f"--query-gpu={','.join(expected)}", "--format=csv,noheader", image=publish_state(board))
    assert dict(zip(expected, rows(screen)[0], strict=True)) == expected


def test_help_lists_the_properties_of_each_query(images: Images, real: Smi, ours: Smi) -> None:
    """Both names of each, in the same order."""
    image = images("gpus-1")
    for query in LISTS:
        option = query.replace("--query", "--help-query")
        theirs, mine = (
            [KEY.findall(line) for line in smi.run(option, image=image).output.split("\n") if line.startswith('"')]
            for smi in (real, ours)
        )
        assert mine == theirs
