"""The directories of specs: what may be named as one, before anything begins."""

from __future__ import annotations

import click
import pytest

from simnode.cli.host import HostDirectory

REFUSED = {
    "relative": ("etc/cdi", "is no directory below the host's root"),
    "the root": ("/./", "is no directory below the host's root"),
    "upwards": ("/etc/../cdi", "is no directory below the host's root"),
    "two lines": ("/etc/c\ndi", "is no path of a directory"),
    "no UTF-8": ("/etc/c\udcffdi", "is no path of a directory"),
    "too long a name": (f"/etc/{'c' * 256}", "is no path of a directory"),
    "too long a path": ("/etc" * 1200, "is no path of a directory"),
    "the engine's": ("/etc/.simnode-x/cdi", "is no path of a directory"),
    "the node's": ("/var/lib/simnode/state", "is the node's own"),
    "the node's, said oddly": ("//run/./nvidia//driver/usr/", "is the node's own"),
    "the locks'": ("/run/simnode", "is the node's own"),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_can_be_no_directory_of_specs_is_a_mistake_of_usage(text: str, reason: str) -> None:
    """It names what was given and what would be right, and the agent does not start."""
    with pytest.raises(click.UsageError) as raised:
        HostDirectory().convert(text, None, None)
    assert raised.value.exit_code == 2
    assert raised.value.message.startswith(f"{text!r} {reason}: want ")


@pytest.mark.parametrize(
    "text", ["/etc/cdi", "/var/run/cdi", "/opt/a b/cdi", "/etc/\u00fcn\u00ef", "/etc/simnode-/x", ""]
)
def test_any_other_is_taken_as_it_is(text: str) -> None:
    assert HostDirectory().convert(text, None, None) == text
