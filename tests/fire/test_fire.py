"""The agent under fire: random steps on one host root, with everything wrong that can go wrong."""

from __future__ import annotations

import os

import pytest

from tests.fire.campaign import burn

THOROUGH = bool(os.environ.get("SIMNODE_THOROUGH"))
SEEDS = range(1, 21) if THOROUGH else range(1, 3)
STEPS = 500 if THOROUGH else 50


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_nothing_is_left_nothing_of_others_is_touched_and_the_probes_are_true(seed: int) -> None:
    figures = burn(seed, STEPS)
    assert figures.steps >= STEPS
    assert figures.ends["killed"]
    assert figures.ends["ended"]
