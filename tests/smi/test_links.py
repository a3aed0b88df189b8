"""nvidia-smi topo and nvlink: what the real one shows of the same node, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.smi.conftest import Images, Smi, publish
from tests.smi.fleets import LINKS

TOPOLOGY = (("-m",), ("-mp",), ("-p2p", "r"))
PARTS = (("-s",), ("-s", "-c", "-p", "-R", "-e"), ("-e", "-R", "-s", "-c", "-p", "-l", "0"))
NODES = ["gpus-0", "gpus-1", "gpus-8", "lost-middle", "lost-all", "sick-4", "sick-999", "mig-on-two-gpus"]
TOPOLOGY_USES = """\
-i 0
-mp -i 0
-p2p r -i 0
-m -mp
-m -p2p r
-p2p
-p2p x
-p2p rw
-p2p -m
-p2p w
-p2p n
-p2p a
-p2p p
-m -i
-m -i 99
--matrix
--matrix_pci
-m=1
x
-Z
--p2pstatus=n
-p2p r -i x
""".splitlines()
NVLINK_USES = """\
-s -l -1
-s -l 0x1
-s -l 1x
-s -l 17
-s -l 18
-s -l 4294967297
-l 0 -l 1 -s
-s -i x
-i x -x
-s -i ,
-s -i -s
-s -l -s
-i 0,1 -s
--link=0 --status
--capabilities -l 2
-i 0
-i 5 -i 1 -l 3 -c
-Z -i
-i -Z
x
-s -l x -i 99
--pcibusid -l 3
-e --link 99
--remotelinkinfo -i 3 -l 1
--errorcounters --id=2,3 -l 1
""".splitlines()


def same(ours: Smi, real: Smi, image: Path, *arguments: str) -> None:
    """Every line, and the exit code."""
    assert ours.run(*arguments, image=image) == real.run(*arguments, image=image)


@pytest.mark.parametrize("made", LINKS)
def test_every_matrix_and_every_link_is_the_same(made: str, tmp_path: Path, real: Smi, ours: Smi) -> None:
    """What lies between GPUs, what is near them, where their links lead."""
    publish(LINKS[made](), tmp_path)
    for matrix in TOPOLOGY:
        same(ours, real, tmp_path, "topo", *matrix)
    for parts in PARTS:
        same(ours, real, tmp_path, "nvlink", *parts)


@pytest.mark.parametrize("condition", NODES)
def test_every_node_is_the_same(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """However many GPUs, whatever happened to them."""
    for matrix in TOPOLOGY:
        same(ours, real, images(condition), "topo", *matrix)
    same(ours, real, images(condition), "nvlink", "-s")


@pytest.fixture(scope="module")
def partly_down(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image of a node with links of all kinds."""
    folder = tmp_path_factory.mktemp("links")
    publish(LINKS["partly-down"](), folder)
    return folder


@pytest.mark.parametrize("uses", TOPOLOGY_USES)
def test_uses_of_topo_are_the_same(uses: str, partly_down: Path, real: Smi, ours: Smi) -> None:
    """What can be asked, what cannot, and in which words."""
    same(ours, real, partly_down, "topo", *uses.split(" "))


@pytest.mark.parametrize("uses", NVLINK_USES)
def test_uses_of_nvlink_are_the_same(uses: str, partly_down: Path, real: Smi, ours: Smi) -> None:
    """What can be asked, what cannot, and in which words."""
    same(ours, real, partly_down, "nvlink", *uses.split(" "))


@pytest.mark.parametrize(
    "arguments", [["topo"], ["topo", "-m", "-h"], ["nvlink"], ["nvlink", "-h", "-i", "9"]], ids=" ".join
)
def test_help_is_short(arguments: list[str], images: Images, ours: Smi) -> None:
    """The options that there are."""
    screen = ours.run(*arguments, image=images("gpus-1"))
    assert (screen.code, screen.errors) == (0, "")
    assert f"Usage: nvidia-smi {arguments[0]} [options]" in screen.output
