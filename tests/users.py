"""Running a program under another uid, as far as whoever runs the suite can."""

from __future__ import annotations

import os
from typing import Any


def as_user(uid: int) -> dict[str, Any]:
    """Arguments of subprocess for a program under `uid` and its group alone; an ordinary user can only be itself."""
    if os.geteuid() == 0:
        return {"user": uid, "group": uid, "extra_groups": []}
    if uid != os.geteuid():
        raise ValueError(f"uid {os.geteuid()} cannot run a program as {uid}")
    return {}
