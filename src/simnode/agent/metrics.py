"""The agent's numbers in Prometheus' text format, version 0.0.4.

Written by hand: it is a format of lines, and the client library would triple the memory of an idle agent's own code
(see responder). Names and labels are a promise to whoever made a dashboard of them; docs/agent.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from simnode import __version__
from simnode.agent.record import Record
from simnode.contracts import Health
from simnode.state import State

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


def exposition(record: Record, state: State | None, probes: Mapping[str, Health], now: datetime) -> str:
    """The whole page. `probes`: what liveness, readiness and staged answer now; `state`: the one in force."""
    since = record.source_at
    timings = sorted(record.timings.items())
    errors = sorted(record.errors.items())
    ready = sorted(probes["readiness"].components.items()) if "readiness" in probes else []
    return "".join(
        (
            _family("build_info", "gauge", "1, and which simnode this is.", [("", {"version": __version__}, 1)]),
            _family("accepted_generation", "gauge", "Generation of the newest State.", [("", {}, record.accepted)]),
            _family("generation", "gauge", "Generation staged and read.", [("", {}, record.generation)]),
            _family("gpus", "gauge", "GPUs of the newest State.", [("", {}, len(state.devices) if state else 0)]),
            _family(
                "action_duration_seconds",
                "summary",
                "How long each action of the agent took.",
                [
                    sample
                    for action, timing in timings
                    for sample in (
                        ("_sum", {"action": action}, timing.total),
                        ("_count", {"action": action}, timing.count),
                    )
                ],
            ),
            _family(
                "action_last_duration_seconds",
                "gauge",
                "How long the latest of each action took.",
                [("", {"action": action}, timing.last) for action, timing in timings],
            ),
            _family(
                "action_failures_total",
                "counter",
                "Actions of which something failed.",
                [("", {"action": action}, timing.failed) for action, timing in timings],
            ),
            _family(
                "errors_total",
                "counter",
                "What went wrong, by simulator, action and surface.",
                [
                    ("", {"simulator": simulator, "action": action, "surface": surface}, count)
                    for (simulator, action, surface), count in errors
                ],
            ),
            _family(
                "probe_ok",
                "gauge",
                "What each probe answers.",
                [("", {"probe": name}, health.ok) for name, health in sorted(probes.items())],
            ),
            _family(
                "component_ready",
                "gauge",
                "What readiness says of each component.",
                [("", {"component": name}, ok) for name, (ok, _) in ready],
            ),
            _family(
                "source_staleness_seconds",
                "gauge",
                "How long the State in force may have been out of date.",
                [("", {}, record.staleness(now))],
            ),
            _family(
                "source_update_timestamp_seconds",
                "gauge",
                "When the source gave its latest good State.",
                [] if since is None else [("", {}, since.timestamp())],
            ),
            _family(
                "source_failing", "gauge", "1 if its latest word was an error.", [("", {}, bool(record.source_error))]
            ),
        )
    )


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> str:
    """One metric with its samples; nothing at all without any."""
    lines = [f"simnode_{name}{suffix}{_labels(labels)} {_number(value)}" for suffix, labels, value in samples]
    if not lines:
        return ""
    return "\n".join((f"# HELP simnode_{name} {text}", f"# TYPE simnode_{name} {kind}", *lines, ""))


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
