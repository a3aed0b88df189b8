"""The createContainer hook by itself: how it finds the container's root, and that it never keeps one from starting."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from simnode.sandbox.installed import native

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="mounts in a namespace of one's own take root here")


def run(state: str, *orders: str | Path, then: str = "true") -> subprocess.CompletedProcess[str]:
    """The hook with a runtime's state, and a shell command after it in the same mount namespace."""
    script = f'"$0" "$@"; echo "exit $?"; {then}'
    enter = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*enter, "sh", "-c", script, native("container-hook"), *map(str, orders)],
        input=state, capture_output=True, text=True, check=False, timeout=10,
    )  # fmt: skip


def bundle(directory: Path, root: object) -> str:
    """A bundle whose configuration names `root`; the state that a runtime writes of it."""
    (directory / "rootfs/proc/driver").mkdir(parents=True)
    (directory / "source").mkdir()
    (directory / "source/version").write_text("ours")
    hard = {"process": {"args": ['"root": {"path": "/x"}', "\\"], "env": [{}, [], 1.5, None]}, "root": root}
    (directory / "config.json").write_text(json.dumps(hard, indent=1))
    return json.dumps({"ociVersion": "1.0.2", "annotations": {"bundle": "/no"}, "bundle": str(directory)})


@ROOT
@pytest.mark.parametrize("absolute", [False, True], ids=["containerd's", "podman's"])
def test_a_directory_is_mounted_read_only_below_the_containers_root(tmp_path: Path, absolute: bool) -> None:
    state = bundle(tmp_path, {"path": str(tmp_path / "rootfs") if absolute else "rootfs", "readonly": True})
    place = tmp_path / "rootfs/proc/driver"
    done = run(
        state, "bind", tmp_path / "source", "/proc/driver", then=f"cat {place}/version; echo x > {place}/version"
    )
    assert done.stdout == "exit 0\nours"
    assert "Read-only file system" in done.stderr


@ROOT
def test_a_directory_is_laid_over_the_containers_and_both_show(tmp_path: Path) -> None:
    state = bundle(tmp_path, {"path": "rootfs"})
    (tmp_path / "rootfs/proc/driver/rtc").touch()
    place = tmp_path / "rootfs/proc/driver"
    done = run(state, "overlay", tmp_path / "source", "/proc/driver", then=f"ls {place}")
    assert (done.stdout, done.stderr) == ("exit 0\nrtc\nversion\n", "")


@ROOT
def test_a_link_in_the_image_leads_nowhere_outside_it(tmp_path: Path) -> None:
    state = bundle(tmp_path, {"path": "rootfs"})
    (tmp_path / "outside/driver").mkdir(parents=True)
    (tmp_path / "rootfs/proc/driver").rmdir()
    (tmp_path / "rootfs/proc").rmdir()
    (tmp_path / "rootfs/proc").symlink_to(tmp_path / "outside")
    done = run(state, "bind", tmp_path / "source", "/proc/driver", then=f"ls {tmp_path}/outside/driver")
    assert done.stdout == "exit 0\n"
    assert "/proc/driver: cannot be opened in the container: No such file or directory" in done.stderr


@pytest.mark.parametrize("name", ['a & <b> "c" \\', "ünï", "new\nline"], ids=["Go escapes", "UTF-8", "control"])
def test_the_root_may_have_any_name_that_a_runtime_can_write(tmp_path: Path, name: str) -> None:
    """Go writes `&`, `<` and `>` as \\u0026 and so on, and what is no ASCII as it is."""
    state = bundle(tmp_path, {})
    (tmp_path / "rootfs").rename(tmp_path / name)
    text = json.dumps({"root": {"path": name}}, ensure_ascii=False).replace("\\n", "\\u000a")
    for letter in "&<>":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    (tmp_path / "config.json").write_text(text)
    done = run(state, "bind", "/nonexistent", "/proc/driver")
    assert done.stderr.startswith("simnode: container-hook: /nonexistent: cannot be mounted: "), done.stderr


@pytest.mark.parametrize("path", ["\\u00e9", "\\u0000", "\\u00", "\\ud83d\\ude00", "\\x", "\\uzzzz"])
def test_a_root_with_an_escape_that_no_path_needs_is_none(tmp_path: Path, path: str) -> None:
    state = bundle(tmp_path, {})
    (tmp_path / "config.json").write_text(f'{{"root": {{"path": "{path}"}}}}')
    assert run(state, "bind", "/", "/").stderr == f"simnode: container-hook: {tmp_path}: config.json names no root\n"


def test_whatever_is_wrong_is_a_line_and_no_failure(tmp_path: Path) -> None:
    good = bundle(tmp_path, {"path": "rootfs"})
    for state, words, said in (
        ("", (), "the state on standard input: names no bundle"),
        ('{"bundle": 3}', (), "the state on standard input: names no bundle"),
        ('{"bundle": "/nonexistent"}', (), "/nonexistent: config.json cannot be opened: "),
        ('{"bundle": "' + "x" * 5000 + '"}', (), "the state on standard input: names no bundle"),
        (good, ("bind",), "bind: want a SOURCE and a TARGET after it"),
        (good, ("move", "/a", "/b"), "move: is no order; want bind or overlay"),
        (good, ("bind", "/a", "/missing"), "/missing: cannot be opened in the container: No such file or directory"),
        (good, ("bind", "/nonexistent", "/proc/driver"), "/nonexistent: cannot be mounted: "),
    ):
        done = run(state, *words)
        assert done.stdout == "exit 0\n"
        assert done.stderr.startswith(f"simnode: container-hook: {said}"), done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("content", ["", "{", '{"root"', '{"root": {', '{"root": {"path": "', '{"a": [}', '"', "[1, 2"])
def test_a_configuration_that_is_cut_off_names_no_root(tmp_path: Path, content: str) -> None:
    state = bundle(tmp_path, {})
    (tmp_path / "config.json").write_text(content)
    done = run(state, "bind", "/", "/")
    assert done.stdout == "exit 0\n"
    assert done.stderr == f"simnode: container-hook: {tmp_path}: config.json names no root\n"
