"""Device files: each GPU's, the driver's own, those of partitions and IMEX; and the texts of /proc about them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from simnode.doctor.findings import Finding
from simnode.doctor.view import View

_FIXED = {"nvidiactl": 255, "nvidia-modeset": 254, "nvidia-uvm": 0, "nvidia-uvm-tools": 1}
_OPEN = 0o666
_STAND_IN = (1, 3)  # /dev/null, which an ordinary user's stand-ins are
_CHANNELS, _CAPS = "nvidia-caps-imex-channels", "nvidia-caps"
_MANAGEMENT = "fabric-imex-mgmt"
_DEVICE_MINOR = re.compile(r"^DeviceFileMinor: ([0-9]{1,9})$", re.MULTILINE)
_CHANNEL_COUNT = re.compile(r"^ImexChannelCount: ([0-9]{1,9})$", re.MULTILINE)
_MOST_CHANNELS = 2048


def nodes(view: View) -> Iterator[Finding]:
    """Those of the driver and of every GPU that the kernel lists."""
    if not view.has_devices:
        return
    for name, minor in _FIXED.items():
        yield from _device(view, name, _major_of(view, name), minor, "the driver cannot be opened", mode=_OPEN)
    for address, minor in view.gpus.items():
        if minor >= 0:
            why = f"the GPU at {address} can be given to no container, and NVML hides it"
            yield from _device(view, f"nvidia{minor}", _major_of(view, f"nvidia{minor}"), minor, why, mode=_OPEN)


def majors(view: View) -> Iterator[Finding]:
    """/proc/devices names the drivers of the device files that there are."""
    at = f"{view.proc}/devices"
    place = view.reach(at)
    if place.status is None:
        yield Finding(
            place.path, place.fault, "no device's major can be looked up", "the machine's text with the driver's"
        )
        return
    wanted = [("nvidia-frontend" if "nvidia-frontend" in view.majors else "nvidia"), "nvidia-uvm"]
    for name in wanted:
        if name not in view.majors:
            yield Finding(at, f"has no {name}", "who looks up its major makes no device files", f"a line for {name}")


def listed(view: View) -> Iterator[Finding]:
    """/proc/driver/nvidia tells the parameters, and the minor of each GPU, once each."""
    above = f"{view.driver_proc}/nvidia"
    place = view.reach(f"{above}/params")
    if place.status is None:
        yield Finding(place.path, place.fault, "nvidia-modprobe makes no device files", "the modules' parameters")
    minors: dict[int, str] = {}
    for address, minor in view.gpus.items():
        at = f"{above}/gpus/{address}/information"
        if minor < 0:
            yield Finding(at, "tells no Device Minor", "the GPU's device file cannot be told", "a line `Device Minor:`")
        elif minor in minors:
            why = "two GPUs share a device file"
            yield Finding(at, f"has the minor {minor} of {minors[minor]}", why, "a minor of its own")
        minors.setdefault(minor, address)


def partitions(view: View) -> Iterator[Finding]:
    """The capabilities are those of NVML's MIG devices; nothing is wrong where there are neither."""
    told = {(gpu.minor, *mig) for gpu in view.nvml.gpus for mig in gpu.migs}
    above = f"{view.driver_proc}/nvidia/capabilities"
    there = dict(_capabilities(view, above))
    if not told and not there:
        return
    instances = {f"gpu{gpu}/mig/gi{instance}/access" for gpu, instance, _ in told}
    computes = {f"gpu{gpu}/mig/gi{instance}/ci{compute}/access" for gpu, instance, compute in told}
    for name in sorted({"mig/config", "mig/monitor", *instances, *computes} - there.keys()):
        at = view.reach(f"{above}/{name}")
        yield Finding(
            at.path, at.fault or "is missing", "the partition can be given to no container", "its minor, told"
        )
    known = not view.nvml.fault and not any(gpu.fault for gpu in view.nvml.gpus)
    stale = set(_stale(view, there, computes)) if known else set()
    for name in sorted(stale):
        why = "a container may be given a partition that is gone"
        yield Finding(f"{above}/{name}", "is of no MIG device that NVML lists", why, "it to go with its partition")
    yield from _minors(view, {name: minor for name, minor in there.items() if name not in stale})


