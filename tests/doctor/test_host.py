"""A host's node: nothing is found while it is whole, and each damage is found once, at its place."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from simnode.doctor import CONSUMERS
from tests.doctor.conftest import Host

NODE = "/var/lib/simnode"
DRIVER = f"{NODE}/driver"
RELEASE = "580.105.08"
LIBRARY = f"{DRIVER}/usr/lib64/libnvidia-ml.so"
IMAGE = f"{DRIVER}/config/image.1"
PUBLISHED = "/run/nvidia/driver"
VERSION = f"{DRIVER}/proc/driver/nvidia/version"
CAPABILITIES = f"{DRIVER}/proc/driver/nvidia/capabilities"
MIG_MINORS = f"{DRIVER}/proc/driver/nvidia-caps/mig-minors"
GPU = f"{NODE}/sys/bus/pci/devices/0000:53:00.0"
FEATURES = "/etc/kubernetes/node-feature-discovery/features.d"
MISSING = "is missing"
OTHER_FORMAT = struct.pack("=QI", 0x454D49444F4E4D53, 7)
SPEC = {
    "cdiVersion": "0.3.0",
    "kind": "nvidia.com/gpu",
    "devices": [{"name": "extra", "containerEdits": {"mounts": [{"hostPath": "/no/such", "containerPath": "/x"}]}}],
}
NEWER = {**SPEC, "cdiVersion": "0.6.0", "devices": []}
AGAIN = {**SPEC, "devices": [{"name": "0", "containerEdits": {}}]}
OTHER_VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1  Thu Feb 20 23:41:34 UTC 2025\n"
STALE = "DeviceFileMinor: 300\nDeviceFileMode: 292\nDeviceFileModify: 1\n"

Damage = Callable[[Path], None]


def gone(path: Path) -> None:
    """Nothing is there any more."""


def holding(content: bytes | str) -> Damage:
    """A file with something else in it."""

    def write(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def device(major: int, minor: int, mode: int = 0o666) -> Damage:
    """Another character device."""

    def make(path: Path) -> None:
        os.mknod(path, 0o020000 | mode, os.makedev(major, minor))
        path.chmod(mode)

    return make


def of_text(mode: int) -> Damage:
    """No program, of the mode of one."""

    def write(path: Path) -> None:
        path.write_text("text")
        path.chmod(mode)

    return write


def of_mode(mode: int) -> Damage:
    """The same, with another mode."""

    def copy(path: Path) -> None:
        shutil.copyfile(kept_of(path), path)
        path.chmod(mode)

    return copy


def leading(target: str) -> Damage:
    """A link to something else."""
    return lambda path: path.symlink_to(target)


def foreign_driver(path: Path) -> None:
    """Somebody else's driver."""
    (path / "usr/bin").mkdir(parents=True)


def program(text: str) -> Damage:
    """A shell's program."""

    def write(path: Path) -> None:
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    return write


def crashing_library(path: Path) -> None:
    """One that ends whoever loads it."""
    source = "__attribute__((constructor)) static void crash(void) { __builtin_trap(); }"
    command = ["cc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-o", str(path), "-"]
    subprocess.run(command, input=source, text=True, check=True)


def kept_of(path: Path) -> Path:
    """Where what was at `path` is meanwhile: no link on the way to it is one that a damage takes away."""
    return path.parents[1] / f"kept-{path.name}~"


@contextmanager
def damaged(path: Path, damage: Damage) -> Iterator[None]:
    """`path` is moved away, and `damage` done in its place, until this ends."""
    kept = path.with_name(f"{path.name}.kept~")
    above = next(parent for parent in path.parents if parent.exists())
    new = path.relative_to(above).parts[0]
    hidden = path.is_symlink() or path.exists()
    if hidden:
        kept = Path(shutil.move(path, kept_of(path)))
    try:
        damage(path)
        yield
    finally:
        made = above / new
        if made.is_dir() and not made.is_symlink():
            shutil.rmtree(made)
        else:
            made.unlink(missing_ok=True)
        if hidden:
            shutil.move(kept, path)


