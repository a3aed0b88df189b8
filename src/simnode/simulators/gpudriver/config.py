"""The profile beside the image, with the number of devices that the node really has.

People and end-to-end tests read it; the library does not. The document stays as its author wrote it, comments and
number formats included: one line is set. Only a document that is not in block style is written anew, its scalars
untouched.
"""

from __future__ import annotations

import re

_SECTION = re.compile(r"""(?:system|"system"|'system')[ \t]*:[ \t]*(?:#.*)?""")
_ENTRY = re.compile(r"""([ \t]+)(?:(num_devices|"num_devices"|'num_devices')[ \t]*:)?(.*)""")
# Not what str.splitlines takes for one: \x85 and U+2028 can stand inside a text
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"""[ \t]+(?:[A-Za-z_]\w*|"[^"\\]*"|'[^']*')[ \t]*:(?:[ \t].*)?""")
_NUMBER = re.compile(r"[ \t]*[0-9]+[ \t]*(?:#.*)?")


def with_num_devices(document: bytes, count: int) -> bytes:
    """`document` (a profile, YAML) with `system.num_devices` set, as the literal text `num_devices: <count>`."""
    lines = _LINE_END.split(document.decode())
    if not lines[-1]:
        lines.pop()
    section = next((number for number, line in enumerate(lines) if _SECTION.fullmatch(line)), None)
    if section is None or _in_flow_style(lines):
        return _written_anew(document, count)
    entries = _entries(lines, section + 1)
    if entries and not _KEY.fullmatch(lines[entries[0][0]]):
        return _written_anew(document, count)
    indent = entries[0][1][1] if entries else "  "
    present = next(((number, entry[3]) for number, entry in entries if entry[1] == indent and entry[2]), None)
    line = f"{indent}num_devices: {count}"
    if present is None:
        lines.insert(section + 1, line)
    elif _NUMBER.fullmatch(present[1]):
        lines[present[0]] = line
    else:
        return _written_anew(document, count)
    return "\n".join(lines).encode() + b"\n"


def _in_flow_style(lines: list[str]) -> bool:
    """Whether the first line with content, or what stands behind the document's own mark, opens a mapping."""
    content = (line.removeprefix("---").strip() for line in lines if not line.startswith("%"))
    return next((line for line in content if line and not line.startswith("#")), "").startswith("{")


def _entries(lines: list[str], start: int) -> list[tuple[int, re.Match[str]]]:
    """The lines from `start` on that belong to the section, with their numbers; blank ones and comments left out."""
    entries = []
    for number, line in enumerate(lines[start:], start):
        if line.strip() and not line.lstrip().startswith("#"):
            entry = _ENTRY.fullmatch(line)
            if entry is None:
                break
            entries.append((number, entry))
    return entries


def _written_anew(document: bytes, count: int) -> bytes:
    """The same for a document without a `system:` section in block style; only such a one needs the YAML library."""
    import yaml

    root = yaml.compose(document)
    if not isinstance(root, yaml.MappingNode):
        root = yaml.MappingNode("tag:yaml.org,2002:map", [])
    key = yaml.ScalarNode("tag:yaml.org,2002:str", "num_devices")
    value = yaml.ScalarNode("tag:yaml.org,2002:int", str(count))
    section = next((node for name, node in root.value if name.value == "system"), None)
    if not isinstance(section, yaml.MappingNode):
        root.value = [entry for entry in root.value if entry[0].value != "system"]
        section = yaml.MappingNode("tag:yaml.org,2002:map", [])
        root.value.insert(0, (yaml.ScalarNode("tag:yaml.org,2002:str", "system"), section))
    section.value = [(key, value), *(entry for entry in section.value if entry[0].value != "num_devices")]
    root.flow_style = section.flow_style = False
    written: str = yaml.serialize(root, allow_unicode=True)
    return written.encode()
