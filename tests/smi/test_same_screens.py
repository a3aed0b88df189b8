"""Our nvidia-smi prints what the real one prints in every condition of a node: to the byte, but for the time of day."""

from __future__ import annotations

import re

import pytest

from tests.smi.conditions import CONDITIONS
from tests.smi.conftest import Images, Screen, Smi

# The real program is of one release whatever driver it meets; ours is always the node's.
OWN_RELEASE = re.compile(r"(?<=^\| NVIDIA-SMI )[0-9.]+ +(?=Driver Version)", re.MULTILINE)
CLOCK = re.compile(r"\A[A-Z][a-z]{2} [A-Z][a-z]{2} [ 1-3]\d \d\d:\d\d:\d\d \d{4} {7}\n")


def timeless(screen: Screen) -> Screen:
    """The screen without what may differ."""
    return Screen(screen.code, CLOCK.sub("", OWN_RELEASE.sub("", screen.output)), screen.errors)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_table_is_the_same(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """Every line, and the exit code."""
    image = images(condition)
    assert timeless(ours.run(image=image)) == timeless(real.run(image=image))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_list_is_the_same(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """Every line of -L, and the exit code."""
    image = images(condition)
    assert ours.run("-L", image=image) == real.run("-L", image=image)