class Case(NamedTuple):
    """Damage done at `path`; `found` begins what is found at a place that ends with `at`, which is `path` if empty."""

    path: str
    damage: Damage
    found: str
    at: str = ""


DAMAGES = {
    "library link": Case(f"{LIBRARY}.1", gone, MISSING),
    "link to the link": Case(LIBRARY, gone, MISSING),
    "library": Case(f"{LIBRARY}.{RELEASE}", gone, MISSING),
    "circle of links": Case(LIBRARY, leading("libnvidia-ml.so"), "is one of a circle of links"),
    "no library": Case(f"{LIBRARY}.{RELEASE}", holding("text"), "cannot be loaded", f"{LIBRARY}.1"),
    "library that crashes": Case(f"{LIBRARY}.{RELEASE}", crashing_library, "kills its program", f"{LIBRARY}.1"),
    "two releases": Case(f"{LIBRARY}.550.54", holding(""), f"lies beside that of {RELEASE}"),
    "library that only its owner can read": Case(f"{LIBRARY}.{RELEASE}", of_mode(0o700), "has mode 0700"),
    "no libcuda": Case(f"{DRIVER}/usr/lib64/libcuda.so.{RELEASE}", holding("text"), "is no library"),
    "image": Case(IMAGE, gone, MISSING),
    "image that only its owner can read": Case(IMAGE, of_mode(0o600), "has mode 0600"),
    "image of zeros": Case(IMAGE, holding(bytes(1 << 16)), "is no image"),
    "image of another format": Case(IMAGE, holding(OTHER_FORMAT), "is of format 7"),
    "version": Case(VERSION, gone, MISSING),
    "other version": Case(VERSION, holding(OTHER_VERSION), "says 535.1"),
    "nvidia-smi": Case(f"{DRIVER}/usr/bin/nvidia-smi", gone, MISSING),
    "failing nvidia-smi": Case(f"{DRIVER}/usr/bin/nvidia-smi", program("exit 9"), "fails with exit code 9"),
    "nvidia-smi of another mode": Case(f"{DRIVER}/usr/bin/nvidia-smi", holding(""), "cannot be executed by everybody"),
    "no program": Case(f"{DRIVER}/usr/bin/nvidia-smi", of_text(0o755), "is no program"),
    "version that only its owner can read": Case(VERSION, of_mode(0o600), "has mode 0600"),
    "memory's module": Case(f"{NODE}/sys/module/nvidia_uvm/initstate", gone, MISSING),
    "use of the module": Case(f"{NODE}/sys/module/nvidia/refcnt", holding("many\n"), "is no number"),
    "module": Case(f"{NODE}/sys/module/nvidia/initstate", holding("going\n"), "does not say live"),
    "modules": Case(f"{NODE}/proc/modules", holding("loop 1 0 - Live 0x0\n"), "has no line `nvidia `"),
    "devices": Case(f"{NODE}/proc/devices", gone, MISSING),
    "class": Case(f"{GPU}/class", holding("0x020000\n"), "says 0x020000", "0000:53:00.0/class"),
    "vendor that only its owner can read": Case(f"{GPU}/vendor", of_mode(0o600), "has mode 0600", "00.0/vendor"),
    "device": Case(f"{GPU}/device", gone, MISSING, "0000:53:00.0/device"),
    "NUMA node": Case(f"{GPU}/numa_node", holding("none\n"), "says none", "0000:53:00.0/numa_node"),
    "regions": Case(f"{GPU}/resource", holding("0x0\n"), "says 0x0", "0000:53:00.0/resource"),
    "config": Case(f"{GPU}/config", holding(bytes(32)), "has 32 bytes", "0000:53:00.0/config"),
    "PCI function": Case(GPU, gone, MISSING),
    "capability": Case(f"{CAPABILITIES}/mig/monitor", gone, MISSING),
    "stale capability": Case(f"{CAPABILITIES}/gpu1/mig/gi9/ci0/access", holding(STALE), "is of no MIG device"),
    "list of minors": Case(MIG_MINORS, gone, MISSING),
    "IMEX capability": Case(f"{CAPABILITIES}/fabric-imex-mgmt", gone, MISSING),
    "empty IMEX capability": Case(f"{CAPABILITIES}/fabric-imex-mgmt", holding(""), "tells no DeviceFileMinor"),
    "empty capability": Case(f"{CAPABILITIES}/mig/monitor", holding(""), "tells no DeviceFileMinor"),
    "list of system minors": Case(f"{DRIVER}/proc/driver/nvidia-caps/sys-minors", gone, MISSING),
    "feature file": Case(f"{FEATURES}/simnode.features", gone, MISSING),
    "foreign driver": Case(PUBLISHED, foreign_driver, "is another driver's"),
    "link for a directory": Case(PUBLISHED, leading(DRIVER), f"leads to {DRIVER}"),
    "nothing published": Case(PUBLISHED, gone, MISSING),
    "published nvidia-smi": Case(f"{PUBLISHED}/usr/bin/nvidia-smi", gone, MISSING),
    "published file": Case(f"{PUBLISHED}/proc/driver/nvidia/params", gone, MISSING),
    "published library": Case(f"{PUBLISHED}/usr/lib64/libcuda.so", gone, MISSING),
    "no published program": Case(f"{PUBLISHED}/usr/bin/nvidia-smi", of_text(0o755), "is no program"),
    "no published library": Case(f"{PUBLISHED}/usr/lib64/libcuda.so.{RELEASE}", holding("text"), "is no library"),
    "no directory published": Case(PUBLISHED, os.mkfifo, "is no directory"),
    "real driver": Case("/proc/driver/nvidia/version", holding(OTHER_VERSION), "is a real NVIDIA driver's"),
    "topology": Case(f"{NODE}/topology/topology.yaml", holding("version: 2\n"), "is of version 2"),
}

