"""What the fire has found, one by one."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from pathlib import Path

import pytest

from simnode.agent.failures import Failure, attribute
from simnode.host import livetexts
from simnode.sources.generation import Generation
from tests.agent.acting import Log, Node, Schedule, Stager, state
from tests.agent.virtual import run
from tests.fire.holder import Holder
from tests.sources.watched import profile, source_of, streaming


def test_a_simulator_that_cannot_say_whether_it_is_ready_is_not_and_every_probe_answers() -> None:
    class Moody(Stager):
        def ready(self) -> bool:
            raise RuntimeError("bad temper")

    log: Log = []
    node = Node([Moody("a", log), Stager("b", log)], Schedule([(0, state(1))]), log)

    async def live() -> None:
        living = asyncio.create_task(node.live(5))
        await asyncio.sleep(1)
        ready = node.agent.readiness().check()
        assert ready.reason == "not ready: a"
        assert ready.components == {"a": (False, "ready: bad temper"), "b": (True, "")}
        await living

    run(live())


@pytest.mark.parametrize("staged", [False, True])
def test_an_agent_that_waits_for_the_staging_lock_names_it_in_readiness_at_once(tmp_path: Path, staged: bool) -> None:
    path = tmp_path / "staging.lock"
    log: Log = []
    node = Node([Stager("a", log)], Schedule([(2 if not staged else 0, state(1)), (3, state(2))]), log, lock=path)
    holder = Holder(path)

    async def live() -> None:
        living = asyncio.create_task(node.live(20))
        await asyncio.sleep(1)
        holder.hold(fcntl.LOCK_SH)
        await asyncio.sleep(4)
        ready = node.agent.readiness().check()
        waits = f"waits for {path}, which others hold"
        assert ready.reason == f"{'not staged anew' if staged else 'the tree is not staged'}: the agent {waits}"
        assert ready.components["agent"] == (False, waits)
        assert node.agent.liveness().check().ok
        holder.release()
        await asyncio.sleep(1)
        assert node.agent.readiness().check().ok
        await living

    run(live())


def test_what_the_disk_refuses_of_a_text_written_in_place_is_about_that_surface(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log/text").symlink_to("elsewhere")
    with pytest.raises(OSError, match="cannot write it") as caught:
        livetexts.write(tmp_path, {"log/text": b"new"})
    reason = f"cannot write it: {os.strerror(errno.ELOOP)}"
    assert attribute("a", "stage", caught.value) == (Failure("a", "stage", "log/text", reason),)


def test_a_state_whose_number_cannot_be_kept_is_not_half_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever asked got the documents of the new one and the GPUs of the old one."""
    path = tmp_path / "profile.yaml"
    path.write_text(profile(3))

    def full(_: Generation) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def live() -> None:
        source = source_of(tmp_path, path)
        async with streaming(source) as stream:
            await stream.state()
            monkeypatch.setattr(Generation, "next", full)
            path.write_text(profile(1))
            assert os.strerror(errno.ENOSPC) in await stream.error()
            counts = await source.ask(lambda compiler, _, state: (len(compiler.compile().devices), len(state.devices)))
            assert counts == (3, 3)

    asyncio.run(live())
