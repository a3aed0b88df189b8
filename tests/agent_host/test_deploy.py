"""The manifest fits the agent that it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from simnode.cli.host import Duration, agent
from tests.agent_host.running import HostRoot, snapshot

MANIFEST = Path(__file__).parents[2] / "deploy/daemonset.yaml"


@pytest.fixture
def pod() -> dict[str, Any]:
    documents = list(yaml.safe_load_all(MANIFEST.read_text()))
    spec: dict[str, Any] = next(each for each in documents if each["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    return spec


@pytest.fixture
def said(pod: dict[str, Any]) -> dict[str, Any]:
    """What the agent makes of the container's arguments."""
    command, *words = pod["containers"][0]["args"]
    assert command == "agent"
    with agent.make_context("agent", words) as context:
        return context.params


def test_the_grace_period_is_longer_than_the_shutdown_timeout(pod: dict[str, Any], said: dict[str, Any]) -> None:
    assert pod["terminationGracePeriodSeconds"] > said["shutdown_timeout"]


def test_probes_ask_pages_that_there_are_at_the_port_that_there_is(pod: dict[str, Any], said: dict[str, Any]) -> None:
    container = pod["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {"liveness": "/healthz", "readiness": "/readyz"}
    assert {f":{ports[probe['port']]}" for probe in probes.values()} == {said["health_addr"]}


def test_everything_mounted_below_the_hosts_root_lies_there_on_the_host(
    pod: dict[str, Any], said: dict[str, Any]
) -> None:
    places = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    expected = {name: f"{said['host_root']}{path}" for name, path in places.items()}
    assert {name: mounts[name] for name in places} == expected
    assert str(said["config"]).startswith(f"{mounts['profile']}/")


@pytest.mark.both_users
def test_everything_that_the_agent_writes_on_the_host_lies_in_a_directory_that_is_mounted(
    pod: dict[str, Any], said: dict[str, Any], host: HostRoot
) -> None:
    """The rest of the container is read-only, and an agent that cannot publish is never ready."""
    mounts = [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"] if not mount.get("readOnly")]
    before = snapshot(host.root, contents=False)
    process = host.ready(host.agent())
    after = snapshot(host.root, contents=False)
    assert host.end(process)[0] == 0
    leaves = {name for name in after.keys() - before.keys() if not any(above.startswith(f"{name}/") for above in after)}
    assert leaves
    places = [f"{said['host_root']}/{name}" for name in sorted(leaves)]
    assert [place for place in places if not any(place.startswith(f"{mount}/") for mount in mounts)] == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("30", 30), ("1.5", 1.5), ("500ms", 0.5), ("1m30s", 90), ("1h", 3600)]
)
def test_a_duration_is_seconds_or_numbers_with_units(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "m", "1 week", "-1", "nan", "inf", "1s1", "25h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no duration"):
        Duration().convert(text, None, None)
