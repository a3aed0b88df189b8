"""What a node says of itself: its agent, the fabric manager's marker, the topology document, the fabric's state."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from simnode.control_client import SOCKET
from simnode.doctor.documents import yaml_document
from simnode.doctor.findings import Finding
from simnode.doctor.view import View

MARKER = "fabricmanager.ready"
_IN_PROGRESS, _COMPLETED = 2, 3  # nvml.h: NVML_GPU_FABRIC_STATE_*


def agent(view: View) -> Iterator[Finding]:
    """It answers, everything is staged, published and served, and its documents are right."""
    if view.agent is None:
        return
    at = f"{view.node_root}/{SOCKET}"
    status = view.agent.status
    if status is None:
        why = "nothing follows the profile, and nobody repairs what is damaged"
        yield Finding(at, view.agent.fault, why, "a running agent")
        return
    if status.source_error:
        why = "the node stays as the last good document said"
        yield Finding(at, f"the agent refuses its documents: {status.source_error}", why, "a profile without a fault")
    told: set[str] = set()
    probes = status.health
    for probe, health in (("live", probes.live), ("staged", probes.staged), ("ready", probes.ready)):
        parts = {name: part.reason for name, part in health.components.items() if not part.ok}
        for name, reason in (parts or {"the node": health.reason}).items() if not health.ok else ():
            if name not in told:
                told.add(name)
                found = f"{name} is not {probe}" + (f": {reason}" if reason else "")
                yield Finding(at, found, "consumers may meet half a node", "it ready; the agent's log tells more")


def fabric_manager(view: View) -> Iterator[Finding]:
    """Where it is on, it is ready; and no GPU is left half-way on its way into the fabric."""
    above = f"{view.node_root}/fabric-state"
    marker = view.reach(f"{above}/{MARKER}")
    waiting = view.exists(above) and (marker.status is None or not stat.S_ISREG(marker.status.st_mode))
    if waiting:
        why = "GPUs wait for the fabric, and programs with them"
        want = "the marker, which a running agent makes after the initial delay"
        yield Finding(f"{above}/{MARKER}", marker.fault or "is no regular file", why, want)
    for gpu in view.nvml.gpus:
        if gpu.fabric is None:
            continue
        state, status = gpu.fabric
        why = f"the DRA driver does not start, or leaves GPU {gpu.index} out of its clique"
        if state == _IN_PROGRESS and not waiting:
            yield Finding(
                f"{view.libraries}/libnvidia-ml.so.1", f"GPU {gpu.index} is still joining the fabric", why, "completed"
            )
        elif state == _COMPLETED and status != 0:
            found = f"GPU {gpu.index} has joined the fabric with status {status}"
            yield Finding(f"{view.libraries}/libnvidia-ml.so.1", found, why, "status 0")


def topology(view: View) -> Iterator[Finding]:
    """The document of the cluster, where there is one, can be read, and each node is in one clique of it."""
    at = f"{view.node_root}/topology/topology.yaml"
    if not view.exists(at):
        return
    fault = _topology_fault(view.text(at))
    if fault:
        yield Finding(at, fault, "nodes keep the clique of their own profile", "version 1, domains, cliques, nodes")


def real_driver(view: View) -> Iterator[Finding]:
    """There is no real driver on the host, whose files and majors would be taken for ours."""
    if view.foreign:
        why = "programs meet two drivers, and device files of ours open real GPUs"
        yield Finding(view.foreign, "is a real NVIDIA driver's", why, "a host without one")


def _topology_fault(text: str | None) -> str:
    try:
        document = yaml_document(text)
    except ValueError:
        return "is no YAML"
    known = set()
    try:
        if document["version"] != 1:
            return f"is of version {document['version']}"
        cliques = (clique for domain in document["domains"] for clique in domain["cliques"])
        for node in (node for clique in cliques for node in clique["nodes"]):
            if str(node) in known:
                return f"has {node} twice"
            known.add(str(node))
    except (TypeError, KeyError) as error:
        return f"lacks {error}" if isinstance(error, KeyError) else "is no topology document"
    return ""
