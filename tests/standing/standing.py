"""What tests of standing nodes ask of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simnode.sandbox.installed import init_program
from tests.sandbox.running import Runner

AGENT = f"{sys.executable} -P -m simnode.sandbox.agent "
INIT = init_program()


def succeed(runner: Runner, *words: str) -> str:
    """What `simnode WORDS` prints; it has to succeed without a complaint."""
    done = runner.run(*words)
    assert (done.returncode, done.stderr) == (0, ""), f"{' '.join(words)}: {done}"
    return done.stdout


def refuse(runner: Runner, code: int, *words: str) -> str:
    """The one line with which `simnode WORDS` fails."""
    done = runner.run(*words)
    assert (done.returncode, done.stdout) == (code, ""), f"{' '.join(words)}: {done}"
    (line,) = done.stderr.splitlines()
    assert line.startswith("simnode: ")
    return line.removeprefix("simnode: ")


def listed(runner: Runner) -> dict[str, dict[str, Any]]:
    """`simnode ls`, by name."""
    return {node["name"]: node for node in json.loads(succeed(runner, "ls", "--json"))}


@contextmanager
def standing(runner: Runner, *options: str) -> Iterator[Runner]:
    """A node `default` that tests share."""
    succeed(runner, "up", *options)
    yield runner
    succeed(runner, "down")
