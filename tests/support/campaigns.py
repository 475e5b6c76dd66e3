# SPDX-License-Identifier: MIT
"""A small figure for the real command, whose policy can be slow, fail, or die.

`Bench` is a folder with a policy file and a script that is the command ``penstock``
plus one figure, "small": 12 pieces of two policies. Files in the folder tell the
policy what to do, so that it does not change what the command is asked for.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Inline
from support.launchers import FOREGROUND
from support.waiting import LIMIT_S, processes_of, until

__all__ = [
    "PIECES",
    "Bench",
    "end_session",
    "undisturbed_table",
]

PIECES = 12

_POLICY = """
import os, signal, time
from math import inf
from pathlib import Path

HERE = Path(__file__).parent
PAUSE = 2e-4 if (HERE / "slow").exists() else 0.0

def allocate(view, rates):
    if PAUSE:
        time.sleep(PAUSE)
    if (HERE / "fail").exists() and view.now > 5000:
        raise ZeroDivisionError("of mine")
    try:
        (HERE / "die").unlink()
    except FileNotFoundError:
        pass
    else:
        os.kill(os.getpid(), signal.SIGKILL)
    if (HERE / "die-always").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    last = view.active[view.n_active - 1]
    rates[last] = view.cap[last]
    return inf
"""

_COMMAND = """
import sys

def small(scale):
    from penstock.experiments.study import Study, sweep
    points = sweep("synthetic", {"horizon": 20000.0}, {"pressure": (0.5, 0.8)})
    return Study("small", points, 6, ("fcfs", "mine.allocate"))

def command():
    from matplotlib.figure import Figure
    from penstock.cli import main
    from penstock.papers import FIGURES
    from penstock.papers.catalog import FigureEntry
    from penstock.papers.declaration import figure
    FIGURES["small"] = FigureEntry("__main__", "nowhere", "Small")
    figure("small", study=small, draw=lambda tables: Figure())
    return main(["reproduce", "small", "-o", "out", *sys.argv[1:]])

if __name__ == "__main__":
    sys.exit(command())
"""


class Bench:
    """A folder in which the command runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []
        folder.mkdir(exist_ok=True)
        (folder / "mine.py").write_text(_POLICY)
        (folder / "command.py").write_text(_COMMAND)

    def tell(self, *words: str) -> None:
        """Make the policy "slow", "fail", "die" once or "die-always"."""
        for word in ("slow", "fail", "die", "die-always"):
            path = self.folder / word
            path.touch() if word in words else path.unlink(missing_ok=True)

    def start(
        self, *options: str, launcher: Sequence[str] = FOREGROUND
    ) -> subprocess.Popen[str]:
        """Start the command in a session of its own, as a terminal would."""
        process = subprocess.Popen(
            [*launcher, sys.executable, "command.py", *options],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(self.folder)},
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        """Kill the processes that a failed test has left."""
        for process in self._started:
            end_session(process)

    def run(self, *options: str) -> tuple[int, str]:
        """Run the command; return its status and its output, on one line."""
        return self.outcome(self.start(*options))

    def outcome(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for the command; return its status and its output, on one line."""
        _, output = process.communicate(timeout=2 * LIMIT_S)
        assert "Traceback" not in output, output
        return process.returncode, " ".join(output.split())

    def done(self, *options: str) -> str:
        """Run the command, which must succeed; return its output."""
        status, output = self.run(*options)
        assert status == 0, output
        return output

    @property
    def study(self) -> Path:
        return self.folder / "out" / "studies" / "small"

    def pieces(self) -> dict[str, int]:
        """Return the finished pieces and when each was written."""
        files = (self.study / "pieces").glob("*.parquet")
        return {path.name: path.stat().st_mtime_ns for path in files}

    def wait_for_pieces(self, count: int) -> dict[str, int]:
        until(lambda: len(self.pieces()) >= count)
        return self.pieces()

    def table(self) -> bytes:
        return (self.study / "table.parquet").read_bytes()


def undisturbed_table(folder: Path) -> bytes:
    """Return the table of a run that nothing disturbs, in one process."""
    bench = Bench(folder)
    study = runpy.run_path(str(folder / "command.py"))["small"]
    sys.path.insert(0, str(folder))
    try:
        run_study(study(None), bench.study, Inline())
    finally:
        sys.path.remove(str(folder))
        del sys.modules["mine"]
    return bench.table()


def end_session(process: subprocess.Popen[Any]) -> None:
    """Kill what is left of a session, its first process included."""
    if processes_of(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=120)
