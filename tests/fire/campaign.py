"""Many lives on one host root, one after the other: `python -m tests.fire.campaign SEED STEPS`.

Whatever happened in them, a last and quiet life makes the host what it was before the first. A seed gives the same
campaign again, as long as PYTHONHASHSEED is the same, too.
"""

from __future__ import annotations

import os
import pickle
import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from simnode.profile import load_board
from tests import memory
from tests.agent.virtual import run
from tests.agent_host.running import OUTLIVE
from tests.fire import checks
from tests.fire.documents import BOARDS
from tests.fire.endings import any_ending, told
from tests.fire.field import Field
from tests.fire.life import Life
from tests.fire.steps import any_step, documents
from tests.fire.weather import KILLED, Weather

_BURSTS = 6
_STORY = 80
ABOVE = {str(parent) for path in OUTLIVE for parent in Path(path).parents}


@dataclass
class Figures:
    """What a campaign came to.

    `calls`: those by which the agent changed the disk; `struck`: how often which of them failed.
    """

    steps: int = 0
    lives: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)
    calls: int = 0


def burn(seed: int, steps: int) -> Figures:
    """A campaign of at least so many steps. Raises AssertionError, which tells the story, the seed and what failed."""
    figures = Figures()
    with memory.directory("simnode-fire-") as scratch:
        burning = Field.furnished(scratch)
        before = burning.there()
        for board in BOARDS:
            load_board(board)
        while figures.steps < steps:
            burning, figures = _one_life(burning, seed, figures, last=False)
        burning, figures = _one_life(burning, seed, figures, last=True)
        left = burning.there() - before - OUTLIVE - ABOVE
        assert left == set(), f"seed {seed}: in the end there is {sorted(left)}"
    return figures


def _one_life(burning: Field, seed: int, figures: Figures, *, last: bool) -> tuple[Field, Figures]:
    """A life in a process of its own; the field and the figures as it left them."""
    figures.lives += 1
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(burning, seed, figures, writer, last=last)
    os.close(writer)
    with os.fdopen(reader, "rb") as messages:
        failure = ""
        while True:
            try:
                burning, figures, failure = pickle.load(messages)
            except EOFError:
                break
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    story = "\n".join(burning.story[-_STORY:])
    assert not failure and code in (0, KILLED), f"seed {seed}, life {figures.lives}, {code}:\n{story}\n{failure}"
    figures.ends["killed" if code else "ended"] += 1
    touched = burning.touched()
    assert touched == [], f"seed {seed}, life {figures.lives}: others' things were touched: {touched}\n{story}"
    return burning, figures


def _child(burning: Field, seed: int, figures: Figures, writer: int, *, last: bool) -> None:
    """The whole of a process: never returns."""
    code = 1
    with os.fdopen(writer, "wb", buffering=0) as messages:
        weather = Weather(random.Random(f"{seed}/{figures.lives}/weather"))

        def tell(burning: Field, failure: str = "") -> None:
            del burning.story[:-_STORY]
            figures.calls += weather.calls - weather.told
            weather.told = weather.calls
            figures.struck.update(name for name, _ in weather.struck)
            weather.struck.clear()
            messages.write(pickle.dumps((burning, figures, failure)))

        life = Life(burning, random.Random(f"{seed}/{figures.lives}"), weather, tell)
        try:
            weather.rule(lambda: _live(life, figures, last=last))
            tell(burning)
            code = 0
        except BaseException:
            tell(burning, traceback.format_exc())
        finally:
            os._exit(code)


def _live(life: Life, figures: Figures, *, last: bool) -> None:
    async def burst(life: Life) -> None:
        documents(life)
        life.note(f"life {figures.lives}")
        for _ in range(life.chance.randint(0, _BURSTS)):
            for _ in range(life.chance.choice((1, 1, 2, 3))):
                figures.steps += 1
                await any_step(life)
            life.note("quiet")
            await life.quiet()
        if life.chance.random() < 0.5:
            life.note("like a fresh one?")
            await life.quiet()
            await checks.as_fresh(life.node, life.log)
        figures.steps += 1
        await any_ending(life)

    async def calm(life: Life) -> None:
        for path in sorted(life.field.plants, reverse=True):
            life.field.unplant(path)
        for path in life.field.altered:
            (life.field.root / path).unlink(missing_ok=True)
        life.field.altered.clear()
        life.write()
        life.note("the last life")
        await life.quiet()
        await checks.as_fresh(life.node, life.log)
        await told(life)

    run(life.live(calm if last else burst))
    if life.clean:
        left = life.field.left_over()
        assert left == set(), f"left over after a clean end: {sorted(left)[:20]}"


def main(seed: int, steps: int) -> None:
    """Burn and say what it came to."""
    began = time.process_time(), time.monotonic()
    figures = burn(seed, steps)
    spent = os.times()
    print(figures)
    print(f"{spent.children_user + spent.children_system + time.process_time() - began[0]:.1f} s of CPU")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
