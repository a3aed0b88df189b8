"""One life of an agent on a host root that burns: the real agent, source, orders and every simulator of a host.

It runs in virtual time in a process of its own, so that it can be killed at any call. What must hold is checked at
moments all along, and as a whole whenever the fire has died down.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path

from simnode.agent import Agent, AgentConfig, Reports
from simnode.agent.health import pages
from simnode.agent.orders import Orders, answered
from simnode.profile import Options
from simnode.sources.file import GENERATION, MIG_PROFILES, OVERRIDES, FileSource, Inputs
from tests.fire import checks
from tests.fire.documents import BROKEN, Wish
from tests.fire.field import NODE, Field
from tests.fire.holder import Holder
from tests.fire.moods import Moods
from tests.fire.weather import Weather

LONGEST_S = 1200.0
"""How long the agent may take to come round when the fire is out: its slowest retry several times."""
SHUTDOWN_S = 30.0
RESYNC_S = 60.0


class _Kept(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)


class Life:
    """An agent under fire. `wish`: what the profile asks for; `disturbed`: somebody's hand is on what is staged."""

    def __init__(self, field: Field, chance: random.Random, weather: Weather, tell: Callable[[Field], None]) -> None:
        self.field = field
        self.chance = chance
        self.weather = weather
        self.moods = Moods()
        self.holder = Holder(field.node.staging_lock)
        self.wish = Wish.any(chance)
        self.disturbed = field.foul or bool(field.altered)
        self.clean = False
        self.faults: list[str] = []
        self.records: list[logging.LogRecord] = []
        self._tell = tell
        self._skew = timedelta()

    async def live(self, acts: Callable[[Life], Coroutine[object, object, None]]) -> None:
        """Be an agent while `acts` happen, which end it."""
        node, log = self.field.node, self._log()
        root = node.node_root
        inputs = Inputs(
            self.field.config, root / OVERRIDES, self.field.topology, self.field.config.with_name(MIG_PROFILES)
        )
        environ = {"NODE_NAME": "node-1", "HOSTNAME": "node-1"}
        with node.kept():
            self.source = FileSource(inputs, Options(), environ, root / GENERATION, log, now=self.now)
            reports = Reports()
            made = checks.simulators(self.field, reports, log)
            for simulator in made:
                self.moods.take(simulator)
            config = AgentConfig(
                made,
                self.source,
                log,
                shutdown_timeout=SHUTDOWN_S,
                staging_lock_path=node.staging_lock,
                reports=reports,
                resync_interval=RESYNC_S,
            )
            self.agent = Agent(config)
            self.node = checks.Node(self.field, self.agent, made)
            self.orders = Orders(self.source, self.agent)
            self.log = log
            self.weather.at_calls, self.weather.at_rest = self._at_calls, self._at_rest
            self.running = asyncio.create_task(self.agent.run())
            await asyncio.sleep(0)
            await acts(self)
            assert self.running.done()
        self.check_said()
        assert not self.faults, self.faults

    def note(self, text: str) -> None:
        """Write into the story; it and the field outlive this process."""
        now = asyncio.get_running_loop().time()
        self.field.story.append(f"{now:9.1f} s: {text}")
        self._tell(self.field)

    def now(self) -> datetime:
        """The agent's wall clock, which jumps."""
        seconds = asyncio.get_running_loop().time()
        return datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=seconds) + self._skew

    def jump(self) -> None:
        """Set the wall clock, forth or back."""
        self._skew = timedelta(seconds=self.chance.choice((-3.2e7, -3600, -1, 0, 0.5, 86400, 3.2e7)))

    async def order(self, **order: object) -> str:
        """What an order on the control socket is refused for, "" if it is carried out."""
        answer = await answered(self.orders, json.dumps(order).encode())
        if answer["ok"]:
            return ""
        faults = answer["faults"]
        assert isinstance(faults, list | tuple)
        assert faults
        assert all(fault and "\n" not in fault for fault in faults), answer
        text = "; ".join(faults)
        assert "cannot be carried out" not in text, text
        return text

    def write(self, text: str | None = None) -> None:
        """Let the profile be as wished, or `text`; replaced in one step."""
        temporary = self.field.documents / "new"
        temporary.write_text(self.wish.text if text is None else text)
        with contextlib.suppress(IsADirectoryError):
            temporary.rename(self.field.config)

    async def quiet(self) -> None:
        """Put the fire out and wait until the agent has come round; then everything must be as it should."""
        now = asyncio.get_running_loop().time
        self._put_out()
        until = now() + LONGEST_S
        await asyncio.sleep(max(0, self.weather.calm_at - now()) + 1)
        repaired = not self.disturbed
        while not repaired or not self.well():
            if self.make_way() or not repaired:
                self.disturbed = repaired = True
                await asyncio.sleep(2 * RESYNC_S + 5)
            assert not self.running.done(), f"the agent ended by itself: {self.running}"
            assert now() < until, self._complaint()
            await asyncio.sleep(7)
        self.disturbed = self.field.foul = False
        self.field.altered &= self.field.there() - checks.wanted(self.node)
        assert not self.faults, self.faults
        assert self.agent.liveness().check().ok
        assert self.agent.staged().check().ok
        await checks.whole(self.node)
        self.check_said()

    def well(self) -> bool:
        """True if the agent says that everything is as wished."""
        state = self.agent.state
        if state is None or self.source.error or not self.wish.came_true(state):
            return False
        return self.agent.record.generation == state.generation and self.agent.readiness().check().ok

    def make_way(self) -> bool:
        """Take away what of others is in the way of what is wanted; true if anything was."""
        if self.agent.state is None:
            return False
        wanted = checks.wanted(self.node)
        needed = wanted | {str(parent) for path in wanted for parent in Path(path).parents}
        gone = [self._give_back(path) for path in sorted(self.field.altered & wanted)]
        gone += [self.field.unplant(path) for path in sorted(self.field.plants & needed, reverse=True)]
        return any(gone)

    def _give_back(self, path: str) -> bool:
        """Take away what somebody altered and the agent therefore left alone; true if it was in the way."""
        ready = self.agent.readiness().check()
        in_the_way = any(path.removeprefix(f"{NODE}/") in text for _, text in ready.components.values())
        if in_the_way:
            (self.field.root / path).unlink(missing_ok=True)
        return in_the_way

    def check_said(self) -> None:
        """The probes answer, and all that was logged says whose it is."""
        for maker in pages(self.agent, self.now).values():
            assert maker().status in (200, 503)
        assert self.agent.record.staleness(self.now()) >= 0
        names = {simulator.name for simulator in self.node.simulators} | {"agent", "source"}
        checks.attributed(self.records, names)
        self.records.clear()

    def _put_out(self) -> None:
        self.weather.clear()
        self.moods.clear()
        self.holder.release()
        config = self.field.config
        if config.is_dir():
            config.rmdir()
        if not config.is_file() or config.is_symlink() or config.read_bytes() != self.wish.text.encode():
            config.unlink(missing_ok=True)
            self.write()
        for path in (self.field.topology, self.field.node.node_root / OVERRIDES):
            if path.exists() and path.read_text() in BROKEN:
                path.unlink()

    def _complaint(self) -> str:
        ready = self.agent.readiness().check()
        return f"{self.source.error or 'no error'}; wished {self.wish}; {ready}; {self.agent.staged().check()}"

    def _log(self) -> logging.Logger:
        log = logging.Logger("fire", logging.INFO)
        log.addHandler(_Kept(self.records))
        return log

    def _at_calls(self) -> None:
        if not self.disturbed and self.chance.random() < 0.02:
            self.faults += checks.names_missing(self.field)

    def _at_rest(self) -> None:
        staged = self.agent.staged()
        structure = self.agent._reconciler.steps.structure
        if staged.is_set() and structure is not None and not self.disturbed and self.chance.random() < 0.1:
            self.faults += checks.not_whole(self.node, structure)
        if not staged.is_set() and self.agent.readiness().check().ok:
            self.faults.append("ready, and not staged")
        if self.agent.liveness().check().ok is bool(staged.failures):
            self.faults.append("liveness does not say what staged says")
