"""YAML 1.2: what a plain scalar is, and that reading never ends in anything but a tree or a fault."""

from __future__ import annotations

import string

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simnode.profile import ProfileError
from simnode.profile.document import Node, load, plain, resolve
from tests.examples import examples
from tests.profile.documents import SMALL, faults


def test_values_of_a_collection_count_once() -> None:
    """Neither the lists around them nor their ends count them again."""
    assert load(f"[[[{','.join('x' * 60_000)}]]]".encode(), "p.yaml").root.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0000:07:00.0", "0000:07:00.0"),
        ("190:20:30", "190:20:30"),
        ("010", 10),
        ("0o10", 8),
        ("0x233010DE", 0x233010DE),
        ("-7", -7),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("12.8", 12.8),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("2026-08-21", "2026-08-21"),
        ("<<", "<<"),
        ("", None),
        ("-", "-"),
        ("550.163.01", "550.163.01"),
    ],
)
def test_a_plain_scalar_is_what_yaml_1_2_says(text: str, value: object) -> None:
    resolved = resolve(text)
    assert resolved == value
    assert type(resolved) is type(value)


def test_quoted_and_tagged_scalars_stay_text() -> None:
    assert plain(load(b"[\"010\", '~', !!str 1, ! 2]", "p").root) == ["010", "~", "1", "2"]


def test_aliases_share_a_value() -> None:
    assert plain(load(b"a: &x {b: 1}\nc: *x\n", "p").root) == {"a": {"b": 1}, "c": {"b": 1}}


def test_every_value_knows_its_line() -> None:
    root = load(b"a:\n  b: 1\nc:\n  - 2\n  - 3\n", "p").root
    assert isinstance(root.value, dict)
    assert root.value["a"].line == 1
    assert isinstance(root.value["c"].value, tuple)
    assert [node.line for node in root.value["c"].value] == [4, 5]


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    document = load("\ufeffversion: 1".encode(), "p")
    assert plain(document.root) == {"version": 1}
    assert document.text == "version: 1"


@given(st.binary(max_size=300))
@examples(100)
def test_random_bytes_are_a_tree_or_a_fault(raw: bytes) -> None:
    try:
        assert isinstance(load(raw, "p").root, Node)
    except ProfileError as error:
        assert error.faults
        assert all(str(fault).isprintable() for fault in error.faults)


@given(st.text(alphabet="ab01:.-[]{},&*!|>'\"#%@` \n\t\\x?~", max_size=60))
@examples(200)
def test_random_yaml_is_a_tree_or_a_fault(text: str) -> None:
    try:
        load(text.encode(), "p")
    except ProfileError as error:
        assert all(fault.file == "p" for fault in error.faults)


WORDS = st.text(string.ascii_letters, min_size=1)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(string.printable, max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(string.ascii_letters, min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
@examples(60)
def test_what_a_yaml_writer_writes_is_read_back(value: object) -> None:
    text = yaml.safe_dump(value, default_style='"')  # plain, it would write 0E0 for a text as YAML 1.1 may
    assert plain(load(text.encode(), "p").root) == value


@given(st.integers(0, len(SMALL) - 1), st.integers(0, 40), st.text(max_size=4))
@examples(100)
def test_a_damaged_profile_raises_nothing_but_faults(at: int, removed: int, inserted: str) -> None:
    damaged = SMALL[:at] + inserted + SMALL[at + removed :]
    assert all(line.startswith("p.yaml") for line in faults(damaged.encode("utf-8", "surrogatepass")))
