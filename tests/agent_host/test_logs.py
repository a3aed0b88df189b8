"""Log lines: what is in them, and that writing them never holds anybody up."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time

import pytest

from simnode.agent.logs import Lines, Outlet


def record(message: str, level: int = logging.INFO, **fields: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": message, "levelno": level, "levelname": logging.getLevelName(level), **fields})
    made.created = 1767225600.25
    return made


def test_a_json_line_says_when_what_and_about_what() -> None:
    line = Lines("json").format(
        record('no "room"\nleft', logging.ERROR, simulator="gpudriver", surface="driver/dev/nvidia0", generation=7)
    )
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-01-01T00:00:00.250Z",
        "level": "error",
        "message": 'no "room"\nleft',
        "simulator": "gpudriver",
        "surface": "driver/dev/nvidia0",
        "generation": 7,
    }


def test_fields_that_say_nothing_are_left_out() -> None:
    assert json.loads(Lines("json").format(record("a", surface=""))).keys() == {"time", "level", "message"}


def test_a_plain_line_is_one_line() -> None:
    line = Lines("plain").format(record("no room\nleft", logging.WARNING, simulator="nvlink", generation=3))
    assert line == "2026-01-01T00:00:00.250Z warning no room left simulator=nvlink generation=3"


@pytest.mark.parametrize("form", ["json", "plain"])
def test_an_exception_is_told_on_the_same_line(form: str) -> None:
    error = LookupError("gone")
    line = Lines(form).format(record("page", logging.ERROR, exc_info=(LookupError, error, None)))
    assert "\n" not in line
    assert "LookupError: gone" in line


def test_lines_are_written_in_order_and_all_of_them_by_the_end() -> None:
    with tempfile.TemporaryFile("w+") as file:
        outlet = Outlet(file.fileno())
        outlet.setFormatter(logging.Formatter("%(message)s"))
        for number in range(500):
            outlet.handle(record(str(number)))
        outlet.finish(5)
        file.seek(0)
        assert file.read().split() == [str(number) for number in range(500)]


def test_a_pipe_that_nobody_reads_holds_nobody_up_and_what_was_lost_is_told() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    outlet = Outlet(writing, longest_queue=10)
    outlet.setFormatter(logging.Formatter("%(message)s"))
    began = time.monotonic()
    for _ in range(1000):
        outlet.handle(record("x" * 1024))
    outlet.finish(0.05)
    assert time.monotonic() - began < 2
    text = ""
    until = time.monotonic() + 10
    while "were lost" not in text and time.monotonic() < until:
        try:
            text += os.read(reading, 1 << 16).decode()
        except BlockingIOError:
            time.sleep(0.01)
    assert "lines of the log were lost, because nobody took them" in text
    outlet.finish(5)
    os.close(writing)
    os.close(reading)
