"""What may be asked of a running node through its control socket, and how each is answered.

`set`, `reset`, `fault-inject` and `fault-clear` change the overrides; `get`, `fault-list` and `status` only ask. A GPU
is named by its index, its UUID or "all"; `set` and `reset` without one mean the node's own sections and everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from simnode.agent.failures import Failures
from simnode.contracts import Probe
from simnode.control_client import FAILED, REFUSED
from simnode.profile import Compiler, Overrides, ProfileError
from simnode.profile.changes import FAILURE, LOADED, Target, assign, clear, inject, laid, reset, unskewed
from simnode.profile.document import Node, find, plain
from simnode.profile.faults import Fault, UnknownKey
from simnode.profile.inert import DEVICE_KEYS, NODE_KEYS, note, without_effect
from simnode.profile.keys import wrong_key
from simnode.profile.overrides import assignments, merge
from simnode.profile.schema import DERIVED, DEVICE, DEVICE_DEFAULTS, NODE_SECTIONS, U32
from simnode.profile.shapes import MOST_ADVISED, Table, number, text
from simnode.refusals import told
from simnode.sources.file import FileSource
from simnode.state import DeviceRuntime, DeviceSpec, State
from simnode.threads import in_thread

GPU = int | str
Mode = Literal["lost", "fallen_off_bus", "ecc_uncorrectable"]

# What the driver reports beside the fault itself (NVIDIA's XID catalogue): fallen off the bus, double-bit ECC error.
_XIDS: dict[str | None, int] = {"fallen_off_bus": 79, "ecc_uncorrectable": 48}
_LOG = logging.getLogger("simnode.control")
_PATIENCE = 45.0
_SHORT = 512  # bytes of a request that nobody needs a thread of its own for
_OTHER_VERSIONS = ("535.261.03", "550.163.01")
_WAITING = "after_calls/probability have no effect yet"

_NO_OVERRIDES = Overrides()

Answer = dict[str, object]


class _Order(Struct, frozen=True, tag_field="verb", forbid_unknown_fields=True):
    """A request; what it lacks has a default, what it has too much is refused."""


class Set(_Order, frozen=True, tag="set"):
    """Lay KEY=VALUE texts over a GPU, or over the node's own sections."""

    assignments: tuple[str, ...]
    gpu: GPU | None = None


class Get(_Order, frozen=True, tag="get"):
    """The values of keys, or all that a GPU has; without a GPU, keys of the node's own sections are theirs."""

    gpu: GPU | None = None
    keys: tuple[str, ...] = ()


class Reset(_Order, frozen=True, tag="reset"):
    """Forget what was laid over a GPU or over everything; only these keys if any are given."""

    gpu: GPU | None = None
    keys: tuple[str, ...] = ()


class Inject(_Order, frozen=True, tag="fault-inject"):
    """Make a GPU fail. Without a mode only the XID is raised; without an XID the mode's own, if it has one."""

    gpu: GPU
    mode: Mode | None = None
    xid: Annotated[int, Meta(ge=0, le=U32)] | None = None


class Skew(_Order, frozen=True, tag="fault-skew"):
    """Let the kernel modules be another driver's than the libraries; without a version, of one that we choose."""

    version: str | None = None


class Clear(_Order, frozen=True, tag="fault-clear"):
    """End a GPU's fault, whatever layer it comes from; "all" ends the node's own, too."""

    gpu: GPU = "all"


class Faults(_Order, frozen=True, tag="fault-list"):
    """The GPUs that fail, and how."""


class Status(_Order, frozen=True, tag="status"):
    """What the node is and how it does."""


_ORDERS = msgspec.json.Decoder(Set | Get | Reset | Inject | Skew | Clear | Faults | Status)


class Managed(Protocol):
    """What is asked of the agent."""

    async def settled(self, generation: int) -> Failures:
        """Return once a State of this generation or a later one can be read, or why not."""

    def liveness(self) -> Probe:
        """Whether the latest stage wave went well."""

    def readiness(self) -> Probe:
        """Whether everything is staged, published and served."""

    def staged(self) -> Probe:
        """Whether the whole tree is there."""


