"""The profile beside the image: one line is set, all the rest stays."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simnode.simulators.gpudriver.config import with_num_devices
from tests.examples import examples

CASES = {
    "replaced": ("system:\n  num_devices: 8 # all\n  x: 010\n", "system:\n  num_devices: 3\n  x: 010\n"),
    "replaced further down": ("system:\n    # why\n\n    x: 1\n    num_devices: 8\n", None),
    "quoted": ('"system":\n  "num_devices": 8\n', '"system":\n  num_devices: 3\n'),
    "added": ("system: # ours\n  x: 0x10\ny: 1\n", "system: # ours\n  num_devices: 3\n  x: 0x10\ny: 1\n"),
    "added to an empty section": ("system:\ny: 1\n", "system:\n  num_devices: 3\ny: 1\n"),
    "another section's is left alone": ("system:\n  x: 1\ny:\n  num_devices: 8\n", None),
    "a deeper one is left alone": ("system:\n  x:\n    num_devices: 8\n", None),
    "no last line end": ("system:\n  num_devices: 8", "system:\n  num_devices: 3\n"),
    "no section": ("y: 010\nz: 0000:07:00.0\n", "system:\n  num_devices: 3\ny: 010\nz: 0000:07:00.0\n"),
    "flow style": ("system: {x: 010}\n", "system:\n  num_devices: 3\n  x: 010\n"),
    "JSON": ('{"system": {"num_devices": 8, "x": "1"}}', '"system":\n  num_devices: 3\n  "x": "1"\n'),
    "a number over several lines": ("system:\n  num_devices:\n    8\n  x: 1\n", "system:\n  num_devices: 3\n  x: 1\n"),
    "a null section": ("y: 1\nsystem: ~\n", "system:\n  num_devices: 3\ny: 1\n"),
    "ends as on Windows": ("system: # a\r\n  num_devices: 8\r\n", "system: # a\n  num_devices: 3\n"),
    "line ends of other scripts in a text": (
        "system:\n  x: 'a\x85  num_devices: 8 \u2028system:'\n",
        "system:\n  num_devices: 3\n  x: 'a\x85  num_devices: 8 \u2028system:'\n",
    ),
    "flow style on the next line": ("system:\n  {x: 010,\n   num_devices: 8}\n", None),
    "JSON over several lines": ('{"x": 1,\n"system":\n {"num_devices": 8}, "y": 2}', None),
    "JSON of a document with a head": ("%YAML 1.1\n--- # ours\n{\nsystem:\n  {x: 1}}", None),
    "in a text over several lines": ("x: 'a\nsystem:\n  b'\n", None),
    "an anchor on the next line": ("system:\n  &a\n  x: 1\n", None),
    "an empty document": ("", "system:\n  num_devices: 3\n"),
}


@pytest.mark.parametrize(("document", "expected"), CASES.values(), ids=CASES)
def test_num_devices_is_set_and_the_rest_stays(document: str, expected: str | None) -> None:
    written = with_num_devices(document.encode(), 3).decode()
    assert "num_devices: 3\n" in written
    if expected is not None:
        assert written == expected
    wanted = yaml.safe_load(document) or {}
    wanted["system"] = {**(wanted.get("system") or {}), "num_devices": 3}
    assert yaml.safe_load(written) == wanted


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
_KEYS = st.sampled_from(["system", "num_devices", "devices", "x", "y: z", "# no"])
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3))
_DOCUMENTS = st.dictionaries(_KEYS, _VALUES, max_size=4).map(
    lambda document: {**document, "system": document["system"] if isinstance(document.get("system"), dict) else None}
)


@examples(60)
@given(_DOCUMENTS, st.booleans() | st.none(), st.integers(0, 64), st.integers(2, 6))
def test_any_document_means_the_same_but_for_the_count(
    document: dict[str, object], flow: bool | None, count: int, indent: int
) -> None:
    text = yaml.safe_dump(document, default_flow_style=flow, indent=indent, allow_unicode=True)
    written = with_num_devices(text.encode(), count)
    document = yaml.safe_load(text)  # where a text has a NEL in it, what was dumped is not what that means
    section = document["system"]
    wanted = {**document, "system": {**(section if isinstance(section, dict) else {}), "num_devices": count}}
    assert yaml.safe_load(written) == wanted
    assert f"num_devices: {count}" in written.decode()
