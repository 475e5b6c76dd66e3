# SPDX-License-Identifier: MIT
"""Compile the C parts: once for all tests, and variants for single tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["STRICT", "build_checkout", "build_variant"]

_ROOT = Path(__file__).parents[2]
_LIMIT_S = 600.0
#: Option with which warnings are errors.
STRICT = "-DPENSTOCK_STRICT=ON"


def build_checkout() -> str:
    """Compile what has changed in this checkout; return why not, or an empty text."""
    done = _run("sh", str(_ROOT / "scripts/build-native.sh"))
    return "" if done.returncode == 0 else done.stderr.strip() or "no reason given"


def build_variant(folder: Path, target: str, *options: str) -> Path:
    """Compile a target of ``CMakeLists.txt`` with further options of CMake.

    Returns the file, which is in `folder`. Skips the test without gcc or CMake.
    """
    if shutil.which("gcc") is None or shutil.which("cmake", path=_path()) is None:
        pytest.skip("needs gcc and cmake")
    for command in (
        ("cmake", "-S", _ROOT, "-B", folder, "-G", "Unix Makefiles", *options),
        ("cmake", "--build", folder, "--parallel", "--target", target),
    ):
        done = _run(*map(str, command))
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder / {
        "shim": "libpenstock.so",
        "mount": "libpenstock-mount.so",
    }.get(target, target)


def _path() -> str:
    """Return PATH with the programs of this Python environment."""
    return f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=_LIMIT_S,
        env={**os.environ, "PATH": _path()},
    )
