"""What every value of the State is made from."""

from __future__ import annotations

import msgspec


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A frozen value that can be compared, hashed and serialised."""
