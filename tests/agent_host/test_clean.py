"""What a killed agent leaves, and how it goes: by the next agent, or by `simnode clean`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.agent_host.conftest import Make
from tests.agent_host.running import BOARD, HostRoot, snapshot, staged, without_what_outlives


def fabric(enabled: bool) -> str:
    return f"{BOARD.read_text()}\nfabricmanager:\n  enabled: {str(enabled).lower()}\n"


def killed(host: HostRoot) -> None:
    host.configure(fabric(True))
    host.end(host.ready(host.agent()), signal.SIGKILL)
    assert (host.node / "fabric-state/fabricmanager.ready").exists()
    assert (host.node / "control/health.sock").is_socket()


def test_clean_leaves_nothing_of_a_killed_agent(host: HostRoot) -> None:
    before = snapshot(host.root)
    killed(host)
    (host.node / "state/overrides.yaml").write_text("version: 1\n")
    (host.node / "state/overrides.yaml.lock").touch()
    (host.node / "state/generation.4711.tmp").touch()
    assert host.run("clean", "--host-root", host.root) == (0, "")
    assert snapshot(host.root) == before


def test_clean_leaves_nothing_of_an_agent_that_ended_in_good_order(host: HostRoot) -> None:
    before = snapshot(host.root)
    host.end(host.ready(host.agent()))
    assert host.run("clean", "--host-root", host.root) == (0, "")
    assert snapshot(host.root) == before


def test_clean_has_nothing_to_do_where_there_never_was_an_agent(host: HostRoot) -> None:
    before = snapshot(host.root)
    assert host.run("clean", "--host-root", host.root) == (0, "")
    assert snapshot(host.root) == before


def test_clean_is_refused_while_an_agent_keeps_the_node(host: HostRoot) -> None:
    host.ready(host.agent())
    standing = staged(host.root)
    code, said = host.run("clean", "--host-root", host.root)
    assert (code, said.count("\n")) == (1, 1)
    assert "another agent keeps this node" in said
    assert staged(host.root) == standing
    assert host.ask("/readyz")[0] == 200


def test_clean_leaves_and_names_what_simnode_did_not_make(host: HostRoot) -> None:
    killed(host)
    foreign = host.node / "driver/usr/bin/tool"
    foreign.write_text("somebody else's")
    code, said = host.run("clean", "--host-root", host.root)
    assert (code, said) == (1, f"simnode: not made by simnode, and left alone: {foreign}\n")
    assert {path.name for path in host.node.rglob("*") if not path.is_dir()} == {"tool", "parents.json"}
    foreign.unlink()
    assert host.run("clean", "--host-root", host.root) == (0, "")
    assert not host.node.exists()


@pytest.mark.parametrize("name", ["state/overrides.yaml", "state/generation", "control/agent.sock", "driver"])
def test_clean_names_a_strangers_directory_or_link_and_takes_away_the_rest(host: HostRoot, name: str) -> None:
    path = host.node / name
    path.parent.mkdir(parents=True)
    if name == "driver":
        path.symlink_to("/usr")
    else:
        path.mkdir()
    for made in (host.node, path.parent, path):
        os.chown(made, host.uid, host.uid, follow_symlinks=False)
    assert host.run("clean", "--host-root", host.root) == (
        1,
        f"simnode: not made by simnode, and left alone: {path}\n",
    )
    assert not (host.root / "run/simnode").exists()


@pytest.mark.both_users
def test_clean_makes_nothing_for_a_user_who_may_not_and_says_who_may(host: HostRoot) -> None:
    if host.uid == 0:
        pytest.skip("root may")
    before = snapshot(host.root)
    for name in ("var/lib", "run"):
        (host.root / name).chmod(0o555)
    assert host.run("clean", "--host-root", host.root) == (0, "")
    (host.root / "var/lib").chmod(0o755)
    host.node.mkdir()
    code, said = host.run("clean", "--host-root", host.root)
    (host.root / "run").chmod(0o755)
    assert code == 1
    assert said.endswith(
        f"run/simnode: Permission denied; be root, or give a --host-root that belongs to uid {host.uid}\n"
    )
    host.node.rmdir()
    assert snapshot(host.root) == before


def test_clean_survives_a_damaged_journal_and_says_what_it_could_not_know(host: HostRoot) -> None:
    killed(host)
    (host.node / "state/journal/gpudriver.json").write_text("{")
    code, said = host.run("clean", "--host-root", host.root)
    assert code == 1
    assert "not made by simnode, and left alone: " in said
    assert not (host.root / "run/nvidia").exists()


def test_a_mistake_in_the_root_is_one_line(host: HostRoot) -> None:
    code, said = host.run("clean", "--host-root", "/nonexistent")
    assert (code, said.count("\n")) == (2, 1)
    assert "is no host's root" in said


@pytest.mark.parametrize("enabled", [True, False], ids=["the-same", "another-profile"])
def test_the_next_agent_goes_on_where_a_killed_one_was(host: HostRoot, another: Make, enabled: bool) -> None:
    before = snapshot(host.root)
    killed(host)
    fresh = another()
    for each in (host, fresh):
        each.configure(fabric(enabled).replace("num_devices: 8", "num_devices: 3"))
    agent = host.ready(host.agent())
    fresh.ready(fresh.agent())
    assert staged(host.root) == staged(fresh.root)
    assert host.end(agent)[0] == 0
    assert without_what_outlives(snapshot(host.root)) == before


def test_a_node_root_behind_a_link_out_of_the_root_is_refused(host: HostRoot, tmp_path: Path) -> None:
    (host.root / "var/lib/simnode").symlink_to(tmp_path)
    os.chown(host.root / "var/lib/simnode", host.uid, host.uid, follow_symlinks=False)
    code, said = host.run("clean", "--host-root", host.root)
    assert (code, said.count("\n")) == (2, 1)
    assert "leads out of" in said
