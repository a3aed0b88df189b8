"""The file source: what makes it speak, and what it says."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from simnode.profile import Options, Overrides, ProfileError, compile_state, load_text
from simnode.profile.changes import inject
from simnode.sources.file import FileSource, Times
from simnode.sources.watching import Watching
from tests.sources.configmap import ConfigMap
from tests.sources.watched import QUICK, Stream, profile, run, source_of, streaming

TOPOLOGY = """\
version: 1
domains:
  - uuid: 00000000-0000-0000-0000-000000000001
    cliques:
      - {id: 3, nodes: [worker-a, worker-b]}
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_state_comes_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with streaming(source_of(tmp_path, written(tmp_path / "p.yaml", profile(3)))) as stream:
            state = await stream.state()
            assert (state.generation, state.node_shape.num_gpus) == (1, 3)

    run(test)


def test_a_missing_profile_is_one_error_and_appears_when_it_is_there(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "later/p.yaml"
        async with streaming(source_of(tmp_path, path)) as stream:
            assert await stream.error() == f"{path}: no such file or directory"
            path.parent.mkdir()
            path.write_text(profile())
            assert (await stream.state()).node_shape.num_gpus == 2

    run(test)


def rewritten(path: Path, text: str) -> None:
    path.write_text(text)


def renamed(path: Path, text: str) -> None:
    written(path.with_name("new"), text).rename(path)


def relinked(path: Path, text: str) -> None:
    target = written(path.with_name("elsewhere.yaml"), text)
    path.unlink()
    path.symlink_to(target)


@pytest.mark.parametrize("change", [rewritten, renamed, relinked])
def test_a_change_of_the_file_is_seen(tmp_path: Path, change: Callable[[Path, str], None]) -> None:
    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        async with streaming(source_of(tmp_path, path)) as stream:
            await stream.state()
            change(path, profile(5))
            state = await stream.state()
            assert (state.generation, state.node_shape.num_gpus) == (2, 5)

    run(test)


def test_a_change_behind_links_into_other_directories_is_seen(tmp_path: Path) -> None:
    async def test() -> None:
        real = tmp_path / "a/b"
        real.mkdir(parents=True)
        (tmp_path / "c").symlink_to("a/b")
        (tmp_path / "p.yaml").symlink_to(tmp_path / "c/../b/p.yaml")
        written(real / "p.yaml", profile(2))
        async with streaming(source_of(tmp_path, tmp_path / "p.yaml")) as stream:
            await stream.state()
            written(real / "p.yaml", profile(3))
            assert (await stream.state()).node_shape.num_gpus == 3

    run(test)


def test_a_thousand_swaps_of_a_config_map_are_all_seen(tmp_path: Path) -> None:
    async def test() -> None:
        mounted = ConfigMap(tmp_path / "config", config=profile(1))
        times = Times(settle=0.0, poll=600.0, blind_poll=600.0)
        async with streaming(source_of(tmp_path, mounted.path("config"), times=times)) as stream:
            await stream.state()
            for swap in range(1000):
                gpus = swap % 7 + 2
                mounted.update(config=profile(gpus))
                state = await stream.state()
                assert (state.generation, state.node_shape.num_gpus) == (swap + 2, gpus)

    run(test)


def test_a_thousand_swaps_without_a_pause_end_at_the_last(tmp_path: Path) -> None:
    async def test() -> None:
        mounted = ConfigMap(tmp_path / "config", config=profile(1))
        async with streaming(source_of(tmp_path, mounted.path("config"))) as stream:
            await stream.state()
            for swap in range(1000):
                mounted.update(config=profile(swap % 7 + 2))
            mounted.update(config=profile(64))
            while (await stream.state()).node_shape.num_gpus != 64:
                pass

    run(test)


def test_a_topology_that_comes_and_goes_in_a_config_map_is_followed(tmp_path: Path) -> None:
    async def test() -> None:
        mounted = ConfigMap(tmp_path / "config", config=profile())
        environ = {"NODE_NAME": "worker-b"}
        source = source_of(tmp_path, mounted.path("config"), topology=mounted.path("topology"), environ=environ)
        async with streaming(source) as stream:
            state = await stream.state()
            assert (state.topology_raw, state.fabric.clique_id) == (b"", 7)
            mounted.update(config=profile(), topology=TOPOLOGY)
            state = await stream.state()
            assert (state.topology_raw, state.fabric.clique_id) == (TOPOLOGY.encode(), 3)
            mounted.update(config=profile())
            state = await stream.state()
            assert (state.topology_raw, state.fabric.clique_id) == (b"", 7)

    run(test)


def test_equal_content_says_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        mounted = ConfigMap(tmp_path / "config", config=profile())
        async with streaming(source_of(tmp_path, mounted.path("config"))) as stream:
            await stream.state()
            mounted.update(config=profile())
            await stream.silent()

    run(test)


def test_a_document_that_fails_is_one_error_until_it_is_edited(tmp_path: Path) -> None:
    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        async with streaming(source_of(tmp_path, path, times=Times(0.005, 0.01, 0.01))) as stream:
            good = await stream.state()
            path.write_text(profile(2).replace("ampere", "ampare"))
            error = await stream.error()
            assert error.startswith(f"{path}:5: device_defaults.architecture: must be one of ")
            path.write_text(profile(2))
            again = await stream.state()
            assert (again, again.generation) == (good, good.generation)
            await stream.silent()

    run(test)


def test_unknown_keys_are_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2) + "  colour: green\n")
        async with streaming(source_of(tmp_path, path)) as stream:
            await stream.state()

    run(test)
    assert [record.getMessage() for record in caplog.records] == [
        f"source: {tmp_path}/p.yaml:10: device_defaults.colour: is no known key; it is ignored"
    ]


