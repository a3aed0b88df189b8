"""What containers get of a host's node: the CDI specs that runtimes read, and the driver in /run/nvidia/driver."""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterator, Mapping

from simnode.doctor.documents import Spec, cdi_spec
from simnode.doctor.driver import ELF, executable, library_version
from simnode.doctor.findings import Finding
from simnode.doctor.view import View

DRIVER = "/run/nvidia/driver"
VALIDATIONS = "/run/nvidia/validations"
KIND = "nvidia.com/gpu"
_HOOK = "cri/container-hook"
_LIBRARIES = ("libnvidia-ml.so.1", "libnvidia-ml.so", "libcuda.so.1", "libcuda.so")
_COPIES = (
    *(f"usr/lib64/{name}" for name in _LIBRARIES),
    "usr/bin/nvidia-smi",
    "proc/driver/nvidia/version",
    "proc/driver/nvidia/params",
)
_NEWEST = (0, 5, 0)
_PT_INTERP = 3
_ELF64 = struct.Struct("<4s28xQ14xHH")  # magic, e_phoff, e_phentsize, e_phnum
_SEGMENT = struct.Struct("<I4xQ16xQ")  # p_type, p_offset, p_filesz


def published(view: View) -> Iterator[Finding]:
    """The validator's driver root: a directory of this node's driver that can be made the root directory."""
    if view.kind != "host":
        return
    place = view.reach(DRIVER)
    why = "the operator's validator waits for a driver"
    if place.status is None:
        yield Finding(place.path, place.fault, why, "the driver, which a running agent publishes")
        return
    if not stat.S_ISDIR(place.status.st_mode) or place.path != DRIVER:
        found = "is no directory" if place.path == DRIVER else f"leads to {place.path}"
        yield Finding(DRIVER, found, "containers mount a path that may be replaced", "a directory")
        return
    if not any(name.startswith("image.") for name in view.names(f"{DRIVER}/config")):
        found = "is another driver's" if view.names(DRIVER) else "is empty"
        yield Finding(DRIVER, found, why, "it moved away, for the agent to publish this node's")
        return
    yield from _root(view)


def markers(view: View) -> Iterator[Finding]:
    """No marker of the operator's says that a driver is ready where there is none."""
    ready = [name for name in view.names(VALIDATIONS) if name.endswith("-ready")]
    for name in ready if view.kind == "host" and not view.exists(f"{DRIVER}/usr/bin/nvidia-smi") else ():
        why = "operands start before there is a driver"
        yield Finding(f"{VALIDATIONS}/{name}", "says ready, and there is no driver", why, "it to go, as on a reboot")


def specs(view: View) -> Iterator[Finding]:
    """Specs offer every GPU, each by one file only, and name nothing that is missing."""
    if view.kind != "host" or not view.has_devices:
        return
    found = dict(_specs(view))
    for at, spec in found.items():
        if spec is None:
            yield Finding(
                at, "is no CDI spec", "runtimes refuse its devices", "JSON or YAML with cdiVersion, kind, devices"
            )
    known = {at: spec for at, spec in found.items() if spec is not None}
    named = {path for spec in known.values() for path in spec.named()}
    hooks = {path for spec in known.values() for path in spec.hooks()}
    for path in sorted(named):
        place = view.reach(path)
        if place.status is None:
            yield Finding(
                place.path, place.fault, "a container that asks for a GPU does not start", "what a CDI spec names"
            )
        elif path in hooks:
            yield from executable(view, path, "a container that asks for a GPU does not start")
    for at in known:
        if closed := view.closed(at):
            yield Finding(at, closed, "an ordinary user's podman does not read it", "mode 0644")
    yield from _offers(view, known)


def versions(view: View) -> Iterator[Finding]:
    """Specs that podman takes: podman 4.3 leaves out without a word whatever declares more than 0.5.0."""
    for at, spec in _specs(view):
        if spec is not None and spec.kind == KIND and _number(spec.cdi_version) > _NEWEST:
            found = f"declares cdiVersion {spec.cdi_version}"
            yield Finding(at, found, "podman 4.3 leaves it out without a word", "0.5.0 at most")


