"""What is said of a key that there is not, and what there is to choose from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simnode.profile import ProfileError, keys, load_board, load_text, shapes
from simnode.profile.keys import described, dotted, group, wrong_key
from simnode.profile.overrides import assignments
from simnode.profile.schema import DEVICE_DEFAULTS, NODE_SECTIONS

LISTED = dict(dotted(DEVICE_DEFAULTS))


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        pytest.param("thermal.temperatur_gpu_c", '"temperature_gpu_c"', id="a slip"),
        pytest.param("termal.temperature_gpu_c", '"thermal"', id="a slip in the group"),
        pytest.param("memory.total", '"total_bytes"', id="without its unit"),
        pytest.param("thermal.temp", '"temperature_gpu_c", "temperature_memory_c" or', id="short for several"),
        pytest.param("temperature_gpu_c", '"thermal.temperature_gpu_c"', id="without its group"),
        pytest.param("power.temperature_gpu_c", '"thermal.temperature_gpu_c"', id="in another group"),
        pytest.param("util.gpu", '"utilization"', id="short for a group"),
    ],
)
def test_a_key_that_is_near_is_asked_for(key: str, meant: str) -> None:
    assert wrong_key(key, DEVICE_DEFAULTS).startswith(f"is no known key; did you mean {meant}")
    with pytest.raises(ProfileError, match="did you mean"):
        assignments([f"{key}=1"])


CROWD = 1000


def _in_assignments() -> None:
    assignments([f"thermal.temperature_gpu_{number}=1" for number in range(CROWD)])


def _in_one_assignment() -> None:
    assignments([f"thermal={{{', '.join(f'temperature_gpu_{number}: 1' for number in range(CROWD))}}}"])


def _in_a_profile() -> None:
    keys = "\n".join(f"temperature_gpu_{number}: 1" for number in range(CROWD)).encode()
    load_text(load_board("h100").raw + keys, "p.yaml")


@pytest.mark.parametrize("say", [_in_assignments, _in_one_assignment, _in_a_profile])
def test_of_a_crowd_of_wrong_keys_only_the_first_are_asked_for(
    say: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a request of a megabyte would keep an agent busy for minutes."""
    looked: list[str] = []
    for module in (shapes, keys):

        def near(name: str, *others: Any, near: Callable[..., tuple[str, ...]] = shapes.near) -> tuple[str, ...]:
            looked.append(name)
            return near(name, *others)

        monkeypatch.setattr(module, "near", near)
    with pytest.raises(ProfileError) as raised:
        say()
    first, *_, last = [fault.message for fault in raised.value.faults]
    assert len(raised.value.faults) == CROWD
    assert first.startswith("is no known key; did you mean")
    assert last == "is no known key"
    assert len(looked) < 50


@pytest.mark.parametrize("key", ["nonsense", "system", "thermal.zzz", "a.b"])
def test_where_nothing_is_near_nothing_is_asked(key: str) -> None:
    assert wrong_key(key, DEVICE_DEFAULTS) == "is no known key"


def test_a_key_that_there_is_is_right() -> None:
    assert wrong_key("thermal.temperature_gpu_c", DEVICE_DEFAULTS) == ""
    assert wrong_key("system.num_devices", NODE_SECTIONS) == ""
    assert wrong_key("utilization.gpu.x", DEVICE_DEFAULTS) == "is no known key: there is nothing below a value"


def test_a_value_for_a_group_names_one_of_it() -> None:
    with pytest.raises(ProfileError) as raised:
        assignments(["utilization=3"])
    assert str(raised.value) == "--set: utilization: is no value but a group of them: set one, such as utilization.gpu"
    assert group("utilization", DEVICE_DEFAULTS)[0] == "utilization.gpu"
    assert group("utilization.gpu", DEVICE_DEFAULTS) == ()


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("thermal.temperature_gpu_c", "an integer from 0 to 250 (C)"),
        ("ecc.mode_current", "one of disabled, enabled"),
        ("supported_clocks.memory_clocks", "a list of mappings: freq_mhz, graphics_clocks"),
        ("nvlink_error.links", "a list"),
        ("multigpu_board", "true or false"),
    ],
)
def test_what_a_key_may_be_is_said_in_words(key: str, said: str) -> None:
    assert described(key, LISTED[key]) == said