ROOTS = {
    "GPU's node": Case(f"{DRIVER}/dev/nvidia1", gone, MISSING),
    "major": Case(f"{DRIVER}/dev/nvidia1", device(234, 1), "is 234:1"),
    "mode": Case(f"{DRIVER}/dev/nvidia1", device(195, 1, 0o600), "has mode 0600"),
    "no device": Case(f"{DRIVER}/dev/nvidia-uvm", holding(""), "is no character device"),
    "channel": Case(f"{DRIVER}/dev/nvidia-caps-imex-channels/channel9", gone, MISSING),
    "partition's node": Case(f"{DRIVER}/dev/nvidia-caps/nvidia-cap2", gone, MISSING),
    "spec": Case("/run/cdi/nvidia.yaml", gone, "no spec of kind nvidia.com/gpu", "/etc/cdi and /var/run/cdi"),
    "cut spec": Case("/run/cdi/other.yaml", holding("{"), "is no CDI spec"),
    "spec that names nothing": Case("/run/cdi/other.json", holding(json.dumps(SPEC)), MISSING, "/no"),
    "hook": Case(f"{NODE}/cri/container-hook", gone, MISSING),
    "hook that nobody may run": Case(f"{NODE}/cri/container-hook", of_mode(0o600), "cannot be executed by everybody"),
    "hook that is no program": Case(f"{NODE}/cri/container-hook", of_text(0o755), "is no program"),
    "spec that only its owner can read": Case("/run/cdi/nvidia.yaml", of_mode(0o600), "has mode 0600"),
    "too many channels": Case(
        f"{DRIVER}/proc/driver/nvidia/params", holding("ImexChannelCount: 99999\n"), "says ImexChannelCount: 99999"
    ),
    "spec of another version": Case("/run/cdi/other.json", holding(json.dumps(NEWER)), "declares cdiVersion 0.6.0"),
    "device of two specs": Case("/run/cdi/other.json", holding(json.dumps(AGAIN)), "offers nvidia.com/gpu=0, as"),
}