@pytest.mark.parametrize("good_before", [True, False], ids=["after a good one", "from the start"])
def test_what_is_wrong_is_told_together_with_the_unknown_key_that_may_be_why(tmp_path: Path, good_before: bool) -> None:
    async def test() -> None:
        wrong = profile(2).replace("  name: ", "  nam: ")
        path = written(tmp_path / "p.yaml", profile(2) if good_before else wrong)
        async with streaming(source_of(tmp_path, path)) as stream:
            if good_before:
                await stream.state()
                path.write_text(wrong)
            missing = f"{path}:3: device_defaults.name: is missing"
            unknown = f'{path}:4: device_defaults.nam: is no known key; did you mean "name"?'
            assert await stream.error() == f"{missing}; {unknown}"

    run(test)


def test_the_generation_rises_across_restarts(tmp_path: Path) -> None:
    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        for expected in (1, 2, 3):
            async with streaming(source_of(tmp_path, path)) as stream:
                assert (await stream.state()).generation == expected

    run(test)


def test_a_hand_edited_override_is_seen_and_a_wrong_one_is_an_error(tmp_path: Path) -> None:
    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        async with streaming(source_of(tmp_path, path)) as stream:
            await stream.state()
            overrides = tmp_path / "state/overrides.yaml"
            overrides.write_text("devices: {'1': {thermal: {temperature_gpu_c: 77}}}")
            state = await stream.state()
            assert [dict(one.values)["thermal.temperature_gpu_c"] for one in state.runtime.devices] == [30, 77]
            overrides.write_text("all: {thermal: {temperature_gpu_c: hot}}")
            assert "all.thermal.temperature_gpu_c: must be an integer" in await stream.error()
            overrides.unlink()
            state = await stream.state()
            assert dict(state.runtime.devices[1].values)["thermal.temperature_gpu_c"] == 30

    run(test)


