"""A machine of its own for real container runtimes: podman and containerd, unpacked, with a host's agent beside them.

Everything runs in one mount namespace in which /var/lib and /run are empty, so that the agent keeps `/` as it would on
a host, while nothing of it or of a container ever reaches the machine. Root only. Containers have the machine's own
network, and of its files the C library and Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.consumers.cri_api import Message, Refused, Runtime
from tests.consumers.fetch import Fetched
from tests.cri.schema import host_paths

SIMNODE = (sys.executable, "-P", "-m", "simnode")
BOARDS = Path(__file__).parents[2] / "src/simnode/profile/boards"
IMAGE = "simnode.test/box:1"
PATIENCE_S = 20.0
PROGRAMS = ("sh", "ls", "cat", "sleep", "env", "test")
LIBRARIES = tuple(sorted(path for path in Path("/usr/lib").glob("*-linux-gnu") if (path / "libc.so.6").exists()))
PYTHON = Path(sys.executable).resolve()


def until(probe: Callable[[], bool]) -> None:
    """Wait for something to be so."""
    deadline = time.monotonic() + PATIENCE_S
    while not probe():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


class Machine:
    """The mount namespace, what runs in it, and a scratch directory that is seen from both sides."""

    def __init__(self, scratch: Path, libraries: Sequence[Path]) -> None:
        self.scratch = scratch
        self.config = scratch / "profile.yaml"
        self.agent: subprocess.Popen[bytes] | None = None
        steps = ["mount -t tmpfs tmpfs /var/lib", "mount -t tmpfs tmpfs /run"]
        for library in LIBRARIES[:1] if libraries else ():
            lower = ":".join(map(str, (*libraries, library)))
            steps.append(f"mount -t overlay overlay -o lowerdir={lower} {library}")
        script = " && ".join((*steps, "echo stands", "exec sleep 600"))
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
        self._holder = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"stands\n"

    def words(self, *words: str | Path) -> list[str]:
        """A command as it has to be started to run in there."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--wd=/", *map(str, words)]

    def path(self, path: str) -> Path:
        """A path in there, as it can be reached from here."""
        return Path(f"/proc/{self._holder.pid}/root{path}")

    def run(self, *words: str | Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """A command in there to its end."""
        return subprocess.run(
            self.words(*words), env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def configure(self, *edits: tuple[str, str], board: str = "h100") -> None:
        """Give the agent a board's profile, with texts in it replaced."""
        text = (BOARDS / f"{board}.yaml").read_text()
        for old, new in edits:
            assert old in text
            text = text.replace(old, new, 1)
        temporary = self.config.with_suffix(".tmp")
        temporary.write_text(text)
        temporary.rename(self.config)

    def keep(self, *options: str | Path) -> None:
        """Start an agent and wait until it has published."""
        words = ("agent", "--config", self.config, "--health-addr", "", "--log-format", "plain", *options)
        with (self.scratch / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(self.words(*SIMNODE, *words), stderr=log, env=dict(os.environ))
        until(self.specs)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the agent."""
        assert self.agent is not None
        self.agent.send_signal(number)
        self.agent.wait(PATIENCE_S)
        self.agent = None

    def specs(self) -> bool:
        """True once there are CDI specs of ours."""
        return self.path("/run/cdi/nvidia.yaml").exists()

    def devices(self) -> list[str]:
        """The names that can be asked for, as the spec lists them."""
        spec: dict[str, Any] = json.loads(self.path("/run/cdi/nvidia.yaml").read_bytes())
        return [device["name"] for device in spec["devices"]]

    def missing(self) -> list[str]:
        """What a spec names and nothing is; the spec has to be the same before and after the look."""
        found = []
        for spec in (self.path("/run/cdi/nvidia.yaml"), self.path("/run/cdi/simnode.yaml")):
            with contextlib.suppress(FileNotFoundError):
                before = spec.read_bytes()
                named = host_paths(json.loads(before))
                gone = [path for path in named if not self.path(path).exists()]
                found += gone if gone and spec.read_bytes() == before else []
        return found

    def close(self) -> None:
        """End everything that runs in there; its mounts go with it."""
        if self.agent is not None:
            self.end(signal.SIGKILL)
        mine = self.path("").parent.joinpath("ns/mnt").stat().st_ino
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if process.joinpath("ns/mnt").stat().st_ino == mine:
                    os.kill(int(process.name), signal.SIGKILL)
        self._holder.wait(PATIENCE_S)
        assert self._holder.stdout is not None
        self._holder.stdout.close()


def root_filesystem(directory: Path, busybox: Path) -> Path:
    """What a container's image holds: busybox, a loader, and places for what the machine lends."""
    for name in ("bin", "usr/bin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "etc", "tmp"):
        (directory / name).mkdir(parents=True)
    for name in ("lib", "lib64"):
        (directory / name).symlink_to(f"usr/{name}")
    shutil.copy(busybox, directory / "bin/busybox")
    for name in PROGRAMS:
        (directory / "bin" / name).symlink_to("busybox")
    for loader in Path("/lib64").glob("ld-linux-*"):
        shutil.copy(loader, directory / "usr/lib64")
    return directory


def lent() -> list[str]:
    """What of the machine's files a container needs to run C and Python programs, besides those programs."""
    return [*map(str, LIBRARIES), sysconfig.get_path("stdlib"), str(PYTHON)]


class Containers(ABC):
    """A container runtime: each container sleeps, and commands are run in it."""

    @abstractmethod
    def start(self, *devices: str, mounts: Sequence[str | Path] = ()) -> str:
        """Start a container with CDI devices and, read-only, directories of the machine; raises Refused."""

    @abstractmethod
    def run(self, container: str, *command: str | Path) -> tuple[int, str]:
        """Run a command in a container: its exit code, and all that it wrote."""

    @abstractmethod
    def remove(self, container: str) -> None:
        """End a container and take it away."""

    @abstractmethod
    def close(self) -> None:
        """End the runtime itself."""


class Podman(Containers):
    """podman with runc."""

    def __init__(self, machine: Machine, package: Fetched, root: Path) -> None:
        self._machine = machine
        self._root = root
        place = machine.scratch / "podman"
        place.mkdir()
        (place / "containers.conf").write_text(
            f"[engine]\n"
            f'conmon_path=["{package.root}/usr/bin/conmon"]\n'
            f'runtime="runc"\ncgroup_manager="cgroupfs"\nevents_logger="none"\n'
            f'[engine.runtimes]\nrunc=["{package.root}/usr/sbin/runc"]\n'
            f"[containers]\n"
            f'netns="host"\nlog_driver="k8s-file"\ndefault_ulimits=["nofile=1024:1024","nproc=1000:1000"]\n'
        )
        self._env = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(place),
            "CONTAINERS_CONF": str(place / "containers.conf"),
        }
        where = ("--root", f"{place}/root", "--runroot", f"{place}/run", "--tmpdir", f"{place}/tmp")
        self._words = (package.path, *where, "--storage-driver", "vfs")

    def start(self, *devices: str, mounts: Sequence[str | Path] = ()) -> str:
        options = [f"--device={device}" for device in devices]
        options += [f"--volume={path}:{path}:ro" for path in mounts]
        done = self._podman("run", "--detach", *options, "--rootfs", f"{self._root}:O", "sleep", "600")
        if done.returncode != 0:
            raise Refused(done.stderr)
        return done.stdout.strip()

    def run(self, container: str, *command: str | Path) -> tuple[int, str]:
        done = self._podman("exec", container, *command)
        return done.returncode, done.stdout + done.stderr

    def remove(self, container: str) -> None:
        self._podman("rm", "--force", "--time", "0", container)

    def close(self) -> None:
        """There is no daemon."""

    def _podman(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return self._machine.run(*self._words, *words, env=self._env)


class Containerd(Containers):
    """containerd through the interface that a kubelet speaks: each container in a pod of its own."""

    def __init__(self, machine: Machine, package: Fetched, runc: Fetched, root: Path) -> None:
        place = machine.scratch / "containerd"
        place.mkdir()
        self._pods: dict[str, tuple[str, Message]] = {}
        self._names = 0
        (place / "config.toml").write_text(
            f'version = 2\nroot = "{place}/root"\nstate = "{place}/state"\n'
            f'[grpc]\naddress = "{place}/socket"\n'
            f'[plugins."io.containerd.internal.v1.opt"]\npath = "{place}/opt"\n'
            f'[plugins."io.containerd.nri.v1.nri"]\ndisable = true\n'
            f'[plugins."io.containerd.grpc.v1.cri"]\nsandbox_image = "{IMAGE}"\n'
            f"restrict_oom_score_adj = true\ndisable_apparmor = true\nenable_cdi = true\n"
            f'cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]\n'
            f'[plugins."io.containerd.grpc.v1.cri".containerd]\nsnapshotter = "native"\n'
        )
        write_image(place / "image.tar", root)
        programs = package.path.parent
        env = {"PATH": f"{programs}:{runc.root}/usr/sbin:/usr/bin:/bin"}
        with (place / "log").open("wb") as log:
            words = machine.words(package.path, "--config", place / "config.toml")
            self._daemon = subprocess.Popen(words, env=env, stdout=log, stderr=log)
        until((place / "socket").exists)
        ctr = (programs / "ctr", "--address", place / "socket", "--namespace", "k8s.io")
        loaded = machine.run(*ctr, "image", "import", "--snapshotter", "native", place / "image.tar", env=env)
        assert loaded.returncode == 0, loaded.stderr
        self._runtime = Runtime(place / "socket")

    def start(self, *devices: str, mounts: Sequence[str | Path] = ()) -> str:
        self._names += 1
        pod = self._runtime.pod(f"pod-{self._names}")
        try:
            container = self._runtime.container(pod, IMAGE, list(devices), [str(path) for path in mounts])
        except Refused:
            self._runtime.remove(pod[0])
            raise
        self._pods[container] = pod
        return container

    def run(self, container: str, *command: str | Path) -> tuple[int, str]:
        return self._runtime.run(container, *map(str, command))

    def remove(self, container: str) -> None:
        self._runtime.remove(self._pods.pop(container)[0])

    def close(self) -> None:
        self._daemon.terminate()
        self._daemon.wait(PATIENCE_S)


def write_image(path: Path, root: Path) -> None:
    """An image of one layer in the layout that runtimes import."""
    blobs: dict[str, bytes] = {}

    def blob(kind: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(root, ".")
    layer = blob("layer.v1.tar", packed.getvalue())
    described = {
        "architecture": "amd64" if os.uname().machine == "x86_64" else "arm64",
        "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "600"], "Env": ["PATH=/usr/bin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    config = blob("config.v1+json", json.dumps(described).encode())
    manifest = blob("manifest.v1+json", json.dumps({"schemaVersion": 2, "config": config, "layers": [layer]}).encode())
    manifest["annotations"] = {"io.containerd.image.name": IMAGE}
    blobs["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    with tarfile.open(path, "w") as archive:
        for name, content in blobs.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
