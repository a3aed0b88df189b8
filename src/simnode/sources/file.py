"""The source of a node that is described by documents: a profile, a topology, a MIG table, and the overrides over them.

Documents in files are watched, settled and compared by content; one that is wrong gives one error, and the last good
State stays in force. Overrides change through `change` too: it answers once the change is valid and stored, and the
new State is in the stream. A local node's profile was read before the agent started; it comes as bytes and with the
State that was compiled from it, so that a node which nobody changes never compiles anything.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from simnode.contracts import Update
from simnode.profile.catalogue import load_text
from simnode.profile.compile import Compiler, Options, lacking
from simnode.profile.faults import Fault, ProfileError, in_order
from simnode.profile.overrides import Overrides
from simnode.profile.reading import read
from simnode.profile.store import OverrideStore
from simnode.profile.topology import Topology, load_topology
from simnode.refusals import told
from simnode.sources.fixed import utc_now
from simnode.sources.generation import Generation
from simnode.sources.watching import Watching
from simnode.state import State
from simnode.threads import in_thread

T = TypeVar("T")

OVERRIDES = "state/overrides.yaml"
GENERATION = "state/generation"
"""Where the two are kept, below the node root."""
MIG_PROFILES = "mig-profiles.yaml"
"""The MIG table, beside the profile."""


class Inputs(Struct, frozen=True):
    """Where the documents are: a path, or the bytes of one that was read already. `overrides` is always a path."""

    config: Path | bytes
    overrides: Path
    topology: Path | bytes = b""
    mig_profiles: Path | bytes = b""


class Times(Struct, frozen=True):
    """Seconds: from the first sign of a change to the look, between looks, and between looks without inotify.

    `warm_up`: from a State that was given to compiling its document, so that the first change need not wait for it.
    `put_off`: how long changes through `change`, which stir the directory, too, may put off a look they need not.
    """

    settle: float = 0.1
    poll: float = 60.0
    blind_poll: float = 5.0
    warm_up: float = 1.0
    put_off: float = 1.0


_TIMES = Times()


class _Contents(Struct, frozen=True):
    config: bytes
    topology: bytes
    mig_profiles: bytes
    overrides: bytes | None = None


class FileSource:
    """Compiles `inputs`; one `watch` at a time. `initial` is what they give without any overrides, if that is known.

    `generation`: the file that keeps the number of the State. Unknown keys are warnings in `log`.
    """

    def __init__(
        self,
        inputs: Inputs,
        options: Options,
        environ: Mapping[str, str],
        generation: Path,
        log: logging.Logger,
        *,
        initial: State | None = None,
        now: Callable[[], datetime] = utc_now,
        times: Times = _TIMES,
    ) -> None:
        self._inputs = inputs
        self._options = options
        self._environ = environ
        self._store = OverrideStore(inputs.overrides)
        self._generation = Generation(generation)
        self._log = log
        self._initial = initial
        self._now = now
        self._times = times
        self._busy = asyncio.Lock()
        self._news = asyncio.Event()
        self._updates: deque[Update] = deque()
        self._closed = False
        self._changed_at = -math.inf
        self._seen: _Contents | str | None = None
        self._error = ""
        self._compiler: Compiler | None = None
        self._overrides = Overrides()
        self._state: State | None = None

    async def watch(self) -> AsyncIterator[Update]:
        """The State or what is wrong, at once, then every change; ends when the source is closed."""
        loop = asyncio.get_running_loop()
        paths = (self._inputs.config, self._inputs.topology, self._inputs.mig_profiles, self._inputs.overrides)
        watching = Watching((path for path in paths if isinstance(path, Path)), self._log)
        look_at = stirred_at = loop.time()
        settled_at: float | None = None
        await in_thread(self._store.sweep)
        try:
            while not self._closed:
                if settled_at is not None and loop.time() >= settled_at:
                    settled_at = min(self._changed_at + self._times.settle, stirred_at + self._times.put_off)
                    if settled_at <= loop.time():
                        settled_at = None
                        if watching.changed():
                            look_at = loop.time()
                if loop.time() >= look_at:
                    async with self._busy:
                        await in_thread(partial(self._look, watching))
                    look_at = loop.time() + self._interval(watching)
                while self._updates:
                    yield self._updates.popleft()
                if self._closed:
                    break
                if settled_at is not None:
                    await self._wait(min(look_at, settled_at))
                elif await self._wait(look_at, watching.descriptor):
                    stirred_at = loop.time()
                    settled_at = stirred_at + self._times.settle
        finally:
            watching.close()

    async def close(self) -> None:
        """End the stream."""
        self._closed = True
        self._news.set()

    async def change(self, edit: Callable[[Compiler, State, Overrides], Overrides]) -> State:
        """Make what `edit` makes of the overrides valid and stored, and return the State that it gives.

        The stream has it then, too. Raises ProfileError for what is wrong with it, OSError if it cannot be stored, and
        whatever `edit` raises; nothing is changed then.
        """
        return await self._changed(partial(self._change, edit))

    async def start_over(self) -> State:
        """Forget all overrides, even those of a file that is wrong, and return the State without any.

        Raises ProfileError if there never was a good profile, OSError if it cannot be stored.
        """
        return await self._changed(self._start_over)

    async def _changed(self, made: Callable[[], State]) -> State:
        async with self._busy:
            state = await in_thread(made)
            self._changed_at = asyncio.get_running_loop().time()
            self._updates.append(Update(at=self._now(), state=state))
            if self._error:
                self._updates.append(Update(at=self._now(), error=self._error))
            self._news.set()
            return state

    async def ask(self, question: Callable[[Compiler, Overrides, State], T]) -> T:
        """What `question` answers about the documents in force. Raises ProfileError if none ever was."""
        async with self._busy:
            return await in_thread(lambda: question(self._ready(), self._overrides, self._in_force()))

    @property
    def error(self) -> str:
        """What is wrong with the documents as they are, so that older ones are in force; "" if nothing is."""
        return self._error

    @property
    def next_generation(self) -> int:
        """The number that the next change gets."""
        return self._generation.value + 1

    async def _wait(self, until: float, descriptor: int = -1) -> bool:
        """Return at `until`, when there is news, or when `descriptor` is readable; true for the last."""
        loop = asyncio.get_running_loop()
        stirred = False

        def stir() -> None:
            nonlocal stirred
            stirred = True
            self._news.set()

        if descriptor >= 0:
            loop.add_reader(descriptor, stir)
        try:
            async with asyncio.timeout_at(until):
                await self._news.wait()
        except TimeoutError:
            pass
        finally:
            if descriptor >= 0:
                loop.remove_reader(descriptor)
        self._news.clear()
        return stirred

    def _interval(self, watching: Watching) -> float:
        if self._compiler is None and self._state is not None:
            return self._times.warm_up
        uncertain = watching.blind or isinstance(self._seen, str)
        return self._times.blind_poll if uncertain else self._times.poll

    def _look(self, watching: Watching) -> None:
        """Read everything again; whatever is new goes into the stream."""
        watching.attach()
        first = self._seen is None
        try:
            contents = self._read()
        except ProfileError as error:
            self._unreadable(str(error))
            return
        if contents == self._seen:
            if self._compiler is None and not self._error:
                self._ready()
            return
        self._seen = contents
        try:
            if first and self._initial is not None and contents.overrides is None:
                state = self._initial
            else:
                state = self._compile(contents)
            self._updates.append(Update(at=self._now(), state=self._accept(state)))
            self._error = ""
        except ProfileError as error:
            self._failed(str(error))
        except OSError as error:
            self._unreadable(told(error))

    def _unreadable(self, reason: str) -> None:
        if self._seen != reason:
            self._seen = reason
            self._failed(reason)

    def _failed(self, reason: str) -> None:
        self._error = "; ".join(reason.splitlines())
        self._updates.append(Update(at=self._now(), error=self._error))

    def _read(self) -> _Contents:
        return replace(self._documents(), overrides=self._store.raw())

    def _documents(self) -> _Contents:
        inputs = self._inputs
        try:
            table = _bytes(inputs.mig_profiles)
        except ProfileError:
            table = b""
        return _Contents(_bytes(inputs.config, required=True), _bytes(inputs.topology), table)

    def _compile(self, contents: _Contents) -> State:
        """Raises ProfileError; only what went well is kept. Unknown keys are told in either case: one may be why."""
        unknown: list[Fault] = []
        try:
            state = self._compiled(contents, unknown)
        except ProfileError as error:
            raise ProfileError(in_order([*error.faults, *unknown])) from None
        for fault in unknown:
            self._log.warning("source: %s; it is ignored", fault)
        return state

    def _compiled(self, contents: _Contents, unknown: list[Fault]) -> State:
        """Where no State is in force yet, wrong overrides do not keep the profile from being one."""
        compiler = self._compiler_of(contents, unknown)
        try:
            overrides = self._store.parsed(contents.overrides, unknown)
            state = compiler.compile(overrides)
        except ProfileError:
            if self._state is None:
                self._updates.append(Update(at=self._now(), state=self._accept(compiler.compile())))
                self._compiler = compiler
            raise
        accepted = self._accept(state)
        self._compiler, self._overrides = compiler, overrides
        return accepted

    def _compiler_of(self, contents: _Contents, unknown: list[Fault]) -> Compiler:
        known = self._compiler
        if known is not None and known.document.raw == contents.config:
            document = known.document
        else:
            lacks = lacking(self._options, self._environ)
            document = load_text(contents.config, _name(self._inputs.config, "profile"), unknown, lacks)
        if known is not None and known.topology.raw == contents.topology:
            topology = known.topology
        elif contents.topology:
            topology = load_topology(contents.topology, _name(self._inputs.topology, "topology"), unknown)
        else:
            topology = Topology()
        table = contents.mig_profiles
        same = known is not None and document is known.document and topology is known.topology
        if known is not None and same and table == known.mig_profiles:
            return known
        return Compiler(document, self._options, self._environ, topology, table)

    def _ready(self) -> Compiler:
        """The compiler of the documents in force, made now if only their State was given: that has no overrides."""
        if self._compiler is None:
            self._in_force()
            self._compiler = self._compiler_of(self._documents(), [])
        return self._compiler

    def _in_force(self) -> State:
        if self._state is None:
            reason = self._error or "it has not been read yet"
            raise ProfileError((Fault("profile", "", None, f"there is no good one: {reason}"),))
        return self._state

    def _change(self, edit: Callable[[Compiler, State, Overrides], Overrides]) -> State:
        compiler = self._ready()
        made: list[State] = []

        def valid(old: Overrides) -> Overrides:
            new = edit(compiler, compiler.compile(old), old)
            made.append(compiler.compile(new))
            return new

        overrides = self._store.update(valid)
        state = self._accept(made[0])
        self._overrides = overrides
        if isinstance(self._seen, _Contents):
            self._seen = replace(self._seen, overrides=self._store.latest)
        return state

    def _start_over(self) -> State:
        """The profile in force without overrides; with that, what was wrong with the documents may be right again."""
        state = self._ready().compile()
        self._overrides = self._store.clear()
        if isinstance(self._seen, _Contents):
            self._seen = replace(self._seen, overrides=self._store.latest)
            try:
                state = self._compile(self._seen)
                self._error = ""
            except ProfileError as error:
                self._error = "; ".join(str(error).splitlines())
        return self._accept(state)

    def _accept(self, state: State) -> State:
        """`state` with its number: a new one if it differs from the one in force."""
        if self._state is None or state != self._state:
            self._state = msgspec.structs.replace(state, generation=self._generation.next())
        return self._state


def _bytes(document: Path | bytes, *, required: bool = False) -> bytes:
    """What is in a document; one that may be missing and is has nothing in it. Raises ProfileError."""
    if isinstance(document, bytes):
        return document
    try:
        document.lstat()
    except FileNotFoundError:
        if not required:
            return b""
    except OSError:
        pass
    return read(str(document))


def _name(document: Path | bytes, kind: str) -> str:
    return str(document) if isinstance(document, Path) else kind
