"""How many examples hypothesis tries: few enough for every run, twenty times as many with SIMNODE_THOROUGH set."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

PROFILE = "simnode"
MORE = 20 if os.environ.get("SIMNODE_THOROUGH") else 1

settings.register_profile(
    PROFILE,
    deadline=None,  # each test has pytest's timeout
    database=None,  # the checkout may belong to somebody else
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def examples(count: int) -> settings:
    """A decorator: try `count` examples, or twenty times as many."""
    return settings(max_examples=count * MORE)
