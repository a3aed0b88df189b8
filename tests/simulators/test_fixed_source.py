"""The source that has one State for ever."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from simnode.contracts import Update
from simnode.sources.fixed import FixedSource
from tests.simulators.states import state

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_every_watcher_gets_the_state_at_once_and_the_end_only_at_the_close() -> None:
    async def main() -> None:
        source = FixedSource(state(1), now=lambda: NOON)
        seen: list[Update] = []

        async def watch() -> None:
            async for update in source.watch():
                seen.append(update)

        watchers = [asyncio.create_task(watch()) for _ in range(2)]
        done, _ = await asyncio.wait(watchers, timeout=0.02)
        assert not done
        assert seen == [Update(at=NOON, state=state(1))] * 2
        await source.close()
        await asyncio.wait_for(asyncio.gather(*watchers), 5)
        assert len(seen) == 2

    asyncio.run(main())
