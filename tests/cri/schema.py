"""What the Container Device Interface's specification demands of a spec, written down anew and checked field by field.

Fields and their types are those of its schema, grammars those of its text, and the version of each field that of its
table of released versions. Whatever is not listed is refused, as the schema does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

VENDOR = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
CLASS = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
ENTRY = re.compile(r"[^=\0]+=[^\0]*")
HOOKS = {"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}
FIELDS: dict[str, dict[str, Any]] = {
    "spec": {"cdiVersion": str, "kind": str, "annotations": dict, "devices": list, "containerEdits": dict},
    "device": {"name": str, "annotations": dict, "containerEdits": dict},
    "edits": {
        "env": list, "deviceNodes": list, "mounts": list, "hooks": list, "additionalGids": list, "intelRdt": dict,
    },
    "node": {
        "path": str, "hostPath": str, "type": str, "major": int, "minor": int, "fileMode": int, "permissions": str,
        "uid": int, "gid": int,
    },
    "mount": {"hostPath": str, "containerPath": str, "type": str, "options": list},
    "hook": {"hookName": str, "path": str, "args": list, "env": list, "timeout": int},
}  # fmt: skip
REQUIRED = {
    "spec": {"cdiVersion", "kind", "devices"},
    "device": {"name", "containerEdits"},
    "edits": set[str](),
    "node": {"path"},
    "mount": {"hostPath", "containerPath"},
    "hook": {"hookName", "path"},
}
SINCE = {
    ("mount", "type"): (0, 4, 0),
    ("node", "hostPath"): (0, 5, 0),
    ("spec", "annotations"): (0, 6, 0),
    ("device", "annotations"): (0, 6, 0),
    ("edits", "additionalGids"): (0, 7, 0),
    ("edits", "intelRdt"): (0, 7, 0),
}


def faults(spec: Any) -> list[str]:
    """What is wrong with a spec as its file was read; empty if it is valid and declares the lowest version it can."""
    found = list(_spec(spec))
    return found or [
        f"cdiVersion {spec['cdiVersion']}, lowest possible {lowest}"
        for lowest in [".".join(map(str, needed(spec)))]
        if spec["cdiVersion"] != lowest
    ]


def needed(spec: Any) -> tuple[int, int, int]:
    """The lowest version of the specification that has every field of `spec`; nothing is older than 0.3.0."""
    versions = {(0, 3, 0)} | {
        SINCE[part, field] for part, value in parts(spec) for field in value if (part, field) in SINCE
    }
    if any(device["name"][0].isdigit() for device in spec["devices"]):
        versions.add((0, 5, 0))
    if "." in spec["kind"].split("/")[1]:
        versions.add((0, 6, 0))
    return max(versions)


def parts(spec: Any) -> Iterator[tuple[str, Any]]:
    """Every object of a spec, and what it is."""
    yield "spec", spec
    for device in spec["devices"]:
        yield "device", device
    for edits in (spec.get("containerEdits", {}), *(device["containerEdits"] for device in spec["devices"])):
        yield "edits", edits
        for part, field in (("node", "deviceNodes"), ("mount", "mounts"), ("hook", "hooks")):
            for value in edits.get(field, []):
                yield part, value


def host_paths(spec: Any) -> set[str]:
    """Every path that a runtime resolves on the host."""
    paths = set()
    for part, value in parts(spec):
        if part in ("node", "mount"):
            paths.add(value.get("hostPath") or value["path"])
        elif part == "hook":
            paths.add(value["path"])
    return paths


def _spec(spec: Any) -> Iterator[str]:
    for part, value in parts(spec):
        yield from _fields(part, value)
    vendor, _, kind = spec["kind"].partition("/")
    if not VENDOR.fullmatch(vendor) or not CLASS.fullmatch(kind):
        yield f"kind {spec['kind']!r}"
    names = [device["name"] for device in spec["devices"]]
    if not names or len(set(names)) < len(names):
        yield f"devices {names}"
    for device in spec["devices"]:
        if not NAME.fullmatch(device["name"]):
            yield f"device {device['name']!r}"
        if not any(device["containerEdits"].values()):
            yield f"device {device['name']!r} gives nothing"
    for part, value in parts(spec):
        yield from _content(part, value)


def _fields(part: str, value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{part} is no object: {value!r}"
        return
    yield from (f"{part} lacks {field}" for field in REQUIRED[part] - value.keys())
    for field, content in value.items():
        if not isinstance(content, FIELDS[part].get(field, ())):
            yield f"{part}.{field}: {content!r}"


def _content(part: str, value: Any) -> Iterator[str]:
    for field in ("hostPath", "containerPath", "path"):
        if field in value and not re.fullmatch(r"(/[^/\0]+)+", value[field]):
            yield f"{part}.{field}: {value[field]!r} is no absolute, plain path"
    for field in ("env", "args", "options"):
        for word in value.get(field, []):
            if not isinstance(word, str) or (field == "env" and not ENTRY.fullmatch(word)):
                yield f"{part}.{field}: {word!r}"
    if part == "hook" and (value["hookName"] not in HOOKS or value.get("timeout", 1) <= 0):
        yield f"hook {value}"
    if part == "node" and value.get("permissions", "rwm").strip("rwm"):
        yield f"permissions {value['permissions']!r}"
