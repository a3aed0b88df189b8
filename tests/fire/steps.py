"""The steps of the fire, each by chance: edits, faults, drift, bad weather, bad tempers, hands on the lock."""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
from collections.abc import Callable, Coroutine
from pathlib import Path

from simnode.sources.file import OVERRIDES
from tests.fire import checks
from tests.fire.documents import GARBAGE, TOPOLOGY
from tests.fire.field import NODE
from tests.fire.life import RESYNC_S, Life
from tests.fire.moods import ASYNC, Mood
from tests.fire.weather import SICK, Sickness

Step = Callable[[Life], Coroutine[object, object, None]]
_KEYS = ("thermal.temperature_gpu_c=71", "utilization.gpu=50", "clocks.sm=900", "thermal.temperature_gpu_c=many", "x=1")
_MODES = ("lost", "fallen_off_bus", "ecc_uncorrectable")


async def edit(life: Life) -> None:
    """The profile changes."""
    life.wish = life.wish.changed(life.chance)
    life.note(f"edit: {life.wish}")
    if life.chance.random() < 0.7:
        life.write()
    elif life.field.config.is_file():
        life.field.config.write_text(life.wish.text)
    await _pause(life)


async def flap(life: Life) -> None:
    """The profile vanishes, is half written, is garbage, a link that goes round, or a directory."""
    config, text = life.field.config, life.wish.text
    way = life.chance.choice(("vanish", "half", "garbage", "swap", "loop", "directory"))
    life.note(f"flap: {way}")
    for _ in range(life.chance.randint(1, 4)):
        if config.is_dir() and not config.is_symlink():
            config.rmdir()
        config.unlink(missing_ok=True)
        await _pause(life)
        match way:
            case "half":
                config.write_text(text[: life.chance.randrange(len(text))])
            case "garbage":
                config.write_text(life.chance.choice(GARBAGE))
            case "loop":
                config.symlink_to(config.name)
            case "directory":
                config.mkdir()
            case "swap":
                target = life.field.documents / f"..{life.chance.random()}"
                target.write_text(text)
                config.symlink_to(target.name)
        await _pause(life)


async def topology(life: Life) -> None:
    """The topology document comes, goes or is garbage."""
    text = life.chance.choice((TOPOLOGY, TOPOLOGY.replace("id: 3", "id: 4"), "", "}"))
    life.note(f"topology: {text[:9]!r}")
    if text:
        life.field.topology.write_text(text)
    else:
        life.field.topology.unlink(missing_ok=True)
    await _pause(life)


async def order(life: Life) -> None:
    """Orders through the control socket, several at once."""
    chance = life.chance
    gpu = chance.choice((0, 0, 1, 2, "all", 77))
    orders: tuple[dict[str, object], ...] = (
        {"verb": "set", "assignments": [chance.choice(_KEYS)], "gpu": gpu},
        {"verb": "fault-inject", "gpu": gpu, "mode": chance.choice(_MODES)},
        {"verb": "fault-inject", "gpu": gpu, "xid": chance.choice((13, 48, 79))},
        {"verb": "fault-clear", "gpu": chance.choice((gpu, "all"))},
        {"verb": "fault-skew"},
        {"verb": "reset", "gpu": chance.choice((gpu, None))},
        {"verb": "status"},
        {"verb": "fault-list"},
        {"verb": "get", "gpu": gpu},
    )
    chosen = [chance.choice(orders) for _ in range(chance.choice((1, 1, 3)))]
    life.note(f"orders: {chosen}")
    asked = [asyncio.create_task(life.order(**each)) for each in chosen]
    _, late = await asyncio.wait(asked, timeout=600)
    assert not late, "an order was not answered"
    for task in asked:
        task.result()


async def overrides(life: Life) -> None:
    """Somebody writes into the overrides file, or takes it away."""
    path = life.field.node.node_root / OVERRIDES
    way = life.chance.choice(("gone", "good", "garbage"))
    life.note(f"overrides: {way}")
    if way == "gone" or not path.parent.is_dir():
        path.unlink(missing_ok=True)
    else:
        good = f"version: 1\nall:\n  thermal:\n    temperature_gpu_c: {life.chance.randint(30, 80)}\n"
        path.write_text(good if way == "good" else life.chance.choice(GARBAGE[1:]))
    await _pause(life)


async def lock(life: Life) -> None:
    """Somebody holds the staging lock: for a while, or until the fire is out."""
    how = life.chance.choice((fcntl.LOCK_SH, fcntl.LOCK_EX))
    seconds = life.chance.choice((0.01, 1.0, 20.0, math.inf))
    life.note(f"lock: {how} for {seconds} s")
    life.holder.hold(how)
    life.wish = life.wish.changed(life.chance)
    life.write()
    if math.isfinite(seconds):
        await asyncio.sleep(seconds)
        life.holder.release()
        return
    await asyncio.sleep(1)
    refused = await life.order(verb="set", assignments=["thermal.temperature_gpu_c=72"], gpu="all")
    if refused.startswith("stored") and life.holder.held and life.weather.fair and life.moods.good:
        assert "staging.lock" in refused, refused


