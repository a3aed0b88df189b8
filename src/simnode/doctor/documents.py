"""The documents that others write and consumers read: what is in them, or that there is nothing of the kind.

Anything may be in such a file, so every way in which it can fail to be read ends in one answer.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_DEEPEST = 100
_VERSION = re.compile(r"v?[0-9]{1,9}(\.[0-9]{1,9}){2}")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_.-]*")


class Node(msgspec.Struct, rename="camel"):
    """A device node; without a path of the host it has the container's."""

    path: str
    host_path: str = ""


class Mount(msgspec.Struct, rename="camel"):
    """A mount."""

    host_path: str
    container_path: str


class Hook(msgspec.Struct, rename="camel"):
    """A hook."""

    hook_name: str
    path: str


class Edits(msgspec.Struct, rename="camel"):
    """What is done to a container, as far as it names anything of the host's; Go takes null for an empty list."""

    device_nodes: list[Node] | None = None
    mounts: list[Mount] | None = None
    hooks: list[Hook] | None = None

    def named(self) -> set[str]:
        """The host's paths."""
        nodes = {node.host_path or node.path for node in self.device_nodes or ()}
        return nodes | {mount.host_path for mount in self.mounts or ()} | self.programs()

    def programs(self) -> set[str]:
        """Those of them that are run."""
        return {hook.path for hook in self.hooks or ()}


class Device(msgspec.Struct, rename="camel"):
    """A device of a spec."""

    name: str
    container_edits: Edits = msgspec.field(default_factory=Edits)


class Spec(msgspec.Struct, rename="camel"):
    """A CDI spec as far as it concerns us."""

    cdi_version: str
    kind: str
    devices: list[Device]
    container_edits: Edits = msgspec.field(default_factory=Edits)

    def named(self) -> set[str]:
        """Every path of the host's in it."""
        return self.container_edits.named().union(*(device.container_edits.named() for device in self.devices))

    def hooks(self) -> set[str]:
        """Those of them that are run."""
        return self.container_edits.programs().union(*(device.container_edits.programs() for device in self.devices))


def cdi_spec(text: str | None) -> Spec | None:
    """The spec that a file holds, None if it is none to any runtime."""
    try:
        spec = msgspec.convert(_json_or_yaml(text or ""), Spec)
    except (msgspec.ValidationError, ValueError, RecursionError):
        return None
    return spec if _VERSION.fullmatch(spec.cdi_version) and _KIND.fullmatch(spec.kind) else None


def yaml_document(text: str | None) -> Any:
    """What a file of YAML holds; raises ValueError if that is none."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for event in yaml.parse(text or "", loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ValueError("nested too deep")
        return yaml.load(text or "", loader)
    except (yaml.YAMLError, RecursionError):  # a date that no calendar has is a ValueError of its own
        raise ValueError("no YAML") from None


def _json_or_yaml(text: str) -> Any:
    """YAML is read only where there is no JSON: most specs are, and it is by far the faster."""
    try:
        return json.loads(text)
    except ValueError:
        return yaml_document(text)