def test_changes_one_after_another_put_the_look_off_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stirs the directory, and a look costs more than a change; an edit by hand is still seen meanwhile."""
    looks: list[float] = []
    real = FileSource._look

    def look(source: FileSource, watching: Watching) -> None:
        looks.append(time.monotonic())
        real(source, watching)

    async def follow(stream: Stream) -> None:
        async for _ in stream.updates:
            pass

    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        source = source_of(tmp_path, path, times=Times(settle=0.1, poll=600.0, put_off=0.8))
        async with streaming(source) as stream:
            await stream.state()
            following = asyncio.create_task(follow(stream))
            monkeypatch.setattr(FileSource, "_look", look)
            begun = time.monotonic()
            for number in range(60):
                await source.change(lambda _, __, old, number=number: inject(old, 1, "lost", None, number))  # type: ignore[misc]
                await asyncio.sleep(0.02)
            following.cancel()
            await asyncio.wait({following})
        assert len(looks) in (1, 2)
        assert looks[0] - begun > 0.7

    run(test)


def test_overrides_that_are_wrong_from_the_start_do_not_keep_the_node_from_coming_up(tmp_path: Path) -> None:
    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        (tmp_path / "state").mkdir()
        overrides = written(tmp_path / "state/overrides.yaml", "all: {fan: 7}")
        for _ in range(2):
            async with streaming(source_of(tmp_path, path)) as stream:
                assert (await stream.state()).node_shape.num_gpus == 2
                assert await stream.error() == f"{overrides}:1: all.fan: must be a mapping, not 7"

    run(test)


def test_a_change_that_cannot_be_numbered_is_taken_up_once_it_can(tmp_path: Path) -> None:
    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        async with streaming(source_of(tmp_path, path, times=Times(0.005, 0.05, 0.05))) as stream:
            await stream.state()
            number = tmp_path / "state/generation"
            number.rename(tmp_path / "aside")
            number.mkdir()
            path.write_text(profile(3))
            assert str(number) in await stream.error()
            number.rmdir()
            assert (await stream.state()).node_shape.num_gpus == 3

    run(test)


def test_a_mig_table_is_carried_and_one_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    async def test() -> None:
        path, table = written(tmp_path / "p.yaml", profile(2)), tmp_path / "mig-profiles.yaml"
        async with streaming(source_of(tmp_path, path, mig_profiles=table)) as stream:
            assert (await stream.state()).mig_profiles_raw == b""
            table.write_text("profiles: []\n")
            assert (await stream.state()).mig_profiles_raw == b"profiles: []\n"
            table.unlink()
            table.mkdir()
            assert (await stream.state()).mig_profiles_raw == b""

    run(test)


def test_without_inotify_the_files_are_looked_at_more_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def exhausted(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("asyncinotify._ffi.libc.inotify_add_watch", exhausted)

    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        async with streaming(source_of(tmp_path, path)) as stream:
            await stream.state()
            path.write_text(profile(3))
            assert (await stream.state()).node_shape.num_gpus == 3

    run(test)
    assert [record.getMessage() for record in caplog.records] == [
        "source: inotify: No space left on device; looking at the files more often instead"
    ]


def test_what_inotify_does_not_see_is_found_by_the_slow_look(tmp_path: Path) -> None:
    async def test() -> None:
        above = tmp_path / "above"
        (above / "config").mkdir(parents=True)
        path = written(above / "config/p.yaml", profile(2))
        async with streaming(source_of(tmp_path, path, times=Times(0.005, 0.05, 0.05))) as stream:
            await stream.state()
            above.rename(tmp_path / "aside")
            (above / "config").mkdir(parents=True)
            written(path, profile(4))
            update = await stream.next()
            state = update.state or await stream.state()
            assert state.node_shape.num_gpus == 4

    run(test)


def test_a_state_that_is_given_is_said_without_compiling_and_changed_all_the_same(tmp_path: Path) -> None:
    async def test() -> None:
        raw = profile(2).encode()
        given = compile_state(load_text(raw, "p.yaml"), Options(), {}, generation=1)
        source = source_of(tmp_path, raw, initial=given, times=Times(warm_up=600))
        async with streaming(source) as stream:
            assert await stream.state() == given
            assert await source.ask(lambda compiler, _, state: compiler.compile() == state)
        (tmp_path / "state/overrides.yaml").write_text("node: {system: {num_devices: 5}}")
        async with streaming(source_of(tmp_path, raw, initial=given)) as stream:
            state = await stream.state()
            assert (state.generation, state.node_shape.num_gpus) == (2, 5)

    run(test)


def test_what_a_killed_agent_was_writing_is_gone_with_its_successor(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "state").mkdir()
        (tmp_path / "state/overrides.yaml.tmp").write_bytes(b"half")
        async with streaming(source_of(tmp_path, profile(2).encode())) as stream:
            await stream.state()
        assert not (tmp_path / "state/overrides.yaml.tmp").exists()

    run(test)


@pytest.mark.parametrize("broken", ["text", "kind"])
def test_overrides_broken_before_anything_was_compiled_can_be_reset(tmp_path: Path, broken: str) -> None:
    """What is in force can be asked for all the same; only what would build on the broken file is refused."""

    async def test() -> None:
        raw = profile(2).encode()
        given = compile_state(load_text(raw, "p.yaml"), Options(), {}, generation=1)
        overrides = tmp_path / "state/overrides.yaml"
        async with streaming(source_of(tmp_path, raw, initial=given, times=replace(QUICK, warm_up=600))) as stream:
            assert await stream.state() == given
            if broken == "text":
                overrides.write_text("all: {utilization: {gpu: much}}")
            else:
                os.mkfifo(overrides)
            assert "overrides.yaml" in await stream.error()
            assert "overrides.yaml" in stream.source.error
            assert await stream.source.ask(lambda compiler, _, state: compiler.compile() == state)
            with pytest.raises(ProfileError, match=r"overrides\.yaml"):
                await stream.source.change(lambda _compiler, _state, old: Overrides(all=old.all, node=old.node))
            assert await stream.source.start_over() == given
            assert overrides.read_text() == "version: 1\n"

    run(test)


def test_a_number_that_cannot_be_written_is_tried_again_soon(tmp_path: Path) -> None:
    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        number = tmp_path / "state/generation"
        number.mkdir(parents=True)
        async with streaming(source_of(tmp_path, path)) as stream:
            assert await stream.error() == f"{number}: cannot be written: Is a directory"
            number.rmdir()
            assert (await stream.state()).generation == 1

    run(test)


def test_closing_ends_the_stream(tmp_path: Path) -> None:
    async def test() -> None:
        path = written(tmp_path / "p.yaml", profile(2))
        async with streaming(source_of(tmp_path, path, times=QUICK)) as stream:
            await stream.state()
            await stream.source.close()
            with pytest.raises(StopAsyncIteration):
                await stream.next()

    run(test)
