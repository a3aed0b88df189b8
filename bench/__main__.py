"""`make bench`: every number that simnode holds beside its bound; exit 1 if one is missed or cannot be taken."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "native"))
from bench import measure
from bench.rows import GROUPS


def main() -> int:
    """Measure and print, group by group."""
    missed = 0
    for group in GROUPS:
        try:
            for row in group():
                held = row.value <= row.bound
                missed += not held
                numbers = f"{row.value:9.2f} {row.unit:4} <= {row.bound:6.2f}  {'ok    ' if held else 'MISSED'}"
                print(f"{row.name:56} {numbers}  {row.against}".rstrip(), flush=True)
        except measure.Failed as error:
            missed += 1
            print(f"{group.__name__}: not measured: {error}", flush=True)
    print(f"{missed} missed" if missed else "all held")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
