"""`simnode agent` on a host: what it stages, what it answers, and that nothing stays when it goes."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.agent_host.running import BOARD, OUTLIVE, SIMNODE, HostRoot, get, snapshot, until, without_what_outlives
from tests.cri.schema import host_paths
from tests.users import as_user

SPECS = ("nvidia.yaml", "simnode.yaml")


def log_lines(said: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in said.splitlines()]


def released(host: HostRoot) -> str:
    return str(host.told("/state")["software"]["driver_version"])


def test_a_driver_is_there_while_it_runs_and_the_host_is_as_before_after_sigterm(host: HostRoot) -> None:
    before = snapshot(host.root)
    agent = host.ready(host.agent())
    listed = subprocess.run([host.node / "driver/usr/bin/nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    assert listed.stdout.count("NVIDIA H100") == 8
    code, said = host.end(agent)
    assert code == 0, said
    after = snapshot(host.root)
    assert without_what_outlives(after) == before
    more = after.keys() - before.keys() - OUTLIVE
    assert all(any(name.startswith(f"{above}/") for name in OUTLIVE) for above in more)


@dataclass(frozen=True)
class Kept:
    """A host root that an agent keeps while the tests of this module look at both; the port where its probes are."""

    host: HostRoot
    port: int


@pytest.fixture(scope="module")
def kept(shared: HostRoot) -> Iterator[Kept]:
    """Options, environment and profile each say what the others do not, or say otherwise."""
    environ = {
        "SIMNODE_CONFIG": str(shared.config),
        "SIMNODE_GPUS": "3",
        "SIMNODE_DRIVER_VERSION": "550.163.01",
        "SIMNODE_NODE_NAME": "from-environment",
        "SIMNODE_CDI_DIR": "/srv/cdi",
        "SIMNODE_HEALTH_ADDR": "",
    }
    options = ("--gpus", "2", "--cdi-dir", "/etc/cdi", "--cdi-dir", "/var/run/cdi", "--health-addr", "127.0.0.1:0")
    agent = shared.ready(shared.agent(*options, env=environ))
    assert agent.stderr is not None
    told = str(json.loads(agent.stderr.readline())["message"])
    yield Kept(shared, int(told.partition("127.0.0.1:")[2].partition(" ")[0]))
    assert shared.end(agent)[0] == 0


@pytest.mark.parametrize("page", ["/healthz", "/readyz", "/stagedz"])
def test_probes_are_served_at_a_port(kept: Kept, page: str) -> None:
    status, body = get(http.client.HTTPConnection("127.0.0.1", kept.port, timeout=10), page)
    assert status == 200
    components = json.loads(body)["components"]
    assert components.keys() >= {"gpudriver", "fabricmanager", "nvlink"}


@pytest.mark.parametrize("said_in", ["option", "environment"])
def test_an_empty_address_opens_no_port(host: HostRoot, said_in: str) -> None:
    if said_in == "option":
        agent = host.ready(host.agent("--health-addr", ""))
    else:
        agent = host.ready(host.agent(env={"SIMNODE_HEALTH_ADDR": ""}))
    inodes = {str(fd.readlink()) for fd in Path(f"/proc/{agent.pid}/fd").iterdir()}
    tables = (Path(f"/proc/{agent.pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    listening = {f"socket:[{line.split()[9]}]" for table in tables for line in table}
    assert not inodes & listening


def test_a_port_that_is_taken_ends_it_before_it_stages_anything(host: HostRoot) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = host.end_of(host.agent("--health-addr", f"127.0.0.1:{taken.getsockname()[1]}"))
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith("simnode: cannot listen at 127.0.0.1:")
    assert not (host.node / "driver").exists()


def test_what_a_runtime_resolves_is_written_with_the_hosts_own_paths(kept: Kept) -> None:
    host = kept.host
    published = [host.root / directory / name for directory in ("etc/cdi", "run/cdi") for name in SPECS]
    if host.uid:  # no device nodes to give away
        assert not any(path.exists() for path in published)
        return
    for path in published:
        named = host_paths(json.loads(path.read_bytes()))
        assert named
        assert all(each.startswith("/var/lib/simnode/") and (host.root / each[1:]).exists() for each in named)


@pytest.mark.parametrize(
    ("said", "directories"), [("", []), ("/srv/cdi:/var/run/cdi", ["run/cdi", "srv/cdi"])], ids=["none", "two"]
)
def test_specs_lie_where_the_environment_says(host: HostRoot, said: str, directories: list[str]) -> None:
    host.ready(host.agent(env={"SIMNODE_CDI_DIR": said}))
    found = sorted(str(path.parent.relative_to(host.root)) for path in host.root.rglob("nvidia.yaml"))
    assert found == (directories if host.uid == 0 else [])


def test_device_nodes_are_roots_privilege(kept: Kept) -> None:
    nodes = {path.name for path in (kept.host.node / "driver").glob("dev/*") if path.is_char_device()}
    expected = {"nvidia0", "nvidia1", "nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools"}
    assert nodes == (expected if kept.host.uid == 0 else set())


def test_options_beat_the_environment_which_beats_the_profile(kept: Kept) -> None:
    state = kept.host.told("/state")
    assert len(state["devices"]) == 2
    assert state["software"]["driver_version"] == "550.163.01"
    assert state["node"]["node_name"] == "from-environment"
    assert not (kept.host.root / "srv").exists()


def test_a_configmap_swap_is_followed(host: HostRoot) -> None:
    volume = host.root.parent / "volume"
    profile = BOARD.read_text()

    def put(number: int, gpus: int) -> None:
        version = volume / f"..2026_{number}"
        version.mkdir(parents=True)
        (version / "config.yaml").write_text(profile.replace("num_devices: 8", f"num_devices: {gpus}"))
        (volume / "..tmp").symlink_to(version.name)
        (volume / "..tmp").rename(volume / "..data")

    def shown(gpus: int) -> bool:
        accepted = host.metric("simnode_gpus") == gpus
        return accepted and host.metric("simnode_generation") == host.metric("simnode_accepted_generation")

    put(0, 8)
    (volume / "config.yaml").symlink_to("..data/config.yaml")
    host.ready(host.agent("--config", volume / "config.yaml"))
    for number, gpus in enumerate((4, 0, 1, 8), 1):
        put(number, gpus)
        until(partial(shown, gpus))
        assert len(list((host.node / "driver/proc/driver/nvidia/gpus").iterdir())) == gpus
    assert host.metric("simnode_generation") == 5


def test_a_profile_that_is_wrong_changes_nothing_and_is_told(host: HostRoot) -> None:
    agent = host.ready(host.agent())
    before = released(host)
    host.configure("system: [")
    until(lambda: host.metric("simnode_source_failing") == 1)
    assert host.ask("/healthz")[0] == host.ask("/readyz")[0] == host.ask("/stagedz")[0] == 200
    assert released(host) == before
    _, said = host.end(agent)
    told = [line for line in log_lines(said) if line["level"] == "error"]
    assert [line["simulator"] for line in told] == ["source"]
    assert str(host.config) in str(told[0]["message"])


def test_what_is_in_the_way_is_named_and_put_right_once_it_is_gone(host: HostRoot) -> None:
    obstacle = host.node / "driver/usr/bin/nvidia-smi"
    obstacle.parent.mkdir(parents=True)
    obstacle.write_text("somebody else's")
    for path in (host.node, *host.node.rglob("*")):
        os.chown(path, host.uid, host.uid)
    agent = host.agent()
    until(lambda: host.ask("/healthz")[0] == 503)
    told = host.told("/healthz")
    assert told["reason"] == "stage failed: gpudriver"
    assert "driver/usr/bin/nvidia-smi" in told["components"]["gpudriver"]["reason"]
    surface = 'simnode_errors_total{simulator="gpudriver",action="stage",surface="driver/usr/bin/nvidia-smi"}'
    assert surface in host.ask("/metrics")[1]
    obstacle.unlink()
    host.ready(agent)
    _, said = host.end(agent)
    failure = next(line for line in log_lines(said) if line["level"] == "error")
    assert {name: failure[name] for name in ("simulator", "surface", "generation")} == {
        "simulator": "gpudriver",
        "surface": "driver/usr/bin/nvidia-smi",
        "generation": 1,
    }


def test_what_somebody_removes_or_alters_is_back_within_one_resync(host: HostRoot) -> None:
    host.ready(host.agent("--resync-interval", "200ms"))
    wanted = snapshot(host.node / "driver/proc")
    version = host.node / "driver/proc/driver/nvidia/version"
    information = next((host.node / "driver/proc/driver/nvidia/gpus").glob("*/information"))
    program = host.root / "run/nvidia/driver/usr/bin/nvidia-smi"
    version.unlink()
    information.unlink()
    information.write_text("altered")
    program.unlink()
    until(lambda: snapshot(host.node / "driver/proc") == wanted)
    until(program.exists)


def test_a_value_that_was_set_is_read_at_once_without_a_wave_and_outlives_the_agent(host: HostRoot) -> None:
    stages = 'simnode_action_duration_seconds_count{action="stage"}'
    agent = host.ready(host.agent())
    control = host.node / "control/agent.sock"
    assert host.run("set", "--socket", control, "--gpu", "3", "thermal.temperature_gpu_c=91") == (0, "")
    assert host.screen().count(" 91C ") == 1
    assert host.metric(stages) == 1
    host.end(agent, signal.SIGKILL)
    host.ready(host.agent())
    assert host.screen().count(" 91C ") == 1


def test_only_one_agent_keeps_a_root(kept: Kept) -> None:
    code, said = kept.host.end_of(kept.host.agent())
    assert code == 1
    assert said.count("\n") == 1
    assert "another agent keeps this node" in said
    assert kept.host.ask("/readyz")[0] == 200


def test_a_real_driver_is_respected(host: HostRoot) -> None:
    version = host.root / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module\n")
    code, said = host.end_of(host.agent())
    assert code == 1
    assert said == f"simnode: {version}: this host has a real NVIDIA driver; --force runs a simulated one beside it\n"
    assert not host.node.exists()
    assert host.end(host.ready(host.agent("--force")))[0] == 0


@pytest.mark.both_users
@pytest.mark.parametrize("major", [195, 1])
def test_a_device_of_the_real_drivers_major_shows_it(host: HostRoot, major: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("making a device takes root")
    os.mknod(host.root / "dev/nvidiactl", 0o020666, os.makedev(major, 255 if major == 195 else 3))
    agent = host.agent()
    if major == 195:
        assert host.end_of(agent)[0] == 1
    else:
        host.ready(agent)


def test_an_inherited_preload_is_shed(host: HostRoot) -> None:
    library = host.root.parent / "shim.so"
    source = library.with_suffix(".c")
    source.write_text("int simnode_test_shim;\n")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source], check=True)
    agent = host.ready(host.agent(env={"LD_PRELOAD": str(library)}))
    assert library.name not in Path(f"/proc/{agent.pid}/maps").read_text()
    assert b"LD_PRELOAD=" not in Path(f"/proc/{agent.pid}/environ").read_bytes()
    assert host.end(agent)[0] == 0


def test_told_to_end_while_it_starts_it_leaves_the_host_as_before(host: HostRoot) -> None:
    before = snapshot(host.root)
    codes = [-signal.SIGTERM]
    while codes.count(0) < 3:  # moments before its first breath, and some after
        agent = host.agent()
        time.sleep(len(codes) * 0.1)
        codes.append(host.end(agent)[0])
        assert without_what_outlives(snapshot(host.root)) == before
    assert set(codes) <= {0, -signal.SIGTERM}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_client_that_says_nothing_delays_no_end(host: HostRoot, number: int) -> None:
    agent = host.ready(host.agent())
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as silent:
        directory = os.open(host.node / "control", os.O_PATH)
        silent.connect(f"/proc/self/fd/{directory}/health.sock")
        os.close(directory)
        assert host.end(agent, number)[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        pytest.param([], 2, "Missing option '--config'", id="no-config"),
        pytest.param(["--config", "/nonexistent/p.yaml"], 2, "--config /nonexistent/p.yaml: there is no", id="config"),
        pytest.param(["--config", BOARD, "--host-root", "/nonexistent"], 2, "is no host's root", id="host-root"),
        pytest.param(["--config", BOARD, "--health-addr", "x"], 2, "want HOST:PORT", id="health-addr"),
        pytest.param(["--config", BOARD, "--resync-interval", "1 week"], 2, "is no duration", id="duration"),
        pytest.param(["--config", BOARD, "--log-level", "loud"], 2, "'loud' is not one of", id="log-level"),
        pytest.param(["--config", BOARD, "--gpus", "-1"], 2, "--gpus: '-1' is no number", id="gpus"),
        pytest.param(
            ["--config", BOARD, "--gpus", "65"], 2, "--gpus: must be a number of GPUs from 0 to 64", id="many"
        ),
        pytest.param(
            ["--config", BOARD, "--driver-version", "x"], 2, "--driver-version: must be a driver", id="driver"
        ),
        pytest.param(["--config", BOARD, "--node-name", "a\nb"], 2, "--node-name: must be a host's name", id="name"),
        pytest.param(
            ["--config", BOARD, "--fabricmanager-state-dir", "x"],
            2,
            "--fabricmanager-state-dir: must be an absolute path",
            id="fabric",
        ),
        pytest.param(
            ["--config", ""], 2, "'--config' (env var: 'SIMNODE_CONFIG'): an empty text is no path", id="empty"
        ),
        pytest.param(["--config", BOARD, "--host-root", ""], 2, "an empty text is no path", id="empty-host-root"),
        pytest.param(["--config", "/"], 2, "--config /: is not a regular file", id="config-directory"),
        pytest.param(["--config", BOARD, "--topology", "/"], 2, "--topology /: is not a regular file", id="topology"),
        pytest.param(["--config", BOARD, "--nvidia-smi", "/nonexistent"], 2, "there is no such file", id="nvidia-smi"),
        pytest.param(
            ["--config", BOARD, "--cdi-dir", "cdi"], 2, "'cdi' is no directory below the host's", id="cdi-dir"
        ),
        pytest.param(["--config", BOARD, "--cdi-dir", "/a/../b"], 2, "want an absolute path", id="cdi-dir-upwards"),
        pytest.param(["--config", BOARD, "--nvidia-smi", "/dev/zero"], 2, "is not a regular file", id="endless"),
    ],
)
def test_a_mistake_is_one_line_and_makes_nothing(host: HostRoot, words: list[str | Path], code: int, text: str) -> None:
    before = snapshot(host.root)
    ended, said = host.forked("agent", "--host-root", host.root, *words)
    assert (ended, said.count("\n")) == (code, 1), said
    assert text in said
    assert snapshot(host.root) == before


@pytest.mark.both_users
def test_a_root_that_cannot_be_written_is_one_line(host: HostRoot) -> None:
    if host.uid == 0:
        pytest.skip("root can write everywhere")
    (host.root / "run").chmod(0o555)
    os.chown(host.root / "run", 0 if os.geteuid() == 0 else host.uid, -1)
    code, said = host.end_of(host.agent())
    (host.root / "run").chmod(0o755)
    assert code == 1
    assert said == (
        f"simnode: {host.root}/run/simnode: Permission denied; be root, or give a --host-root that belongs to uid "
        f"{host.uid}\n"
    )


@pytest.mark.parametrize(
    ("standard_error", "ending"), [("", signal.SIGTERM), ("2>&-", signal.SIGHUP)], ids=["no-reader", "closed"]
)
def test_whatever_its_starter_left_it_with_it_lives_and_ends_well(
    host: HostRoot, standard_error: str, ending: int
) -> None:
    before = snapshot(host.root)
    reading, writing = os.pipe()
    words = f"agent --config {host.config} --host-root {host.root} --health-addr ''"
    script = f"umask 0777; exec {' '.join(SIMNODE)} {words} 0<&- 1>&- {standard_error}"
    agent = subprocess.Popen(
        ["sh", "-c", script], **as_user(host.uid), cwd="/", env=host.environ(), stderr=writing, text=True
    )
    host.started.append(agent)
    for descriptor in (reading, writing):
        os.close(descriptor)
    host.ready(agent)
    assert (host.node / "state").stat().st_mode & 0o777 == 0o755
    host.configure("system: [")  # and a line for the log
    until(lambda: host.metric("simnode_source_failing") == 1)
    agent.send_signal(ending)
    assert agent.wait(30) == 0
    assert without_what_outlives(snapshot(host.root)) == before


def test_signals_that_keep_coming_disturb_no_end(host: HostRoot) -> None:
    before = snapshot(host.root)
    agent = host.ready(host.agent())
    while agent.poll() is None:
        agent.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    assert host.end_of(agent)[0] == 0
    assert without_what_outlives(snapshot(host.root)) == before


def test_a_budget_of_nothing_is_told_as_it_is(host: HostRoot) -> None:
    code, said = host.end(host.ready(host.agent("--shutdown-timeout", "0")))
    assert code == 1
    assert "did not return within 0 s" in said
    assert host.run("clean", "--host-root", host.root) == (0, "")


@pytest.mark.parametrize(
    ("place", "kind", "text"),
    [
        ("run/simnode", "link", "run/simnode: is a link, and must be a directory of its own"),
        ("run/simnode/agent.lock", "link", "run/simnode/agent.lock: Too many levels of symbolic links"),
        ("run/simnode/agent.lock", "directory", "run/simnode/agent.lock: Is a directory"),
        ("var/lib/simnode/state", "link", "var/lib/simnode/state: is a link, and must be a directory of its own"),
        ("var/lib/simnode/control", "link", "var/lib/simnode/control: is a link, and must be a directory of its own"),
        ("var/lib/simnode/control", "file", "var/lib/simnode/control must be a directory of uid"),
        ("var/lib/simnode/control/health.sock", "directory", "health.sock: cannot be made: Is a directory"),
    ],
)
def test_what_is_planted_where_it_writes_ends_it_in_one_line(
    host: HostRoot, tmp_path: Path, place: str, kind: str, text: str
) -> None:
    plant(host, place, kind, tmp_path)
    code, said = host.end_of(host.agent())
    assert (code, said.count("\n")) == (1, 1), said
    assert text in said
    assert list(tmp_path.iterdir()) == []


def plant(host: HostRoot, place: str, kind: str, elsewhere: Path) -> None:
    """Put something of another kind where the agent wants to have something of its own."""
    path = host.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.touch()
    for made in (path, *path.parents[: place.count("/")]):
        if made.is_relative_to(host.root):
            os.chown(made, host.uid, host.uid, follow_symlinks=False)


def test_a_fifo_in_the_place_of_the_states_number_holds_nobody_up(host: HostRoot, tmp_path: Path) -> None:
    plant(host, "var/lib/simnode/state/generation", "fifo", tmp_path)
    agent = host.agent()
    log = agent.stderr
    assert log is not None
    until(lambda: "generation: cannot be written: " in log.readline())
    assert host.end(agent)[0] == 0


def test_a_control_socket_that_cannot_be_made_is_a_line_of_the_log(host: HostRoot, tmp_path: Path) -> None:
    plant(host, "var/lib/simnode/control/agent.sock", "directory", tmp_path)
    agent = host.ready(host.agent())
    lines = [str(line["message"]) for line in log_lines(host.end(agent)[1])]
    assert any(line.startswith("the control socket is closed: ") and line.endswith("Is a directory") for line in lines)


def test_a_stranger_in_what_is_published_keeps_nothing_from_being_staged(host: HostRoot, tmp_path: Path) -> None:
    plant(host, "run/nvidia", "link", tmp_path)
    agent = host.agent()
    until(lambda: host.ask("/stagedz")[0] == 200)
    until(lambda: "run/nvidia: a link is where a directory must be" in host.ask("/readyz")[1])
    assert host.screen()
    host.end(agent)
    assert list(tmp_path.iterdir()) == []
