"""Draws the pictures in docs/pictures: what nvtop and nvidia-smi show of a node at work, as SVG text.

    python -m tools.pictures        from the checkout, with what the tests need

The programs run in a real node on a terminal in memory, so a picture is what a user sees, not what somebody drew. Each
run of characters of one colour is one text element, stretched to its columns: any monospaced font gives the same lines.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from pyte.screens import Char, Screen

from tests.consumers import fetch
from tests.consumers.terminal import Terminal

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SIMNODE = Path(sys.executable).parent / "simnode"
ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
SECONDS_OF_HISTORY = 14
WIDTH, HEIGHT, MARGIN, FONT = 8, 17, 14, 13.3
BACKGROUND, FOREGROUND = "#10141a", "#d5dbe3"
COLOURS = {
    "black": "#3b4252",
    "red": "#f2777a",
    "green": "#8fce6a",
    "brown": "#f0c674",
    "blue": "#6fa8dc",
    "magenta": "#c397d8",
    "cyan": "#5fd0d0",
    "white": "#e6ebf2",
}
TRAINING = ("--set", "load.pattern=training")
BURSTS = ("--set", "load={pattern: bursty, period_s: 40}")
PROCESS = "{pid: 4242, name: python3, type: C, used_memory_mib: 71200, sm_util: 96, mem_util: 57}"


def colour(cell: Char) -> tuple[str, str, bool]:
    """Text colour, background colour ("" for the picture's own) and boldness of a cell."""
    text, back = COLOURS.get(cell.fg, FOREGROUND), COLOURS.get(cell.bg, "")
    return (back or BACKGROUND, text, cell.bold) if cell.reverse else (text, back, cell.bold)


def runs(screen: Screen, row: int) -> Iterator[tuple[int, str, tuple[str, str, bool]]]:
    """Column, characters and look of each stretch of one look; blanks on the picture's background are left out."""
    cells = [screen.buffer[row][column] for column in range(screen.columns)]
    column = 0
    for (look, blank), group in itertools.groupby(cells, key=lambda cell: (colour(cell), cell.data == " ")):
        characters = "".join(cell.data for cell in group)
        if look[1] or not blank:
            yield column, characters, look
        column += len(characters)


def svg(title: str, screen: Screen) -> str:
    """The screen with a line above it that says what was typed."""
    rows = max((row for row in range(screen.lines) if screen.display[row].strip()), default=0) + 1
    width, height = screen.columns * WIDTH + 2 * MARGIN, (rows + 2) * HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="{FONT}"'
        f' fill="{FOREGROUND}" xml:space="preserve">',
        f'<text x="{MARGIN}" y="{MARGIN + FONT}"><tspan fill="{COLOURS["green"]}">$</tspan> {escape(title)}</text>',
    ]
    for row in range(rows):
        for column, characters, (text, back, bold) in runs(screen, row):
            x, y, length = MARGIN + column * WIDTH, MARGIN + (row + 2) * HEIGHT, len(characters) * WIDTH
            if back:
                parts.append(f'<rect x="{x}" y="{y}" width="{length}" height="{HEIGHT}" fill="{back}"/>')
            if not characters.isspace():
                fill = "" if text == FOREGROUND else f' fill="{text}"'
                weight = ' font-weight="bold"' if bold else ""
                place = f'x="{x}" y="{round(y + FONT)}" textLength="{length}" lengthAdjust="spacingAndGlyphs"'
                parts.append(f"<text {place}{fill}{weight}>{escape(characters)}</text>")
    return "\n".join([*parts, "</g>", "</svg>", ""])


def take(options: Sequence[str], command: Sequence[str | Path], rows: int, columns: int, seconds: float) -> Screen:
    """The screen of a command in a node after so many seconds, or when it has ended."""
    with Terminal([SIMNODE, "run", *options, "--", *command], ENVIRON, rows=rows, columns=columns) as terminal:
        terminal.after(seconds)
        return terminal.screen


def main() -> int:
    """Draw both; exit 1 with the reason where nvtop cannot be had."""
    found, reasons = fetch.fetch(fetch.cache_directory(os.environ))
    nvtop = found.get("nvtop")
    if nvtop is None:
        print(f"pictures: nvtop: {reasons['nvtop']}", file=sys.stderr)
        return 1
    command: list[str | Path] = ["env", f"LD_LIBRARY_PATH={nvtop.libraries}", nvtop.path, "-d", "5"]
    screen = take(BURSTS, command, 42, 160, SECONDS_OF_HISTORY)
    typed = "simnode run --set 'load={pattern: bursty, period_s: 40}' -- nvtop"
    (PICTURES / "nvtop.svg").write_text(svg(typed, screen))
    options = (*TRAINING, "--set", f"processes=[{PROCESS}]")
    screen = take(options, ["sh", "-c", "sleep 1; nvidia-smi"], 60, 92, 5)
    typed = "simnode run --set load.pattern=training --set 'processes=[{pid: 4242, …}]' -- nvidia-smi"
    (PICTURES / "nvidia-smi.svg").write_text(svg(typed, screen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
