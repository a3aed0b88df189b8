"""Facts: a value of what is known, whose changes are told apart by who reads them."""

from __future__ import annotations

import pytest

from simnode.state import Facts

KNOWN = Facts.of(fabric_ready=False, package="x")
SAME: dict[str, tuple[Facts, bool]] = {
    "only the image reads it": (Facts.of(fabric_ready=True, package="x"), True),
    "somebody else reads it": (Facts.of(fabric_ready=False, package="y"), False),
    "the image's is not known": (Facts.of(package="x"), True),
    "another is not known": (Facts.of(fabric_ready=False), False),
}


@pytest.mark.parametrize(("other", "same"), SAME.values(), ids=SAME)
def test_a_patch_will_do_if_only_the_image_reads_what_differs(other: Facts, same: bool) -> None:
    assert KNOWN.same_structure(other) is same
    assert other.same_structure(KNOWN) is same


def test_what_is_known_already_makes_no_other_facts() -> None:
    assert KNOWN.having("package", "x") is KNOWN
    assert KNOWN.having("package", "y") == Facts.of(fabric_ready=False, package="y")


def test_the_order_of_reports_does_not_matter() -> None:
    assert Facts().having("b", 1).having("a", 2) == Facts().having("a", 2).having("b", 1)


def test_a_fact_that_nobody_reported_is_what_its_property_says() -> None:
    assert Facts().fabric_ready is False
    assert Facts.of(fabric_ready=True).fabric_ready is True
