"""Two of the three questions one can ask an agent (the third is `Staged`): is it well, is everything done.

Neither waits, and neither asks the source: a control plane that is away must not restart a fleet.
"""

from __future__ import annotations

from collections.abc import Mapping

from simnode.agent.failures import Failures, attribute, by_simulator, failed
from simnode.agent.reconciler import Reconciler
from simnode.agent.staged import Staged
from simnode.contracts import Health, Progressing, Simulator


class Liveness:
    """Ok unless the latest stage wave failed; so also before the first, and while one runs."""

    def __init__(self, staged: Staged, simulators: tuple[Simulator, ...]) -> None:
        self._staged = staged
        self._simulators = simulators

    def check(self) -> Health:
        """As of now; not ok says who failed, sorted by name."""
        failures = self._staged.failures
        texts = by_simulator(failures)
        components = {each.name: (each.name not in texts, texts.get(each.name, "")) for each in self._simulators}
        return Health(not failures, failed("stage", failures) if failures else "", components)


class Readiness:
    """Ok when the newest tree is staged and published, every simulator is ready and no daemon has ended."""

    def __init__(self, staged: Staged, reconciler: Reconciler, simulators: tuple[Simulator, ...]) -> None:
        self._staged = staged
        self._reconciler = reconciler
        self._simulators = simulators

    def check(self) -> Health:
        """As of now; failures of the agent itself (the staging lock) are a component of their own."""
        failures: Failures = tuple(failure for step in self._reconciler.failing.values() for failure in step)
        ended = self._reconciler.supervisor.ended
        texts = by_simulator((*failures, *(failure for early in ended.values() for failure in early)))
        waiting = self._reconciler.steps.waiting
        if waiting:
            texts["agent"] = waiting
        components = {each.name: _component(each, texts) for each in self._simulators}
        components.update((name, (False, text)) for name, text in texts.items() if name not in components)
        unready = sorted(name for name, (ok, _) in components.items() if not ok)
        reason = ""
        if not self._staged.is_set():
            reason = self._staged.check().reason
            if waiting:
                reason = f"{reason}: the agent {waiting}"
        elif waiting:
            reason = f"not staged anew: the agent {waiting}"
        elif unready:
            reason = f"not ready: {', '.join(unready)}"
        elif not self._reconciler.steps.published:
            reason = "not published"
        return Health(not reason, reason, components)


def _component(simulator: Simulator, texts: Mapping[str, str]) -> tuple[bool, str]:
    text = texts.get(simulator.name, "")
    text = text or _lacking(simulator)
    return not text, text


def _lacking(simulator: Simulator) -> str:
    """Why it says that it is not ready, "" if it says that it is; one that cannot say so is not."""
    try:
        if simulator.ready():
            return ""
        return (simulator.progress() if isinstance(simulator, Progressing) else "") or "not ready"
    except Exception as error:
        return by_simulator(attribute(simulator.name, "ready", error))[simulator.name]
