"""Runs several commands in one node, many at once, and prints how each ended: a node for each would cost too much.

Arguments: how many at once, and a JSON list of commands. The output is a JSON list of [exit status, standard output,
standard error] in the same order.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

SECONDS = 25


def run(command: list[str]) -> tuple[int, str, str]:
    """How the command ended; a command that does not end is status -9."""
    done = subprocess.run(
        ["timeout", "-s", "KILL", str(SECONDS), *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


if __name__ == "__main__":
    with ThreadPoolExecutor(int(sys.argv[1])) as pool:
        json.dump(list(pool.map(run, json.loads(sys.argv[2]))), sys.stdout)
