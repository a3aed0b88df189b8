"""What a `nvidia-smi -q -x` says, leaf by leaf, and the tables of it that stand beside this file.

A table is made from a real node's document by `python -m tests.boards.leaves CAPTURE.xml >tests/boards/BOARD.tsv`. Its
first line names driver, CUDA and the number of GPUs. A row is an element's path below <gpu>, then its text, once where
all GPUs agree, else once for each. Two paths are no element's: `@id` is the GPU's bus id, `supported_clocks/N MHz` the
graphics clocks that go with that memory clock.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

Leaves = dict[str, str]


@dataclass(frozen=True)
class Capture:
    """The leaves of each GPU of one document, and the driver that wrote it."""

    driver: str
    cuda: str
    gpus: tuple[Leaves, ...]


def parse(document: str) -> Capture:
    """The leaves of a document."""
    root = ElementTree.fromstring(document)
    gpus = tuple(_leaves(gpu) for gpu in root.findall("gpu"))
    return Capture(root.findtext("driver_version", ""), root.findtext("cuda_version", ""), gpus)


def load(board: str) -> Capture:
    """The table of a board."""
    head, *rows = (Path(__file__).parent / f"{board}.tsv").read_text().splitlines()
    driver, cuda, count = head.removeprefix("# ").split("\t")
    gpus: tuple[Leaves, ...] = tuple({} for _ in range(int(count)))
    for row in rows:
        path, *texts = row.split("\t")
        for at, leaves in enumerate(gpus):
            leaves[path] = texts[at if len(texts) > 1 else 0]
    return Capture(driver, cuda, gpus)


def table(capture: Capture) -> str:
    """The table of a document in which every GPU has the same leaves."""
    lines = [f"# {capture.driver}\t{capture.cuda}\t{len(capture.gpus)}"]
    for path in capture.gpus[0]:
        texts = [leaves[path] for leaves in capture.gpus]
        lines.append("\t".join([path, *(texts if len(set(texts)) > 1 else texts[:1])]))
    return "\n".join(lines) + "\n"


def _leaves(gpu: ElementTree.Element) -> Leaves:
    found = {"@id": gpu.get("id", "")}
    for child in gpu:
        _walk(child, child.tag, found)
    return found


def _walk(element: ElementTree.Element, path: str, found: Leaves) -> None:
    if element.tag == "supported_mem_clock":
        clocks = [(clock.text or "").removesuffix(" MHz") for clock in element.findall("supported_graphics_clock")]
        found[f"supported_clocks/{element.findtext('value')}"] = " ".join(clocks)
    elif len(element):
        for child in element:
            _walk(child, f"{path}/{child.tag}", found)
    else:
        found[path] = (element.text or "").strip()


if __name__ == "__main__":
    sys.stdout.write(table(parse(Path(sys.argv[1]).read_text())))
