"""Our nvidia-smi and the real ones show what the profile says: several of them in one node, for a node costs more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Obtain
from tests.consumers.conftest import Ended, Node
from tests.consumers.expected import GPU, MIB, gpus

QUERY = "--query-gpu=index,name,uuid,pci.bus_id,memory.total,temperature.gpu,power.draw"
HEADER = "index, name, uuid, pci.bus_id, memory.total [MiB], temperature.gpu, power.draw [W]"
REAL = ("nvidia-smi-535", "nvidia-smi-550")
Places = dict[str, str | Path]
pytestmark = pytest.mark.consumer


@pytest.fixture(scope="module")
def places(program: Obtain) -> Places:
    """Each nvidia-smi: ours by its name, a real one by its path outside the node."""
    return {"ours": "nvidia-smi", **{name: program(name).path for name in REAL}}


@pytest.fixture(scope="module")
def idle(anywhere: Node, places: Places) -> dict[str, dict[str, Ended]]:
    """What each shows of a board as it is: the list, some values, and the default view, all in one node."""
    views = {"list": ["-L"], "values": [QUERY, "--format=csv"], "default": []}
    commands = [[path, *words] for words in views.values() for path in places.values()]
    ended = iter(anywhere.several([*commands, ["/usr/bin/env", "-i", "/usr/bin/nvidia-smi", "-L"]]))
    shown = {view: {name: next(ended) for name in places} for view in views}
    # Without namespaces the standard places are the machine's.
    return shown | {"bare": {} if anywhere.fallback else {"ours": next(ended)}}


@pytest.fixture(params=[False, True], ids=["namespaces", "fallback"])
def either(ordinary: Node, request: pytest.FixtureRequest) -> Node:
    """An ordinary user's node in namespaces, and one without."""
    return replace(ordinary, fallback=request.param)


def screens(node: Node, places: Places, words: Sequence[str], board: Sequence[str] = ()) -> dict[str, Ended]:
    """What each nvidia-smi shows in one node, asked in the same words."""
    commands = [[path, *words] for path in places.values()]
    ended = node.several(commands, options=("--board", "h100", *board))
    return dict(zip(places, ended, strict=True))


def all_print(node: Node, places: Places, words: Sequence[str], expected: str, board: Sequence[str] = ()) -> None:
    """Every nvidia-smi, in one node, ends well and prints just this."""
    show(screens(node, places, words, board), expected)


def show(shown: dict[str, Ended], expected: str) -> None:
    """The screens of each are all just this."""
    assert {name: (ended.status, ended.errors) for name, ended in shown.items()} == dict.fromkeys(shown, (0, ""))
    assert {name: ended.output for name, ended in shown.items()} == dict.fromkeys(shown, expected)


def listing(expected: list[GPU]) -> str:
    """What `nvidia-smi -L` prints."""
    return "".join(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})\n" for gpu in expected)


def without_time(screen: str) -> str:
    """The default view less its first line, the time of day."""
    return screen.split("\n", 1)[1]


def test_lists_the_gpus(idle: dict[str, dict[str, Ended]]) -> None:
    """Name and UUID of each."""
    show(idle["list"], listing(gpus()))


def test_an_empty_environment_suffices(idle: dict[str, dict[str, Ended]]) -> None:
    """The standard places serve a program that knows nothing of the node."""
    show(idle["bare"], listing(gpus()))


def test_queries_the_values_of_the_profile(idle: dict[str, dict[str, Ended]]) -> None:
    """Identity, bus, memory, temperature and power, to the last digit."""
    show(idle["values"], "\n".join([HEADER, *(gpu.csv() for gpu in gpus()), ""]))


def test_the_default_view_shows_every_gpu(idle: dict[str, dict[str, Ended]]) -> None:
    """Row, bus id, temperature, whole watts and memory, and no process."""
    for name, ended in idle["default"].items():
        assert (ended.status, ended.errors) == (0, ""), name
        for gpu in gpus():
            assert f"|   {gpu.index}  {gpu.name} " in ended.output, name
            assert gpu.bus_id in ended.output, name
        rows = re.findall(r"^\| N/A +(\d+)C .* (\d+)W / +\d+W \| +0MiB / +(\d+)MiB \|", ended.output, re.M)
        assert [tuple(map(int, row)) for row in rows] == [
            (gpu.temperature, gpu.power // 1000, gpu.memory_total // MIB) for gpu in gpus()
        ], name
        assert "No running processes found" in ended.output, name


def test_ours_prints_what_the_real_one_prints(ordinary: Node, places: Places, program: Obtain) -> None:
    """Byte for byte on an idle node, the time stamp aside."""
    driver = ("--driver-version", program("nvidia-smi-550").version)
    shown = screens(ordinary, places, [], driver)
    assert without_time(shown["ours"].output) == without_time(shown["nvidia-smi-550"].output)


@pytest.mark.parametrize("release", REAL)
def test_a_given_nvidia_smi_takes_the_place_of_ours(ordinary: Node, places: Places, release: str) -> None:
    """`--nvidia-smi PATH` puts it at /usr/bin/nvidia-smi."""
    commands: list[list[str | Path]] = [
        ["cmp", "/usr/bin/nvidia-smi", places[release]],
        ["env", "-i", "/usr/bin/nvidia-smi", "-L"],
    ]
    same, listed = ordinary.several(commands, options=("--board", "h100", "--nvidia-smi", str(places[release])))
    assert (same.status, listed.status, listed.output) == (0, 0, listing(gpus()))


def test_an_override_is_shown(either: Node, places: Places) -> None:
    """`--set` reaches the program."""
    override = "thermal.temperature_gpu_c=91"
    expected = "".join(f"{gpu.csv()}\n" for gpu in gpus(overrides=(override,)))
    all_print(either, places, [QUERY, "--format=csv,noheader"], expected, ("--set", override))


@pytest.mark.parametrize("count", [1, 16, 64])
def test_any_number_of_gpus(ordinary: Node, places: Places, count: int) -> None:
    """Identities beyond the board's own eight are made up without collision."""
    expected = gpus(count=count)
    assert len({gpu.uuid for gpu in expected}) == len({gpu.bus_id for gpu in expected}) == count
    all_print(ordinary, places, ["-L"], listing(expected), ("--gpus", str(count)))


def test_no_gpu_at_all(either: Node, places: Places) -> None:
    """The text and the exit codes of the real program without devices."""
    commands = [[path, *words] for path in places.values() for words in (["-L"], [])]
    ended = either.several(commands, options=("--board", "h100", "--gpus", "0"))
    shown = [(one.status, one.output) for one in ended]
    assert shown == [(0, "No devices found.\n"), (6, "No devices were found\n")] * len(places)
