"""What a machine lacks is named before anything is tried: one line, with the packages, exit 2."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "preflight.sh"
OLD_PYTHON = '#!/bin/sh\ncase "$*" in *version_info*) exit 1 ;; esac\n'
NO_VENV = '#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\n'
NO_HEADERS = "#!/bin/sh\nexit 1\n"
NO_STATIC = '#!/bin/sh\ncase "$*" in *-static*) exit 1 ;; esac\n'
FINE = "#!/bin/sh\n"


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        pytest.param({"python3": FINE, "cc": FINE, "readelf": FINE}, "", id="nothing"),
        pytest.param(
            {"cc": FINE, "readelf": FINE},
            "lacks python3, venv for Python; on Debian: apt-get install python3 python3-venv",
            id="python",
        ),
        pytest.param(
            {"python3": OLD_PYTHON, "cc": FINE, "readelf": FINE},
            "lacks Python 3.11 or newer (python3 is older; set PYTHON=); on Debian: apt-get install python3",
            id="old-python",
        ),
        pytest.param(
            {"python3": NO_VENV, "cc": FINE, "readelf": FINE},
            "lacks venv for python3; on Debian: apt-get install python3-venv",
            id="venv",
        ),
        pytest.param(
            {"python3": FINE},
            "lacks a C compiler (cc; set CC=), the C library's headers; on Debian: apt-get install gcc libc6-dev",
            id="compiler",
        ),
        pytest.param(
            {"python3": FINE, "cc": NO_HEADERS, "readelf": FINE},
            "lacks the C library's headers; on Debian: apt-get install libc6-dev",
            id="headers",
        ),
        pytest.param(
            {"python3": FINE, "cc": NO_STATIC, "readelf": FINE},
            "lacks a static C library; on Debian: apt-get install libc6-dev",
            id="static-libc",
        ),
        pytest.param(
            {"python3": FINE, "cc": FINE}, "lacks readelf; on Debian: apt-get install binutils", id="binutils"
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, tools: dict[str, str], expected: str) -> None:
    """Only what this machine has is on PATH."""
    for tool in ("mktemp", "rm"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    for name, text in tools.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environ = {"PATH": str(tmp_path)}
    done = subprocess.run(["/bin/sh", SCRIPT, "python3"], env=environ, capture_output=True, text=True, check=False)
    assert done.stderr == (f"simnode: this machine {expected}\n" if expected else "")
    assert done.returncode == (2 if expected else 0)
