"""A CDI spec as a value: what the Container Device Interface's specification lets us say, and nothing else of it.

A spec declares the lowest version of the specification that has every field which it uses, because runtimes leave out
without a word whatever declares a version that they do not know. Field names are those of the specification.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

ALL = "all"
_T = TypeVar("_T")


class _Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Something in a spec; what is empty is left out."""


class DeviceNode(_Part, frozen=True):
    """A device node at `path` in the container, with the numbers of the one that the host has at `host_path`."""

    path: str
    host_path: str


class Mount(_Part, frozen=True):
    """A file or directory of the host at a place in the container."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()


class Hook(_Part, frozen=True):
    """A program of the host that the runtime runs; `args` begin with its own name, `timeout` is in seconds."""

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    timeout: int = 0


class Edits(_Part, frozen=True):
    """What is done to a container; `env` holds NAME=VALUE."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()


class Device(_Part, frozen=True):
    """Something to ask for by name, and what a container gets for it."""

    name: str
    container_edits: Edits


class Spec(_Part, frozen=True):
    """One file: `kind` is vendor/class, `container_edits` what a container gets with any of the devices."""

    cdi_version: str
    kind: str
    devices: tuple[Device, ...]
    container_edits: Edits = Edits()


def spec(kind: str, devices: Iterable[Device], edits: Edits) -> Spec:
    """The spec with these devices, at the version that its fields need."""
    listed = tuple(devices)
    return Spec(_version(kind, listed, edits), kind, listed, edits)


def encode(content: Spec) -> bytes:
    """The file: JSON, which is YAML too, one field a line."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def decode(content: bytes) -> Spec | None:
    """The spec that `encode` made a file of; None if this is no such file."""
    try:
        return msgspec.json.decode(content, type=Spec)
    except (msgspec.MsgspecError, RecursionError):
        return None


def common(one: Spec, other: Spec) -> Spec | None:
    """What both say, None if that is no device at all.

    A device that differs is left out whole, since half a device is none; but `all` is any number of them.
    """
    if one.kind != other.kind:
        return None
    theirs = {device.name: device.container_edits for device in other.devices}
    devices = []
    for device in one.devices:
        edits = theirs.get(device.name, Edits())
        if device.name == ALL:
            edits = _shared(device.container_edits, edits)
        if edits == Edits() or (device.name != ALL and edits != device.container_edits):
            continue
        devices.append(Device(device.name, edits))
    return spec(one.kind, devices, _shared(one.container_edits, other.container_edits)) if devices else None


def named(content: Spec) -> set[str]:
    """Every path of the host that the spec names as such: device nodes, mounts, hooks."""
    paths = set()
    for edits in (content.container_edits, *(device.container_edits for device in content.devices)):
        paths |= {node.host_path for node in edits.device_nodes}
        paths |= {mount.host_path for mount in edits.mounts}
        paths |= {hook.path for hook in edits.hooks}
    return paths


def _shared(one: Edits, other: Edits) -> Edits:
    return Edits(
        env=_both(one.env, other.env),
        device_nodes=_both(one.device_nodes, other.device_nodes),
        mounts=_both(one.mounts, other.mounts),
        hooks=_both(one.hooks, other.hooks),
    )


def _both(one: tuple[_T, ...], other: tuple[_T, ...]) -> tuple[_T, ...]:
    return tuple(item for item in one if item in other)


def _version(kind: str, devices: tuple[Device, ...], edits: Edits) -> str:
    """0.6.0 allows a dot in a class, 0.5.0 a first digit in a device's name, and host paths of device nodes."""
    if "." in kind.partition("/")[2]:
        return "0.6.0"
    everywhere = (edits, *(device.container_edits for device in devices))
    if any(device.name[:1].isdigit() for device in devices) or any(each.device_nodes for each in everywhere):
        return "0.5.0"
    return "0.3.0"
