"""The documentation is true where a machine can tell: links lead somewhere, commands and options are the program's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from simnode.cli.host import agent, clean

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")])
SIMNODE = Path(sys.executable).parent / "simnode"

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```\w*\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_CALL = re.compile(r"(?:^|[\s$])(?:\.venv/bin/)?simnode ([a-z][^#]*)")
_COMMAND = re.compile(r"[a-z]+")
_OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]+")
_VARIABLE = re.compile(r"SIMNODE_[A-Z_]+")

GROUPS = ("profile", "fault")
FOREIGN = ("--version", "--query-gpu")
"""Options of other programs that the pages name."""

each_page = pytest.mark.parametrize("path", PAGES, ids=[page.name for page in PAGES])


@cache
def told(*command: str) -> str:
    """The help of a command, from the program itself."""
    done = subprocess.run([SIMNODE, *command, "--help"], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


def options(text: str) -> set[str]:
    return set(re.findall(r"--[a-z][a-z-]+", text))


def code(text: str) -> tuple[list[str], list[str]]:
    """The lines of all code blocks, and the spans of code in the text around them."""
    lines = [line for block in _FENCE.findall(text) for line in block.splitlines()]
    return lines, _SPAN.findall(_FENCE.sub("", text))


def calls(text: str) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every `simnode COMMAND` in code, and the options that it is given; `a | b` names several commands."""
    lines, spans = code(text)
    for piece in [*lines, *spans]:
        call = _CALL.search(piece)
        if not call or piece.startswith(("GPU ", "NAME ")):
            continue
        words = call[1].partition(" -- ")[0].split()
        group = (words.pop(0),) if words[0] in GROUPS and words[1:] and _COMMAND.fullmatch(words[1]) else ()
        yield (*group, words.pop(0)), set(_OPTION.findall(" ".join(words)))
        while words[:1] == ["|"]:
            yield (*group, words[1]), set()
            del words[:2]


def anchors(text: str) -> set[str]:
    """What headings are linked by: lower case, words joined by dashes, no punctuation."""
    titles = re.findall(r"^#+ (.*)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@each_page
def test_every_link_inside_the_project_leads_somewhere(path: Path) -> None:
    """To a file that is there, and to a heading that it has."""
    for link in _LINK.findall(_FENCE.sub("", path.read_text())):
        file, _, heading = link.partition("#")
        if not file.startswith("https:"):
            target = path.parent / file if file else path
            assert target.exists(), link
            assert not heading or heading in anchors(target.read_text()), link


@each_page
def test_every_command_that_is_named_is_one_and_takes_these_options(path: Path) -> None:
    for command, given in calls(path.read_text()):
        assert given <= options(told(*command)), command


@each_page
def test_every_option_that_is_named_alone_is_one_of_some_command(path: Path) -> None:
    known = set(FOREIGN)
    for command in documented():
        known |= options(told(*command))
    _, spans = code(path.read_text())
    named = {option for span in spans if span.startswith("--") for option in _OPTION.findall(span)}
    assert named <= known


def documented() -> set[tuple[str, ...]]:
    return {command for page in PAGES for command, _ in calls(page.read_text())}


def test_every_command_is_documented() -> None:
    """The commands of groups, too."""
    top = re.findall(r"^  ([a-z]+) {2,}", told().partition("Commands:")[2], re.MULTILINE)
    below = re.findall(r"^ *([a-z]+) {2,}", told("profile").partition("Commands:")[2], re.MULTILINE)
    faults = re.findall(r"^([a-z]+) {2,}", told("fault"), re.MULTILINE)
    assert len(top) > 10
    assert below and faults
    wanted: set[tuple[str, ...]] = {(name,) for name in top if name not in GROUPS}
    wanted |= {("profile", name) for name in below} | {("fault", name) for name in faults}
    assert wanted <= documented()


def test_the_table_of_the_agents_options_is_whole() -> None:
    """Every option with its variable, and no other."""
    text = (REPOSITORY / "docs/agent.md").read_text().partition("\n## Options\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `--")]
    named = {frozenset(options(first)): frozenset(_VARIABLE.findall(second)) for first, second in rows}
    pairs = {(option, variable) for first, second in named.items() for option in first for variable in second}
    for parameter in (*agent.params, *clean.params):
        for option in (*parameter.opts, *parameter.secondary_opts):
            assert (option, parameter.envvar) in pairs
    known = {option for parameter in agent.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert set().union(*named) == known


@each_page
def test_lines_are_no_wider_than_130(path: Path) -> None:
    assert [line for line in path.read_text().splitlines() if len(line) > 130] == []