def test_a_whole_node_has_nothing_wrong(host: Host) -> None:
    """For no consumer, with every part of a node switched on."""
    assert host.doctor() == (
        0,
        {"node": f"host {host.root.root}", "ok": True, "consumers": list(CONSUMERS), "findings": []},
    )


@pytest.mark.parametrize("case", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_found_once(host: Host, case: Case) -> None:
    """Whatever else follows from it."""
    with damaged(host.path(case.path), case.damage):
        findings = host.judged()
    assert len(findings) == 1, findings
    assert findings[0][0].endswith(case.at or case.path)
    assert findings[0][1].startswith(case.found)


@pytest.mark.parametrize("case", ROOTS.values(), ids=ROOTS)
def test_damage_that_only_roots_node_can_have(host: Host, case: Case) -> None:
    """Device nodes and what names them."""
    if host.root.uid != 0:
        pytest.skip("an ordinary user's host node has no device nodes, and thus no specs")
    test_damage_is_found_once(host, case)


def test_only_what_the_named_consumers_meet_is_told(host: Host) -> None:
    """A damage concerns who meets it."""
    with damaged(host.path(f"{FEATURES}/simnode.features"), gone):
        assert host.findings("gfd", "operator-validator") == []
        (finding,) = host.doctor("nfd", "gfd")[1]["findings"]
    assert finding["consumers"] == ["nfd"]
    assert finding["why"].startswith("no label says")
    assert finding["want"] == "a line pci-10de.present=true"


def test_one_cause_is_told_for_all_who_meet_it(host: Host) -> None:
    """Whoever loads the library, and runtimes that are told to mount it."""
    with damaged(host.path(f"{LIBRARY}.1"), gone):
        (finding,) = host.doctor()[1]["findings"]
    runtimes = ["containerd", "podman"] if host.root.uid == 0 else []
    assert finding["consumers"] == ["nvml", "device-plugin", "gfd", "dra", *runtimes]


def test_a_marker_without_a_driver_is_stale(host: Host) -> None:
    """Operands would start before there is a driver."""
    marker = "/run/nvidia/validations/driver-ready"
    with damaged(host.path(marker), holding("")):
        assert host.findings() == []
        with damaged(host.path(PUBLISHED), gone):
            assert (marker, "says ready, and there is no driver") in host.findings("operator-validator")


def test_faults_are_findings_until_they_are_cleared(host: Host) -> None:
    """A GPU that is lost, and modules of another release."""
    control = ("--socket", host.path(f"{NODE}/control/agent.sock"))
    for words, at, found in (
        (("--gpu", "1", "fallen_off_bus"), f"{LIBRARY}.1", "GPU 1: GPU is lost"),
        (
            ("version-skew", "--kernel-version", "535.261.03"),
            VERSION,
            "says 535.261.03, and the libraries are of 580.105.08",
        ),
    ):
        assert host.root.run("fault", "inject", *words, *control)[0] == 0
        assert (at, found) in host.findings("nvml")
        assert host.root.run("fault", "clear", *control)[0] == 0
        assert host.findings() == []


def test_a_dead_agent_is_found_and_what_it_left_still_judged(host: Host) -> None:
    """The last test of this node: its agent is killed."""
    for process in host.root.started:
        if process.poll() is None:
            process.kill()
            process.wait()
    marker = f"{NODE}/fabric-state/fabricmanager.ready"
    dead = (f"{NODE}/control/agent.sock", "no agent answers: Connection refused")
    assert host.findings() == [dead]
    with damaged(host.path(marker), gone):
        assert host.findings() == [dead, (marker, MISSING)]
