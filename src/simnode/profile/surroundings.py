"""The environment's part of a State: who the node is, and the variables for what no profile of others names."""

from __future__ import annotations

from collections.abc import Mapping

from simnode.profile.document import Node, find
from simnode.profile.faults import Fault, quoted
from simnode.profile.schema import DRIVER_MAJORS, STATE_DIR
from simnode.state import NodeMeta

# What a runtime change of a section's key decides, whatever the environment says.
_SHADOWS = {
    "system.driver_version": ("DRIVER_VERSION",),
    "system.num_devices": ("GPU_COUNT",),
    "fabricmanager": ("SIMNODE_FABRICMANAGER_STATE_DIR",),
    "imex.enabled": ("SIMNODE_IMEX",),
    "imex.imex_major": ("SIMNODE_IMEX_MAJOR",),
    "imex.caps_major": ("SIMNODE_CAPS_MAJOR",),
    "mig.caps_major": ("SIMNODE_CAPS_MAJOR",),
}


def shadowed(environ: Mapping[str, str], sections: Node) -> Mapping[str, str]:
    """`environ` less the variables that the overridden `sections` beat."""
    beaten = {name for key, names in _SHADOWS.items() if find(sections, key) is not None for name in names}
    return {name: value for name, value in environ.items() if name not in beaten} if beaten else environ


class Surroundings:
    """The environment's part of a State; what is wrong with a variable is a fault that names it."""

    def __init__(self, environ: Mapping[str, str], faults: list[Fault]) -> None:
        self._environ = environ
        self._faults = faults

    def node(self) -> NodeMeta:
        return NodeMeta(self._host_name("NODE_NAME"), self._host_name("HOSTNAME"))

    def flag(self, name: str) -> bool | None:
        written = self._environ.get(name, "")
        words = {"true": True, "1": True, "false": False, "0": False}
        if written and written.lower() not in words:
            self._fault(name, f"must be true or false, not {quoted(written)}")
        return words.get(written.lower())

    def major(self, name: str) -> int | None:
        written = self._environ.get(name, "")
        if not written:
            return None
        if not (written.isascii() and written.isdigit() and len(written) <= 4 and 1 <= int(written) <= 4095):
            self._fault(name, f"must be a device major from 1 to 4095, not {quoted(written)}")
            return None
        if int(written) in DRIVER_MAJORS:
            self._fault(name, f"must not be {written}, the major of {DRIVER_MAJORS[int(written)]}")
        return int(written)

    def directory(self, name: str) -> str:
        written = self._environ.get(name, "").strip()
        if written and (STATE_DIR.pattern is None or not STATE_DIR.pattern.fullmatch(written)):
            self._fault(name, f"must be {STATE_DIR.expect}, not {quoted(written)}")
        return written

    def _host_name(self, name: str) -> str:
        written = self._environ.get(name, "")
        if len(written) > 253 or "/" in written or not written.isprintable() or written in (".", ".."):
            self._fault(name, f"must be a host's name, not {quoted(written)}")
        return written

    def _fault(self, name: str, message: str) -> None:
        self._faults.append(Fault("environment", name, None, message))
