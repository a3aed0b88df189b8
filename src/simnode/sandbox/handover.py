"""What the launcher hands to the agent of a local node: the State, and what it takes to change it."""

from __future__ import annotations

import msgspec

from simnode.profile import Options
from simnode.state import State


class Handover(msgspec.Struct, frozen=True):
    """`state` is what `document` gives with `options` in the launcher's environment, which the agent has too.

    `follow`: the file that `document` was read from, if the node is to follow its edits; "" if not.
    """

    state: State
    options: Options
    document: bytes
    follow: str = ""

    def encoded(self) -> bytes:
        """As it goes through the descriptor."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decoded(cls, raw: bytes) -> Handover:
        """What was encoded."""
        return msgspec.msgpack.decode(raw, type=cls)
