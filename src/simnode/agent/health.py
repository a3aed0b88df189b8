"""The pages that tell how an agent is: three probes, its numbers, and the State in force.

All are made of what the agent knows at that moment. No page asks the source, a simulator's disk or anybody else, so
they answer while any of these hangs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus

import msgspec

from simnode.agent.agent import Agent
from simnode.agent.metrics import CONTENT_TYPE, exposition
from simnode.agent.responder import Page
from simnode.contracts import Health, Probe
from simnode.state import State

_JSON = "application/json"
_DOCUMENTS = ("config_raw", "topology_raw", "mig_profiles_raw")


def pages(agent: Agent, now: Callable[[], datetime]) -> Mapping[str, Callable[[], Page]]:
    """/healthz, /readyz, /stagedz, /metrics and /state of an agent; `now` is the wall clock."""
    liveness, readiness, staged = agent.liveness(), agent.readiness(), agent.staged()
    probes = {"liveness": liveness, "readiness": readiness, "staged": staged}
    return {
        "/healthz": lambda: _probed(liveness),
        "/readyz": lambda: _probed(readiness),
        "/stagedz": lambda: _probed(staged),
        "/metrics": lambda: Page(
            HTTPStatus.OK,
            CONTENT_TYPE,
            exposition(
                agent.record, agent.state, {name: probe.check() for name, probe in probes.items()}, now()
            ).encode(),
        ),
        "/state": lambda: _in_force(agent.state),
    }


def answer(health: Health) -> dict[str, object]:
    """A probe's answer as the document that a client gets."""
    components = {name: {"ok": ok, "reason": reason} for name, (ok, reason) in health.components.items()}
    return {"ok": health.ok, "reason": health.reason, "components": components}


def _probed(probe: Probe) -> Page:
    health = probe.check()
    return _json(HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE, answer(health))


def _in_force(state: State | None) -> Page:
    """The State without the documents that it came from: comments and unknown keys in them are not ours to show."""
    if state is None:
        return _json(HTTPStatus.SERVICE_UNAVAILABLE, {"reason": "the source has given no state yet"})
    shown = {name: getattr(state, name) for name in State.__struct_fields__ if name not in _DOCUMENTS}
    return _json(HTTPStatus.OK, shown)


def _json(status: HTTPStatus, document: object) -> Page:
    return Page(status, _JSON, msgspec.json.encode(document) + b"\n")