class OrderError(Exception):
    """Raised by `carry_out`: a request that is wrong (`code` REFUSED) or could not be met (FAILED), a line a reason."""

    def __init__(self, reasons: tuple[str, ...], code: int) -> None:
        super().__init__(*reasons)
        self.reasons = reasons
        self.code = code


async def answered(orders: Orders, line: bytes) -> Answer:
    """The answer to one request as it came in; what is wrong with it is an answer, too."""
    try:
        return {"ok": True, **await orders.carry_out(line)}
    except OrderError as error:
        return {"ok": False, "code": error.code, "faults": error.reasons}
    except ProfileError as error:
        return {"ok": False, "code": REFUSED, "faults": [str(fault) for fault in error.faults]}
    except OSError as error:
        return {"ok": False, "code": FAILED, "faults": [f"cannot be stored: {told(error)}"]}
    except Exception as error:
        _LOG.exception("a request through the control socket cannot be carried out")
        return {"ok": False, "code": FAILED, "faults": [f"cannot be carried out: {type(error).__name__}: {error}"]}


class Orders:
    """Carries out requests on the source of a node and the agent that keeps it."""

    def __init__(self, source: FileSource, agent: Managed) -> None:
        self._source = source
        self._agent = agent

    async def carry_out(self, line: bytes) -> Answer:
        """The answer to a request. Raises OrderError, ProfileError, or OSError for what cannot be stored."""
        try:
            order = _ORDERS.decode(line)
        except msgspec.MsgspecError as error:
            raise OrderError((f"no request: {error}",), REFUSED) from None
        match order:
            case Get():
                return await self._source.ask(partial(_values, order))
            case Faults():
                return await self._source.ask(_faults)
            case Status():
                known = await self._source.ask(_status)
                return {**known, "health": self._health(), "source_error": self._source.error}
        return await self._change(order, short=len(line) <= _SHORT)

    async def _change(self, order: Set | Reset | Inject | Skew | Clear, *, short: bool) -> Answer:
        if isinstance(order, Reset) and order.gpu is None and not order.keys:
            state = await self._source.start_over()
            await self._published(state.generation)
            return {"generation": state.generation}
        if isinstance(order, Skew):
            order = Set((f"{LOADED}={await self._other_version(order)}",))
        patches: list[Node] = []
        if isinstance(order, Set) and not short:
            patches.append(await in_thread(partial(_patch, order)))

        def edit(compiler: Compiler, state: State, old: Overrides) -> Overrides:
            if isinstance(order, Set):
                if not patches:
                    patches.append(_patch(order))
                return assign(old, "node" if order.gpu is None else _target(state, order.gpu), patches[0])
            if isinstance(order, Reset):
                aim = None if order.gpu is None else _target(state, order.gpu, old)
                unlaid = [key for key in order.keys if not laid(old, key)]
                _refuse_unknown("reset", unlaid, order.gpu, DEVICE_DEFAULTS)
                return reset(old, aim, order.keys)
            target = _target(state, order.gpu, old if isinstance(order, Clear) else _NO_OVERRIDES)
            if isinstance(order, Inject):
                xid = _XIDS.get(order.mode) if order.xid is None else order.xid or None
                if order.mode is None and xid is None:
                    raise OrderError(
                        ("a fault is a mode (lost, fallen_off_bus, ecc_uncorrectable), an XID, or both",), 2
                    )
                return inject(old, target, order.mode, xid, self._source.next_generation)
            there = range(len(state.devices))
            indices = there if target == "all" else [index for index in there if index == target]
            bare = Overrides(node=old.node)
            below = any(find(compiler.effective(index, bare), FAILURE) is not None for index in indices)
            if target == "all":
                old = unskewed(old, below=find(compiler.document.root, LOADED) is not None)
            return clear(old, target, below=below)

        state = await self._source.change(edit)
        await self._published(state.generation)
        return {"generation": state.generation, **(_notes(order.gpu, patches[0]) if isinstance(order, Set) else {})}

    async def _other_version(self, order: Skew) -> str:
        """That of the order, else one that is not the driver's. Raises OrderError for the driver's own."""
        driver = (await self._source.ask(_status))["driver_version"]
        if order.version == driver:
            raise OrderError((f"{driver} is the version of the libraries: there is no skew",), REFUSED)
        return order.version or next(version for version in _OTHER_VERSIONS if version != driver)

    async def _published(self, generation: int) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                failures = await self._agent.settled(generation)
        except TimeoutError:
            why = self._agent.readiness().check().reason or "it is busy"
            reason = f"stored, but the node has not taken it within {_PATIENCE:g} s ({why}); it goes on trying"
            raise OrderError((reason,), FAILED) from None
        if failures:
            raise OrderError(tuple(f"stored, but not published yet: {failure}" for failure in failures), FAILED)

    def _health(self) -> Answer:
        probes = {
            "live": self._agent.liveness(),
            "ready": self._agent.readiness(),
            "staged": self._agent.staged(),
        }
        health = {name: probe.check() for name, probe in probes.items()}
        return {
            name: {
                "ok": answer.ok,
                "reason": answer.reason,
                "components": {part: {"ok": ok, "reason": why} for part, (ok, why) in answer.components.items()},
            }
            for name, answer in health.items()
        }


