"""The pages of an agent: what its probes, numbers and State look like from outside."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import msgspec
import pytest

from simnode.agent import Agent, AgentConfig, Failure, Record
from simnode.agent.health import pages
from simnode.agent.metrics import exposition
from simnode.agent.responder import Page
from simnode.contracts import Health, Update
from simnode.state import Facts, State
from tests.simulators.states import state

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GOOD = Health(ok=True, reason="", components={"a": (True, "")})
STATE = msgspec.structs.replace(state(2), generation=5, topology_raw=b"secret: topology", mig_profiles_raw=b"secret")


class Sim:
    """A simulator that can be told to fail or to hang."""

    def __init__(self, name: str, error: str = "", hangs: bool = False) -> None:
        self.name = name
        self.error = error
        self.hangs = hangs

    async def stage(self, state: State, facts: Facts) -> None:  # noqa: ARG002
        if self.hangs:
            await asyncio.sleep(3600)
        if self.error:
            raise OSError(self.error)

    async def discard(self) -> None:
        pass

    def ready(self) -> bool:
        return not (self.error or self.hangs)


class Says:
    """A source that says one thing."""

    def __init__(self, update: Update) -> None:
        self.update = update

    async def watch(self) -> AsyncIterator[Update]:
        yield self.update
        await asyncio.sleep(3600)

    async def close(self) -> None:
        pass


GIVEN = Update(at=NOW, state=STATE)
Pages = Mapping[str, Callable[[], Page]]


def shown(path: str, *simulators: Sim, says: Update = GIVEN, now: datetime = NOW) -> Page:
    """What an agent of these simulators shows at `path` once its first wave has ended, hangs, or does not come."""

    async def live() -> Page:
        log = logging.Logger("test", logging.CRITICAL)
        agent = Agent(AgentConfig(simulators=simulators, source=Says(says), log=log))
        running = asyncio.create_task(agent.run())
        await asyncio.sleep(0.05)
        page = pages(agent, lambda: now)[path]()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return page

    return asyncio.run(live())


FINE = {"ok": True, "reason": ""}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/stagedz"])
def test_a_node_that_stands_is_all_green(path: str) -> None:
    page = shown(path, Sim("b"), Sim("a"))
    assert page.status == HTTPStatus.OK
    assert json.loads(page.body) == {"ok": True, "reason": "", "components": {"a": FINE, "b": FINE}}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/stagedz"])
def test_a_stage_that_failed_is_red_and_names_who(path: str) -> None:
    page = shown(path, Sim("a"), Sim("b", error="no room"))
    assert page.status == HTTPStatus.SERVICE_UNAVAILABLE
    told = json.loads(page.body)
    assert told["reason"] == "stage failed: b"
    assert told["components"]["a"] == FINE
    assert not told["components"]["b"]["ok"]
    assert "no room" in told["components"]["b"]["reason"]


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/readyz", 503), ("/stagedz", 503)])
def test_a_stage_that_hangs_leaves_the_probes_answering(path: str, status: int) -> None:
    assert shown(path, Sim("a", hangs=True)).status == status


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/readyz", 503), ("/stagedz", 503), ("/state", 503)])
def test_a_source_without_a_state_is_no_reason_to_restart(path: str, status: int) -> None:
    assert shown(path, Sim("a"), says=Update(at=NOW, error="not there")).status == status


def test_the_state_in_force_is_shown_without_the_documents_it_came_from() -> None:
    page = shown("/state", Sim("a"))
    told = json.loads(page.body)
    assert page.content_type == "application/json"
    assert told["generation"] == 5
    assert [device["minor_number"] for device in told["devices"]] == [63, 62]
    assert not {"config_raw", "topology_raw", "mig_profiles_raw"} & told.keys()
    assert b"secret" not in page.body


def test_metrics_are_in_the_text_format() -> None:
    page = shown("/metrics", Sim("a"), Sim("b", error="no room"))
    assert page.content_type.startswith("text/plain; version=0.0.4")
    lines = page.body.decode().splitlines()
    assert "simnode_accepted_generation 5" in lines
    assert "simnode_generation 0" in lines
    assert "simnode_gpus 2" in lines
    assert 'simnode_probe_ok{probe="liveness"} 0' in lines
    assert 'simnode_errors_total{simulator="b",action="stage",surface=""} 1' in lines
    assert 'simnode_action_duration_seconds_count{action="stage"} 1' in lines
    assert 'simnode_action_failures_total{action="stage"} 1' in lines


def test_every_sample_follows_its_help_and_type_and_stands_once() -> None:
    record = Record(accepted=3, generation=2)
    failure = Failure("a", "stage", "driver/dev/nvidia0", "x")
    record.did("stage", 0.25, (failure, Failure("a", "stage", 'odd "name\\', "y")))
    record.did("stage", 0.5, ())
    record.observed(Update(at=NOW, state=STATE))
    text = exposition(record, STATE, {"readiness": GOOD}, NOW)
    assert text.endswith("\n")
    described: set[str] = set()
    samples: Counter[str] = Counter()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            described.add(line.split()[2])
        elif not line.startswith("# HELP "):
            sample, value = line.rsplit(" ", 1)
            float(value)
            samples[sample] += 1
            name = sample.partition("{")[0]
            assert any(name in (each, f"{each}_sum", f"{each}_count") for each in described), line
    assert max(samples.values()) == 1
    assert 'simnode_errors_total{simulator="a",action="stage",surface="odd \\"name\\\\"} 1' in text
    assert 'simnode_action_duration_seconds_sum{action="stage"} 0.75' in text
    assert 'simnode_action_last_duration_seconds{action="stage"} 0.5' in text


@pytest.mark.parametrize(
    ("failed_for", "staleness", "failing"),
    [pytest.param(None, "0", "0", id="good"), pytest.param(90, "90", "1", id="failing-since-90-s")],
)
def test_the_sources_staleness_is_told(failed_for: int | None, staleness: str, failing: str) -> None:
    record = Record()
    record.observed(Update(at=NOW, state=STATE))
    if failed_for is not None:
        record.observed(Update(at=NOW + timedelta(seconds=30), error="away"))
    lines = exposition(record, STATE, {}, NOW + timedelta(seconds=90)).splitlines()
    assert f"simnode_source_staleness_seconds {staleness}" in lines
    assert f"simnode_source_failing {failing}" in lines