async def sickness(life: Life) -> None:
    """The disk fails, after so many calls, for so many."""
    code = life.chance.choice(SICK)
    ill = Sickness(code, life.chance.choice((0, 3, 10, 40, 150, 400)), life.chance.choice((1, 1, 2, 30, math.inf)))
    life.note(f"sickness: {os.strerror(code)} after {ill.after}, {ill.lasting} calls")
    life.weather.sickness = ill
    await life.chance.choice((edit, order, edit))(life)
    if life.chance.random() < 0.3:
        await asyncio.sleep(RESYNC_S)


async def slow(life: Life) -> None:
    """Threads take their time, some longer than anybody waits."""
    life.weather.slowness = life.chance.choice(((0.0, 0.1), (0.0, 3.0, 9.0), (0.0, 0.0, 0.0, 40.0), (29.0, 31.0)))
    life.note(f"slow: {life.weather.slowness}")
    await edit(life)


async def temper(life: Life) -> None:
    """A simulator hangs, raises, or both, in one of its methods or several."""
    for _ in range(life.chance.choice((1, 1, 3))):
        name = life.chance.choice([simulator.name for simulator in life.node.simulators])
        method = life.chance.choice(ASYNC)
        mood = Mood.any(life.chance)
        life.note(f"temper: {name}.{method}: {mood}")
        life.moods.set(name, method, mood)
    if life.chance.random() < 0.1:
        life.moods.silence(name)
        life.check_said()
    await life.chance.choice((edit, order))(life)


async def plant(life: Life) -> None:
    """Others put things where we put ours: beside them, and in their places."""
    there = [path for path in life.field.there() if path.startswith((NODE, "run/", "etc/"))]
    places = [path for path in there if _is_directory(life.field.root / path) and "/state" not in path]
    for _ in range(life.chance.randint(1, 3)):
        within = life.chance.choice(sorted(places))
        name = life.chance.choice(("nvidia3", "0000:07:00.0", "foreign.yaml", ".hidden", "libnvidia-ml.so.1", "gpus"))
        if life.field.plant(f"{within}/{name}", life.chance):
            life.disturbed = True
            life.note(f"plant: {within}/{name}")
    await edit(life)


async def unplant(life: Life) -> None:
    """Others take their things away."""
    for path in sorted(life.field.plants, reverse=True):
        if life.chance.random() < 0.7:
            life.disturbed = life.field.unplant(path) or life.disturbed
    life.note("unplant")


async def drift(life: Life) -> None:
    """Somebody deletes or changes what we staged."""
    if life.agent.state is None:
        return
    ours = sorted((checks.wanted(life.node) & life.field.there()) - life.field.foreign.keys())
    if not ours:
        return
    life.disturbed = True
    for path in life.chance.sample(ours, min(len(ours), life.chance.randint(1, 3))):
        _harm(life, path)


def _harm(life: Life, path: str) -> None:
    at = life.field.root / path
    way = life.chance.choice(("delete", "delete", "mode", "alter"))
    if _is_directory(at):  # the mode of a directory that is nobody's surface is not looked after
        return
    life.field.altered.add(path)
    life.note(f"drift: {way} {path}")
    if at.is_symlink() or way == "delete":
        at.unlink()
    elif way == "mode":
        at.chmod(0o600)
    elif at.is_file() and "image." not in path:
        mode = at.stat().st_mode & 0o7777
        at.chmod(mode | 0o200)
        at.write_bytes(b"altered")
        at.chmod(mode)


async def jump(life: Life) -> None:
    """The wall clock jumps."""
    life.jump()
    life.note("the clock jumps")
    await _pause(life)


async def wait(life: Life) -> None:
    """Time passes; the agent looks whether all is well."""
    life.note("wait")
    await asyncio.sleep(life.chance.choice((5.0, RESYNC_S + 1)))


STEPS: tuple[tuple[Step, int], ...] = (
    (edit, 6),
    (flap, 3),
    (topology, 1),
    (order, 6),
    (overrides, 1),
    (lock, 2),
    (sickness, 6),
    (slow, 2),
    (temper, 5),
    (plant, 2),
    (unplant, 1),
    (drift, 2),
    (jump, 1),
    (wait, 1),
)


async def any_step(life: Life) -> None:
    """One by chance."""
    (step,) = life.chance.choices([step for step, _ in STEPS], [weight for _, weight in STEPS])
    await step(life)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


async def _pause(life: Life) -> None:
    await asyncio.sleep(life.chance.choice((0.0, 0.05, 0.2, 0.5, 3.0)))


def documents(life: Life) -> None:
    """What the agent finds when it starts."""
    if life.chance.random() < 0.9:
        life.write()
    if life.chance.random() < 0.1:
        life.field.topology.touch()