def _patch(order: Set) -> Node:
    if not order.assignments:
        raise OrderError(("nothing to set: give KEY=VALUE, such as thermal.temperature_gpu_c=91",), REFUSED)
    try:
        return assignments(order.assignments, "set", NODE_SECTIONS if order.gpu is None else DEVICE_DEFAULTS)
    except ProfileError as error:
        advised = [_advised(fault, order.gpu, advise=at < MOST_ADVISED) for at, fault in enumerate(error.faults)]
        raise ProfileError(tuple(advised)) from None


def _notes(gpu: GPU | None, patch: Node) -> Answer:
    """What is to be said of a change that was made: which of its keys have no effect."""
    said = note(without_effect(patch, NODE_KEYS if gpu is None else DEVICE_KEYS))
    return {"notes": [f"set: {said}"]} if said else {}


def _advised(fault: Fault, gpu: GPU | None, *, advise: bool) -> Fault:
    """`fault`; of a key that belongs elsewhere, it says where; `advise`: also of one that may be meant there."""
    if not isinstance(fault, UnknownKey):
        return fault
    if gpu is None:
        shape, place = DEVICE_DEFAULTS, "is a GPU's value: add --gpu N or --gpu all"
    else:
        shape, place = NODE_SECTIONS, "is the node's own value: leave out --gpu"
    there = wrong_key(fault.key, shape, advise=advise)
    if not there:
        return replace(fault, message=place)
    better = there.endswith("?") and not fault.message.endswith("?")
    return replace(fault, message=f"{there} It {place}") if better else fault


def _refuse_unknown(verb: str, keys: Iterable[str], gpu: GPU | None, shape: Table) -> None:
    """Raises ProfileError for keys that neither a GPU's `shape` has nor, where no GPU is named, the node."""
    faults: list[Fault] = []
    for key in keys:
        advise = len(faults) < MOST_ADVISED
        wrong = wrong_key(key, shape, advise=advise)
        if wrong and gpu is None and key.partition(".")[0] in NODE_SECTIONS.keys:
            wrong = wrong_key(key, NODE_SECTIONS, advise=advise)
        if wrong:
            fault = UnknownKey(verb, key, None, wrong)
            faults.append(_advised(fault, "all" if gpu is None else gpu, advise=advise))
    if faults:
        raise ProfileError(tuple(faults))


def _target(state: State, gpu: GPU, overrides: Overrides = _NO_OVERRIDES) -> Target:
    """The bucket of a GPU. Raises OrderError if there is no such one.

    One that the node no longer has may still have something laid over it in `overrides`; it goes by its index then.
    """
    written = str(gpu)
    if written.casefold() == "all":
        return "all"
    for device in state.devices:
        if written == str(device.index) or written.casefold() == device.uuid.casefold():
            return device.index
    for index in overrides.devices:
        if written == str(index):
            return index
    count = len(state.devices)
    known = f"it has 0 to {count - 1}" if count else "it has none"
    raise OrderError(
        (f"the node has no GPU {msgspec.json.encode(written).decode()}: {known}, or give a UUID or all",), 2
    )


def _indices(state: State, gpu: GPU) -> tuple[int, ...]:
    target = _target(state, gpu)
    return (target,) if isinstance(target, int) else tuple(range(len(state.devices)))


