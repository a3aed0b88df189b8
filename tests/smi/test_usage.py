"""Arguments: what nvidia-smi takes, what it refuses, and how it says so."""

from __future__ import annotations

import pytest

from tests.smi.conftest import Images, Smi

REFUSED = {
    "unknown-option": ["--bogus"],
    "unknown-letter": ["-Z"],
    "word": ["bogus"],
    "nothing": [""],
    "dashes": ["--"],
    "letters-in-one": ["-LL"],
    "two-unknown": ["--bogus", "--other"],
    "list-twice": ["-L", "-L"],
    "list-by-both-names": ["-L", "--list-gpus"],
    "versions-twice": ["--version", "--version"],
    "list-and-word": ["-L", "x", "y"],
    "word-and-list": ["x", "-L", "y"],
    "list-and-nothing": ["-L", ""],
    "list-twice-and-word": ["-L", "x", "-L"],
    "list-and-versions": ["-L", "--version"],
    "help-and-list": ["-h", "-L"],
    "help-and-versions": ["--version", "-h"],
    "help-and-word": ["--help", "x"],
    "help-and-everything": ["-L", "-h", "--version"],
}
OPTIONS = [
    "-h,   --help",
    "      --version",
    "-L,   --list-gpus",
    "-q,   --query",
    "      -x, --xml-format",
    "topo",
    "nvlink",
]
OPTIONS += ["      -d, --display=", "      -u, --unit", "      --format=", "-i,   --id=", "-f,   --filename="]
OPTIONS += ["-l,   --loop=", "-lms, --loop-ms="]
QUERIES = ("gpu", "compute-apps", "accounted-apps", "supported-clocks", "retired-pages", "remapped-rows")
OPTIONS += [f"      --query-{subject}=" for subject in QUERIES]
NO_IMAGE = {name: REFUSED[name] for name in ("unknown-option", "list-twice", "help-and-word")}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED.keys())
def test_refuses_as_the_real_one(arguments: list[str], images: Images, real: Smi, ours: Smi) -> None:
    """The line that says what is wrong, and the exit code."""
    image = images("gpus-1")
    assert ours.run(*arguments, image=image) == real.run(*arguments, image=image)


@pytest.mark.parametrize("arguments", NO_IMAGE.values(), ids=NO_IMAGE.keys())
def test_a_driver_that_is_not_there_is_told_first(arguments: list[str], images: Images, real: Smi, ours: Smi) -> None:
    """Arguments are looked at when the driver has answered, but for those of help."""
    nowhere = images("gpus-1") / "nowhere"
    assert ours.run(*arguments, image=nowhere) == real.run(*arguments, image=nowhere)


def test_both_names_of_the_list_mean_the_same(images: Images, ours: Smi) -> None:
    """-L and --list-gpus."""
    assert ours.run("--list-gpus", image=images("gpus-8")) == ours.run("-L", image=images("gpus-8"))


@pytest.mark.parametrize("arguments", [["-h"], ["--help"], ["-h", "--help"]], ids=" ".join)
def test_help_names_every_option_and_the_release(arguments: list[str], images: Images, ours: Smi) -> None:
    """Each of them on a line of its own."""
    screen = ours.run(*arguments, image=images("driver-535.261.03"))
    assert (screen.code, screen.errors) == (0, "")
    assert screen.output.startswith("NVIDIA System Management Interface -- v535.261.03\n")
    for option in OPTIONS:
        assert f"\n    {option}" in screen.output


def test_help_says_who_has_the_options_that_are_not_there(images: Images, ours: Smi) -> None:
    """For the line that refuses one sends the reader to the help."""
    assert "simnode run --nvidia-smi FILE" in ours.run("-h", image=images("gpus-1")).output


def test_help_needs_no_image(images: Images, ours: Smi) -> None:
    """It is there when nothing else works."""
    screen = ours.run("--help", image=images("gpus-1") / "nowhere")
    assert screen.code == 0
    assert screen.output.startswith("NVIDIA System Management Interface\n")


@pytest.mark.parametrize("condition", ["gpus-1", "gpus-0", "lost-all"])
def test_versions_are_those_of_the_real_one(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """Program, library, driver and CUDA."""
    image = images(condition)
    assert ours.run("--version", image=image) == real.run("--version", image=image)


@pytest.mark.parametrize("release", ["535.261.03", "580.65.06"])
def test_versions_are_the_nodes(release: str, images: Images, real: Smi, ours: Smi) -> None:
    """The real program's first line names its own release, ours the node's."""
    image = images(f"driver-{release}")
    theirs = real.run("--version", image=image).output.split("\n", 1)[1]
    assert ours.run("--version", image=image).output == f"NVIDIA-SMI version  : {release}\n{theirs}"
