"""How an exception becomes failures: whose, doing what, where."""

from __future__ import annotations

import pytest

from simnode.agent.failures import attribute
from simnode.host import ConvergeError, SurfaceError, TreeError

CONVERGE = ConvergeError(
    "a",
    [
        SurfaceError("driver/dev/nvidia1", "character device", 1, "cannot create character device: not permitted"),
        SurfaceError("driver/dev/nvidia0", "character device", None, "is occupied"),
    ],
)
CASES: dict[str, tuple[BaseException, list[str]]] = {
    "one": (OSError("no space"), ["a: stage: no space"]),
    "several lines": (ValueError("no\n  space\n"), ["a: stage: no space"]),
    "without a text": (KeyboardInterrupt(), ["a: stage: KeyboardInterrupt"]),
    "a converge": (
        CONVERGE,
        [
            "a: stage: driver/dev/nvidia0: is occupied",
            "a: stage: driver/dev/nvidia1: cannot create character device: not permitted",
        ],
    ),
    "a group": (
        ExceptionGroup("all", [OSError("x"), ExceptionGroup("some", [OSError("y"), OSError("z")])]),
        ["a: stage: x", "a: stage: y", "a: stage: z"],
    ),
}


def test_a_tree_that_another_simulator_asked_for_is_its_owners_fault() -> None:
    error = TreeError("no major is free")
    assert list(map(str, attribute("a", "narrow", error))) == ["a: narrow: no major is free"]
    error.owner = "b"
    assert list(map(str, attribute("a", "narrow", error))) == ["b: narrow: no major is free"]


@pytest.mark.parametrize(("error", "lines"), CASES.values(), ids=CASES)
def test_an_exception_becomes_failures(error: BaseException, lines: list[str]) -> None:
    assert list(map(str, attribute("a", "stage", error))) == lines
