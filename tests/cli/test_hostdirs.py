"""The directories of a host that hold CDI specs, as they are named below the host's root."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnode.cli.hostdirs import below


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host's root with the links that hosts have."""
    for name in ("etc", "run", "var", "srv/specs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "var/run").symlink_to("/run")
    (tmp_path / "etc/relative").symlink_to("../srv/specs")
    (tmp_path / "etc/upwards").symlink_to("../../../../../run")
    (tmp_path / "etc/loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    ("directory", "found"),
    [
        ("/etc/cdi", "etc/cdi"),
        ("/var/run/cdi", "run/cdi"),
        ("//var/./run/cdi/", "run/cdi"),
        ("/etc/relative", "srv/specs"),
        ("/etc/relative/more", "srv/specs/more"),
        ("/etc/upwards/cdi", "run/cdi"),
        ("/not/yet/there", "not/yet/there"),
        ("/etc/loop/cdi", "etc/loop/cdi"),
    ],
)
def test_links_are_followed_within_the_hosts_root(root: Path, directory: str, found: str) -> None:
    assert below(root, directory) == found


def test_what_an_agent_in_a_container_does_not_see_of_var_run_is_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert below(tmp_path, "/var/run/cdi") == "run/cdi"


def test_a_var_run_of_its_own_stays(tmp_path: Path) -> None:
    (tmp_path / "var/run").mkdir(parents=True)
    assert below(tmp_path, "/var/run/cdi") == "var/run/cdi"
