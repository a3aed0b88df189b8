"""The topology document: verbatim where there is one, absent where there is none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from simnode.host import ConvergeError, File, Host, Tree
from simnode.simulators.nvlink import NVLink
from simnode.state import State
from tests.simulators.states import FACTS, state

PATH = "topology/topology.yaml"
DOCUMENT = b"version: 1 # ours\r\ndomains: [{uuid: 010, cliques: []}]"


def having(document: bytes) -> State:
    return msgspec.structs.replace(state(2), topology_raw=document)


@pytest.fixture
def nvlink(tmp_path: Path) -> NVLink:
    """A simulator over an empty root."""
    return NVLink(Host(tmp_path, boot_id="boot"))


def test_the_tree_is_the_document(nvlink: NVLink) -> None:
    assert nvlink.tree(having(DOCUMENT), FACTS) == Tree([File(PATH, DOCUMENT, 0o644)])
    assert nvlink.tree(having(b""), FACTS) == Tree.empty


def test_it_is_staged_verbatim_and_goes_with_its_document(nvlink: NVLink, tmp_path: Path) -> None:
    async def main() -> None:
        assert not nvlink.ready()
        for document in (DOCUMENT, DOCUMENT + b"\n"):
            await nvlink.stage(having(document), FACTS)
            assert nvlink.ready()
            assert (tmp_path / PATH).read_bytes() == document
        await nvlink.stage(having(b""), FACTS)
        assert nvlink.ready()
        assert list(tmp_path.iterdir()) == []

    asyncio.run(main())


def test_discarding_takes_it_away(nvlink: NVLink, tmp_path: Path) -> None:
    async def main() -> None:
        await nvlink.stage(having(DOCUMENT), FACTS)
        await nvlink.discard()
        assert not nvlink.ready()
        assert list(tmp_path.iterdir()) == []

    asyncio.run(main())


def test_a_plan_says_whether_staging_would_do_anything(nvlink: NVLink, tmp_path: Path) -> None:
    async def main() -> None:
        await nvlink.stage(having(DOCUMENT), FACTS)
        assert not await nvlink.plan(having(DOCUMENT), FACTS)
        assert await nvlink.plan(having(b""), FACTS)
        (tmp_path / PATH).unlink()
        assert await nvlink.plan(having(DOCUMENT), FACTS)
        (tmp_path / PATH).write_text("foreign")
        assert await nvlink.plan(having(DOCUMENT), FACTS)

    asyncio.run(main())


def test_somebody_elses_document_is_left_alone_and_named(nvlink: NVLink, tmp_path: Path) -> None:
    (tmp_path / PATH).parent.mkdir()
    (tmp_path / PATH).write_text("foreign")

    async def main() -> None:
        with pytest.raises(ConvergeError, match=PATH):
            await nvlink.stage(having(DOCUMENT), FACTS)
        assert not nvlink.ready()
        assert (tmp_path / PATH).read_text() == "foreign"

    asyncio.run(main())
