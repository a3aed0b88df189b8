"""Texts written in place: the inode stays, and what somebody made of the file is neither loaded nor kept."""

from __future__ import annotations

import os
from pathlib import Path

from simnode.host import livetexts


def test_a_text_that_somebody_made_huge_is_put_right_without_reading_it(root: Path) -> None:
    file = root / "text"
    file.write_bytes(b"text")
    before = file.stat().st_ino
    os.truncate(file, 1 << 40)
    assert livetexts.differ(root, {"text": b"text"})
    livetexts.write(root, {"text": b"text"})
    assert (file.read_bytes(), file.stat().st_ino) == (b"text", before)
    assert not livetexts.differ(root, {"text": b"text"})
