"""Publishing: which files come and go, and that none ever names what is not there."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnode.host import CharacterDevice, ConvergeError, File, Host, Tree
from simnode.state import State
from tests.cri.nodes import FACTS, NODE_ROOT, cri, partitioned, staged
from tests.cri.schema import faults, host_paths
from tests.examples import examples
from tests.host.scene import around_calls, picture, recorded
from tests.simulators.states import state

GPUS = tuple(msgspec.structs.replace(device, index=index) for index, device in enumerate(reversed(state(64).devices)))
"""GPUs whose minors are their indices: small ones, which can be partitioned."""


def of(gpus: int, driver_version: str = "550.163.01", cut: int = 0) -> State:
    """A node with the first of these GPUs, one of them cut if `cut` says into how many instances."""
    devices = GPUS[:gpus]
    wanted = msgspec.structs.replace(state(0, driver_version), devices=devices)
    return partitioned(wanted, *(device.minor_number for device in devices[:1]), instances=cut) if cut else wanted


class Scene:
    """A host with an agent on it; what the other simulators stage is staged by an engine of its own."""

    def __init__(self, root: Path, *directories: str) -> None:
        self.root = root
        for name in (NODE_ROOT[1:], "run"):
            (root / name).mkdir(parents=True)
        self.directories = directories or ("run/cdi",)
        self.agent()

    def agent(self) -> None:
        """Another agent than before."""
        self.cri = cri(self.root, *self.directories)
        self.others = Host(self.root / NODE_ROOT[1:], boot_id="boot")

    def wave(self, old: State, new: State) -> None:
        asyncio.run(self.cri.narrow((old, FACTS), (new, FACTS)))
        self.stage(new)
        asyncio.run(self.cri.apply(new, FACTS))

    def stage(self, wanted: State) -> None:
        self.others.converge("others", ordinary(staged(wanted, FACTS)))
        asyncio.run(self.cri.stage(wanted, FACTS))

    def specs(self) -> dict[str, Any]:
        """Every file that a runtime reads, by its path."""
        found = {}
        for directory in self.directories:
            for path in (self.root / directory).glob("*.yaml"):
                found[str(path.relative_to(self.root))] = json.loads(path.read_bytes())
        return found

    def names(self) -> set[str]:
        """The devices that can be asked for."""
        spec = self.specs().get("run/cdi/nvidia.yaml", {"devices": []})
        return {device["name"] for device in spec["devices"]}

    def missing(self) -> set[str]:
        """What published files name and nothing is."""
        named = {path for spec in self.specs().values() for path in host_paths(spec)}
        return {path for path in named if not (self.root / path[1:]).exists()}


def ordinary(tree: Tree) -> Tree:
    """The tree with files for device nodes, which only root can make."""
    return Tree(
        File(surface.path, surface.fingerprint.encode()) if isinstance(surface, CharacterDevice) else surface
        for surface in tree
    )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A host without anything of ours."""
    return Scene(tmp_path)


STATES = st.builds(
    of,
    st.integers(0, 4),
    st.sampled_from(["550.163.01", "580.65.06"]),
    st.sampled_from([0, 0, 1, 3]),
)