def imex(view: View) -> Iterator[Finding]:
    """Channels, capability and majors, all or none."""
    signs = (_CHANNELS in view.majors, view.exists(f"{view.dev}/{_CHANNELS}"), view.exists(_management(view)))
    if not any(signs):
        return
    why = "the compute-domain plugin does not start"
    if view.majors and _CHANNELS not in view.majors:
        yield Finding(f"{view.proc}/devices", f"has no {_CHANNELS}", why, f"a line for {_CHANNELS}, with its major")
    place = view.reach(_management(view))
    if place.status is None or _minor_told(view, _management(view)) < 0:
        found = place.fault or "tells no DeviceFileMinor"
        yield Finding(place.path, found, why, "the minor of the capability to manage IMEX")
    minor = _minor_told(view, _management(view))
    at = f"{view.driver_proc}/nvidia-caps/sys-minors"
    if minor >= 0 and f"{_MANAGEMENT} {minor}" not in (view.text(at) or "").splitlines():
        found = view.reach(at).fault or f"has no {_MANAGEMENT} {minor}"
        yield Finding(view.reach(at).path, found, "no IMEX daemon can be given its capability", "its minor, told")
    if not view.has_devices:
        return
    yield from _channels(view)
    if minor >= 0:
        name = f"{_CAPS}/nvidia-cap{minor}"
        yield from _device(view, name, view.majors.get(_CAPS), minor, "no IMEX daemon can be given it")


def _channels(view: View) -> Iterator[Finding]:
    """As many as the driver's parameters say."""
    at = f"{view.driver_proc}/nvidia/params"
    text = view.text(at)
    count = _CHANNEL_COUNT.search(text or "")
    told = int(count[1]) if count else 0
    if text is not None and not 0 < told <= _MOST_CHANNELS:
        found = f"says ImexChannelCount: {told}" if count else "has no ImexChannelCount"
        yield Finding(at, found, "nobody knows which channels there are", f"1 to {_MOST_CHANNELS}")
        return
    major = view.majors.get(_CHANNELS)
    for number in range(told):
        name = f"{_CHANNELS}/channel{number}"
        yield from _device(view, name, major, number, "a claim of this channel starts no container", mode=_OPEN)


def closed(view: View) -> Iterator[Finding]:
    """What the kernel tells of the driver everybody can read."""
    above = f"{view.driver_proc}/nvidia"
    capabilities = [f"{above}/capabilities/{name}" for name, _ in _capabilities(view, f"{above}/capabilities")]
    gpus = [f"{above}/gpus/{address}/information" for address in view.gpus]
    texts = [f"{view.proc}/devices", f"{view.proc}/modules", f"{above}/version", f"{above}/params", _management(view)]
    minors = [f"{view.driver_proc}/nvidia-caps/{name}" for name in ("mig-minors", "sys-minors")]
    for at in (*texts, *gpus, *capabilities, *minors):
        if found := view.closed(at):
            yield Finding(view.reach(at).path, found, "users' programs cannot read it", "mode 0444")


def _stale(view: View, there: dict[str, int], computes: set[str]) -> Iterator[str]:
    """Capabilities of compute instances that NVML does not list; it hides those whose device file is missing."""
    for name, minor in there.items():
        hidden = view.kind == "local" and not view.exists(f"{view.dev}/{_CAPS}/nvidia-cap{minor}")
        if "/ci" in name and name not in computes and not hidden:
            yield name


def _management(view: View) -> str:
    return f"{view.driver_proc}/nvidia/capabilities/{_MANAGEMENT}"


