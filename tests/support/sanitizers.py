# SPDX-License-Identifier: MIT
"""Builds of the C parts under the sanitizers of addresses and undefined behaviour."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.mounts import Mounted
from support.native_build import STRICT, build_variant
from support.waiting import LIMIT_S

__all__ = ["ADDRESS_CHECKS", "CheckedMount", "runtime"]

#: Options of the compiler; the first error ends the process.
ADDRESS_CHECKS = "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
#: Runs penstock with another library of mounts.
_SCRIPT = """
import sys
from pathlib import Path
from penstock.native import files
files.BUILT = Path(sys.argv.pop(1))
from penstock.cli import main
sys.exit(main())
"""


def runtime(name: str) -> str:
    """Return the library of a sanitizer; skip where the compiler has none."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    path = subprocess.run(
        ["gcc", f"-print-file-name=lib{name}.so"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout.strip()
    if not Path(path).is_absolute():
        pytest.skip(f"needs gcc's lib{name}")
    return path


class CheckedMount(Mounted):
    """A mount whose data path is compiled with the checks."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._reports = home / "reports"
        self._preloaded = f"{runtime('asan')}:{runtime('ubsan')}"
        flags = f"-DCMAKE_C_FLAGS=-g {' '.join(ADDRESS_CHECKS)}"
        self._built = build_variant(home / "built", "mount", STRICT, flags).parent

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``penstock mount`` with the checks."""
        is_mounted = any(a.startswith("--status") for a in arguments)
        options = f"detect_leaks=0:handle_segv=0:log_path={self._reports}"
        return subprocess.run(
            [
                *(sys.executable, "-c", _SCRIPT, str(self._built), "mount"),
                *([] if is_mounted else ["--background"]),
                *(*arguments, "--folder", str(self.home / "run")),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            env=os.environ
            | {
                "LD_PRELOAD": self._preloaded,
                "ASAN_OPTIONS": options,
                "UBSAN_OPTIONS": f"log_path={self._reports}",
            },
        )

    def reports(self) -> str:
        """Return what the checks have found so far."""
        found = sorted(self.home.glob(f"{self._reports.name}.*"))
        return "\n".join(path.read_text() for path in found)