def _values(order: Get, compiler: Compiler, overrides: Overrides, state: State) -> Answer:
    indices = _indices(state, "all" if order.gpu is None else order.gpu)
    trees = {index: compiler.effective(index, overrides) for index in indices}
    held = {key for key in order.keys for tree in trees.values() if find(tree, key) is not None}
    _refuse_unknown("get", [key for key in order.keys if key not in held and key not in DERIVED], order.gpu, DEVICE)
    own = [key for key in order.keys if order.gpu is None and not wrong_key(key, NODE_SECTIONS, advise=False)]
    keys = [key for key in order.keys if key not in own]
    found = {}
    for index, tree in trees.items() if keys or not own else ():
        device, runtime = state.devices[index], state.runtime.devices[index]
        found[str(index)] = {key: _value(key, tree, device, runtime) for key in keys} or _told(tree)
    root = merge(compiler.document.root, overrides.node)
    return {"devices": found, "node": {key: _own_value(key, root, state) for key in own}}


def _own_value(key: str, root: Node, state: State) -> object:
    """A value of the node's own sections: what the node is where an option or the environment may say so, too."""
    node = find(root, key)
    said = None if node is None else plain(node)
    software = state.software
    major, minor = software.cuda_version.split(".")[:2]
    actual: dict[str, object] = {
        "driver_version": software.driver_version,
        "nvml_version": software.nvml_version,
        "cuda_version": software.cuda_version,
        "cuda_version_major": int(major),
        "cuda_version_minor": int(minor),
        "num_devices": len(state.devices),
    }
    if key == "system":
        return {**(said if isinstance(said, dict) else {}), **actual}
    return actual.get(key.removeprefix("system."), said) if key.startswith("system.") else said


def _value(key: str, keys: Node, device: DeviceSpec, runtime: DeviceRuntime) -> object:
    """What the documents say, else what follows from them, else null."""
    identity = {"uuid": device.uuid, "serial": device.serial, "pci.bus_id": device.pci_bus_id, "index": device.index}
    identity["minor_number"] = device.minor_number
    if key in identity:
        return identity[key]
    node = find(keys, key)
    return _told(node) if node is not None else msgspec.to_builtins(dict(runtime.values).get(key))


def _told(node: Node) -> object:
    """The value; without what is unset below it."""
    if isinstance(node.value, dict):
        return {key: _told(child) for key, child in node.value.items() if child.value is not None}
    return plain(node)


def _faults(compiler: Compiler, overrides: Overrides, state: State) -> Answer:
    return {"faults": [*_failing(compiler, overrides, state), *_skewed(state)]}


def _skewed(state: State) -> list[Answer]:
    """The fault that is the node's own."""
    loaded = state.software.loaded_version
    fault: Answer = {"gpu": None, "uuid": None, "mode": "version_skew", "xid": None, "waiting": None}
    return [{**fault, "loaded_version": loaded, "driver_version": state.software.driver_version}] if loaded else []


def _failing(compiler: Compiler, overrides: Overrides, state: State) -> list[Answer]:
    listed: list[Answer] = []
    for device in state.devices:
        failure = find(compiler.effective(device.index, overrides), FAILURE)
        mode, xid = text(find(failure, "mode")), number(find(failure, "xid.code"))
        if failure is not None and mode != "healthy" and (mode or xid is not None):
            waiting = number(find(failure, "after_calls")) or find(failure, "probability") is not None
            listed.append(
                {
                    "gpu": device.index,
                    "uuid": device.uuid,
                    "mode": mode or None,
                    "xid": xid,
                    "waiting": _WAITING if waiting else None,
                }
            )
    return listed


def _status(compiler: Compiler, overrides: Overrides, state: State) -> Answer:
    failing = {fault["gpu"]: fault for fault in _failing(compiler, overrides, state)}
    return {
        "generation": state.generation,
        "driver_version": state.software.driver_version,
        "cuda_version": state.software.cuda_version,
        "loaded_version": state.software.kernel_version,
        "overridden": bool(overrides),
        "gpus": [
            {
                "index": device.index,
                "name": device.name,
                "uuid": device.uuid,
                "pci_bus_id": device.pci_bus_id,
                "fault": failing.get(device.index),
            }
            for device in state.devices
        ],
    }