def _capabilities(view: View, above: str) -> Iterator[tuple[str, int]]:
    """The capabilities of partitions, by their paths below `above`, with the minors that they tell; -1 if none."""
    places = [f"mig/{name}" for name in view.names(f"{above}/mig")]
    for gpu in view.names(above):
        for instance in view.names(f"{above}/{gpu}/mig") if gpu.startswith("gpu") else ():
            places.append(f"{gpu}/mig/{instance}/access")
            computes = [name for name in view.names(f"{above}/{gpu}/mig/{instance}") if name.startswith("ci")]
            places += [f"{gpu}/mig/{instance}/{compute}/access" for compute in computes]
    for place in places:
        if view.exists(f"{above}/{place}"):
            yield place, _minor_told(view, f"{above}/{place}")


def _minor_told(view: View, at: str) -> int:
    """The minor that a capability tells, -1 if it tells none."""
    minor = _DEVICE_MINOR.search(view.text(at) or "")
    return int(minor[1]) if minor else -1


def _minors(view: View, there: dict[str, int]) -> Iterator[Finding]:
    """The list of minors and the device files, as the capabilities tell them."""
    at = f"{view.driver_proc}/nvidia-caps/mig-minors"
    place = view.reach(at)
    lines = dict(line.rsplit(" ", 1) for line in (view.text(at) or "").splitlines() if " " in line)
    if place.status is None:
        yield Finding(
            place.path, place.fault, "the device plugin advertises nothing at all", "a line for each capability"
        )
    for name, minor in there.items():
        if minor < 0:
            found, why = "tells no DeviceFileMinor", "the partition can be given to no container"
            at_fault = f"{view.driver_proc}/nvidia/capabilities/{name}"
            yield Finding(at_fault, found, why, "its minor, told")
            continue
        told = lines.get(_listed_as(name))
        if place.status is not None and told != str(minor):
            found = f"has {told or 'no minor'} for {_listed_as(name)}, and capabilities/{name} {minor}"
            yield Finding(at, found, "the partition is given the wrong device", "one minor")
        if view.has_devices:
            why = "the partition can be given to no container"
            yield from _device(view, f"{_CAPS}/nvidia-cap{minor}", view.majors.get(_CAPS), minor, why)


def _listed_as(name: str) -> str:
    """gpu0/mig/gi1/access is gpu0/gi1/access in the list, mig/config is config."""
    return name.removeprefix("mig/") if name.startswith("mig/") else name.replace("/mig/", "/", 1)


def _major_of(view: View, name: str) -> int | None:
    """What /proc/devices has for a device file; None if it has nothing, which is told elsewhere."""
    if name.startswith("nvidia-uvm"):
        return view.majors.get("nvidia-uvm")
    known = (view.majors.get(each) for each in (name, "nvidia", "nvidia-frontend"))
    return next((major for major in known if major is not None), None)


def _device(view: View, name: str, major: int | None, minor: int, why: str, *, mode: int = 0) -> Iterator[Finding]:
    """A character device of these numbers, or a stand-in where the node is an ordinary user's."""
    place = view.reach(f"{view.dev}/{name}")
    if place.status is None:
        yield Finding(place.path, place.fault, why, _numbers(major, minor))
        return
    status = place.status
    number = os.major(status.st_rdev), os.minor(status.st_rdev)
    if not stat.S_ISCHR(status.st_mode):
        yield Finding(place.path, "is no character device", why, _numbers(major, minor))
    elif number != (major if major is not None else number[0], minor) and not _is_stand_in(view, number):
        yield Finding(place.path, f"is {number[0]}:{number[1]}", why, f"{_numbers(major, minor)}, as /proc tells")
    elif status.st_mode & mode != mode:
        found = f"has mode {stat.S_IMODE(status.st_mode):04o}"
        yield Finding(place.path, found, "only its owner can open it", f"mode {mode:04o}")


def _is_stand_in(view: View, number: tuple[int, int]) -> bool:
    return view.kind == "local" and number == _STAND_IN


def _numbers(major: int | None, minor: int) -> str:
    return f"a character device with minor {minor}" if major is None else f"a character device {major}:{minor}"