@examples(25)
@given(st.lists(STATES, min_size=2, max_size=4), st.lists(st.integers(0, 60), min_size=3, max_size=3))
def test_nothing_published_is_ever_missing_whatever_fails(wanted: list[State], fails_at: list[int]) -> None:
    """Looked at before and after every call that changes anything; a stage that ends early is a failed one."""
    with tempfile.TemporaryDirectory() as directory:
        scene = Scene(Path(directory))
        published = wanted[0]

        def look() -> None:
            assert scene.missing() == set()

        def around(_: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
            look()
            result = call(*arguments)
            look()
            return result

        with around_calls(around):
            scene.wave(published, published)
            for new, limit in zip(wanted[1:], fails_at, strict=False):
                asyncio.run(scene.cri.narrow((published, FACTS), (new, FACTS)))
                if limit < 40:
                    with suppress(ConvergeError), stopping(after=limit):
                        scene.stage(new)
                    continue
                scene.stage(new)
                asyncio.run(scene.cri.apply(new, FACTS))
                published = new
            scene.wave(published, wanted[-1])
            assert all(faults(spec) == [] for spec in scene.specs().values())
            asyncio.run(scene.cri.revoke())
            assert scene.specs() == {}


class stopping:
    """Every call after the first few fails."""

    def __init__(self, *, after: int) -> None:
        calls = 0

        def around(_: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
            nonlocal calls
            calls += 1
            if calls > after:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return call(*arguments)

        self._around = around_calls(around)

    def __enter__(self) -> None:
        self._around.__enter__()

    def __exit__(self, *error: object) -> None:
        self._around.__exit__(None, None, None)


def test_a_gpu_that_stays_can_be_asked_for_throughout(scene: Scene) -> None:
    scene.wave(of(4), of(4))
    stays = {"0", "1", "all", *(device.uuid for device in of(2).devices)}
    seen: list[bool] = []

    def around(_: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        result = call(*arguments)
        seen.append(stays <= scene.names())
        return result

    with around_calls(around):
        scene.wave(of(4), of(2))
        scene.wave(of(2), of(4))
    assert len(seen) > 20
    assert all(seen)


def test_a_new_driver_release_changes_no_spec(scene: Scene) -> None:
    scene.wave(of(2), of(2))
    before = scene.specs()
    with recorded() as calls:
        asyncio.run(scene.cri.narrow((of(2), FACTS), (of(2, "580.65.06"), FACTS)))
    assert calls == []
    scene.wave(of(2), of(2, "580.65.06"))
    assert scene.specs() == before


@pytest.mark.parametrize(("old", "new"), [(of(2), of(2, cut=2)), (of(2, cut=2), of(2)), (of(2, cut=3), of(2, cut=1))])
def test_a_partition_moves_with_its_gpus_caps(scene: Scene, old: State, new: State) -> None:
    scene.wave(old, old)
    scene.wave(old, new)
    uuids = {
        compute.uuid for gpu in new.mig.gpus for instance in gpu.gpu_instances for compute in instance.compute_instances
    }
    assert {name for name in scene.names() if name.startswith("MIG-")} == uuids


def test_what_somebody_removed_comes_back_and_is_not_made_by_narrowing(scene: Scene) -> None:
    scene.wave(of(2), of(2))
    whole = scene.specs()
    (scene.root / "run/cdi/nvidia.yaml").unlink()
    asyncio.run(scene.cri.narrow((of(2), FACTS), (of(1), FACTS)))
    assert set(scene.specs()) == {"run/cdi/simnode.yaml"}
    asyncio.run(scene.cri.apply(of(2), FACTS))
    assert scene.specs() == whole


def test_what_an_earlier_agent_published_is_narrowed_too(scene: Scene) -> None:
    scene.wave(of(4), of(4))
    scene.agent()
    asyncio.run(scene.cri.narrow((of(2), FACTS), (of(2), FACTS)))
    assert scene.names() == {"0", "1", "all", *(device.uuid for device in of(2).devices)}


def test_revoking_leaves_the_host_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "etc/cdi").mkdir(parents=True)
    (tmp_path / "etc/cdi/other.yaml").write_text("{}")
    scene = Scene(tmp_path, "etc/cdi", "run/cdi")
    before = picture(tmp_path)
    scene.wave(of(2), of(2))
    assert sorted(scene.specs()) == [
        "etc/cdi/nvidia.yaml", "etc/cdi/other.yaml", "etc/cdi/simnode.yaml", "run/cdi/nvidia.yaml",
        "run/cdi/simnode.yaml",
    ]  # fmt: skip
    asyncio.run(scene.cri.revoke())
    asyncio.run(scene.cri.discard())
    scene.others.converge("others", Tree.empty)
    assert picture(tmp_path) == before


def test_anothers_spec_is_left_alone_named_and_keeps_it_from_being_ready(scene: Scene) -> None:
    (scene.root / "run/cdi").mkdir()
    foreign = scene.root / "run/cdi/nvidia.yaml"
    foreign.write_text('{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": []}')
    with pytest.raises(ConvergeError, match="run/cdi/nvidia"):
        scene.wave(of(2), of(2))
    assert not scene.cri.ready()
    asyncio.run(scene.cri.narrow((of(2), FACTS), (of(1), FACTS)))
    asyncio.run(scene.cri.revoke())
    assert foreign.exists()


def holding(content: bytes, size: int = 0) -> Callable[[Path], None]:
    """A file with this content, and zeros behind it up to a size."""

    def write(path: Path) -> None:
        path.write_bytes(content)
        os.truncate(path, max(len(content), size))

    return write


PLANTED: dict[str, Callable[[Path], None]] = {
    "FIFO": os.mkfifo,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "circle": lambda path: path.symlink_to(path.name),
    "directory": Path.mkdir,
    "huge": holding(b"{", 1 << 40),
    "deep": holding(b'{"devices": ' + b"[" * 100_000),
    "no JSON": holding(b"\xff\x00"),
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_what_somebody_planted_for_a_spec_is_named_and_never_waited_for(
    scene: Scene, plant: Callable[[Path], None]
) -> None:
    """Nor read to an end that it does not have."""
    (scene.root / "run/cdi").mkdir()
    plant(scene.root / "run/cdi/nvidia.yaml")
    before = (scene.root / "run/cdi/nvidia.yaml").lstat()
    with pytest.raises(ConvergeError) as raised:
        scene.wave(of(2), of(2))
    assert [error.path for error in raised.value.errors] == ["run/cdi/nvidia.yaml"]
    asyncio.run(scene.cri.narrow((of(2), FACTS), (of(1), FACTS)))
    asyncio.run(scene.cri.revoke())
    assert (scene.root / "run/cdi/nvidia.yaml").lstat() == before
    assert [path.name for path in (scene.root / "run/cdi").iterdir()] == ["nvidia.yaml"]


def test_it_is_ready_once_published(scene: Scene) -> None:
    scene.stage(of(1))
    assert not scene.cri.ready()
    asyncio.run(scene.cri.apply(of(1), FACTS))
    assert scene.cri.ready()
    asyncio.run(scene.cri.revoke())
    assert not scene.cri.ready()


def test_applying_what_is_right_changes_nothing(scene: Scene) -> None:
    scene.wave(of(3), of(3))
    with recorded() as calls:
        asyncio.run(scene.cri.apply(of(3), FACTS))
    assert calls == []