def _root(view: View) -> Iterator[Finding]:
    program = f"{DRIVER}/usr/bin/nvidia-smi"
    why = "`chroot /run/nvidia/driver nvidia-smi` fails"
    yield from executable(view, program, why)
    interpreter = _interpreter(view.content(program) or b"")
    if interpreter:
        place = view.reach(f"{DRIVER}{interpreter}")
        if place.status is None:
            yield Finding(
                place.path, place.fault, why, "the loader that nvidia-smi names, or an nvidia-smi without one"
            )
    there = library_version(view, f"{DRIVER}/usr/lib64", "libnvidia-ml.so")
    current = library_version(view, view.libraries, "libnvidia-ml.so")
    if there and current and there != current:
        yield Finding(DRIVER, f"holds driver {there}", "containers get another driver than the node", current)
        return
    for path in (*_COPIES, *(f"proc/driver/nvidia/gpus/{address}/information" for address in view.gpus)):
        yield from _copy(view, path)


def _copy(view: View, path: str) -> Iterator[Finding]:
    """The published file is there, where the driver root has it, and for everybody to read."""
    if not view.exists(f"{view.driver}/{path}"):
        return
    place = view.reach(f"{DRIVER}/{path}")
    why = "programs with this driver root meet another driver than the node's"
    if place.status is None:
        yield Finding(place.path, place.fault, why, "what the driver root has")
    elif closed := view.closed(place.path):
        yield Finding(place.path, closed, why, "what everybody can read")
    elif ".so" in path and view.content(place.path, len(ELF)) != ELF:
        yield Finding(place.path, "is no library", why, "what the driver root has")


def _interpreter(program: bytes) -> str:
    """The loader that a 64-bit program names, "" if it needs none or is no such program."""
    if len(program) < _ELF64.size or not program.startswith(b"\x7fELF\x02\x01"):
        return ""
    _, start, size, count = _ELF64.unpack_from(program)
    for number in range(count):
        at = start + number * size
        if at + _SEGMENT.size > len(program):
            return ""
        kind, offset, length = _SEGMENT.unpack_from(program, at)
        if kind == _PT_INTERP:
            return program[offset : offset + length].rstrip(b"\0").decode(errors="replace")
    return ""


def _offers(view: View, known: Mapping[str, Spec]) -> Iterator[Finding]:
    offered: dict[str, list[str]] = {}
    for at, spec in known.items():
        if spec.kind == KIND:
            for device in spec.devices:
                offered.setdefault(device.name, []).append(at)
    if not offered:
        if view.gpus and view.exists(f"{view.node_root}/{_HOOK}"):
            found = f"no spec of kind {KIND}"
            yield Finding(" and ".join(view.cdi), found, "no container can ask for a GPU", "nvidia.yaml in one of them")
        return
    for name, places in offered.items():
        if len(places) > 1:
            found = f"offers {KIND}={name}, as {places[0]} does"
            yield Finding(places[1], found, "runtimes resolve neither", "one spec for each device")
    wanted = [name for gpu in view.nvml.gpus for name in (str(gpu.index), gpu.uuid) if name]
    for name in (*wanted, *(["all"] if wanted else [])):
        if name not in offered:
            at = next(at for at, spec in known.items() if spec.kind == KIND)
            yield Finding(
                at, f"offers no {name}", f"{KIND}={name} cannot be resolved", "each GPU by index and UUID, and all"
            )


def _specs(view: View) -> Iterator[tuple[str, Spec | None]]:
    """The specs in the directories where runtimes look, None for what is none; each directory once."""
    directories = dict.fromkeys(view.reach(_runtime_directory(view, directory)).path for directory in view.cdi)
    for directory in directories:
        for name in view.names(directory):
            if name.endswith((".yaml", ".json")):
                at = f"{directory}/{name}"
                yield at, cdi_spec(view.text(at))


def _runtime_directory(view: View, directory: str) -> str:
    """Where the agent publishes for `directory`: /var/run is /run for a host that shows us no /var/run."""
    below = directory.removeprefix("/var/run/")
    return directory if below == directory or view.exists("/var/run") else f"/run/{below}"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("v").split("."))
