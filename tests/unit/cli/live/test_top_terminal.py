# SPDX-License-Identifier: MIT
"""``penstock top`` on a real terminal: it fits, and says what does not fit."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress

import pytest

from support.waiting import LIMIT_S

#: Moves the cursor to the first line: a frame begins.
HOME = b"\x1b[H"
#: A daemon with JOBS jobs, half of them in I/O; three wait.
SCRIPT = """
import sys
from pathlib import Path
import penstock.live.wire.frames as frames
import penstock.mount.control as control
from penstock.cli import main
from penstock.live.wire.messages import JobStatus, StatusDocument

JOBS = int(sys.argv[1])

def line(number):
    active = number % 2 == 0
    grant = 0.0 if number in (0, 2, 4) else 1e6 * number
    return JobStatus(
        job_name=f"job-with-a-long-name-{number:04d}", user=0, nodes=["n"], cap=2e9,
        limit=None, active=active, waiting=False, lent=False, grant=grant,
        demanded=1e9, drawn_bytes_per_s=grant, volume_bytes=1e9, remaining_bytes=1e9,
        moved_bytes=123456789.0, held_up_s=1.0, age_s=2.0, lost_s=1234.5,
        progress_yield=0.5, operations=1, bypass_setups=0, uncontrolled_bytes=0.0,
        staged_bytes=0.0, why=f"job {number} waits: others are first. " + "word " * 99,
    )

class Client:
    def __init__(self, *_):
        pass
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
    def ask(self, _):
        jobs = [line(number) for number in range(JOBS)]
        agents = [f"node-{number}" for number in range(64)]
        faults = ["policy mine failed; " + "word " * 30]
        return StatusDocument("control", "fcfs", 2e9, None, agents, 1, faults, jobs)

frames.Client = Client
control.all_statuses = lambda _: []
sys.exit(main(["top", "--folder", "/nowhere", *sys.argv[2:]]))
"""


def shown(jobs: int, size: tuple[int, int] = (24, 80), **environment: str) -> list[str]:
    """Return the lines of a frame on a terminal of `size` (lines, columns)."""
    master, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, size)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("LINES", "COLUMNS", "NO_COLOR")
    }
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(jobs), "--every", "50 ms"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=kept | {"TERM": "xterm"} | environment,
    ) as process:
        os.close(terminal)
        text = b""
        with suppress(OSError):  # The terminal closes when the process ends.
            while text.count(HOME) < 4:
                assert select.select([master], [], [], LIMIT_S)[0], "no more frames"
                text += os.read(master, 65536)
        process.send_signal(signal.SIGINT)
        end_s = time.monotonic() + LIMIT_S
        with suppress(OSError):
            # Its output is read, for it may wait for that.
            while process.poll() is None and time.monotonic() < end_s:
                if select.select([master], [], [], 0.1)[0]:
                    os.read(master, 65536)
        process.kill()
    os.close(master)
    # The first part is before the first frame, the last one may be cut.
    frame = text.split(HOME)[-2].decode()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame).replace("\r", "")
    return [line.rstrip() for line in plain.split("\n")]


def test_80_columns_and_24_lines_show_the_busiest_jobs_and_count_the_others() -> None:
    lines = shown(100)
    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines)
    names = [line.split()[0][-4:] for line in lines if line.startswith("job-with-a")]
    assert names == [f"{number:04d}" for number in range(98, 98 - 2 * len(names), -2)]
    assert len(names) >= 10
    others = 100 - len(names)
    assert any(line.startswith(f"{others} more jobs, ") for line in lines)
    assert sum("waits: others are first" in line for line in lines) == 3
    header = next(line for line in lines if line.startswith("job "))
    for column in ("state", "share", "granted", "drawn", "moved"):
        assert column in header


def test_jobs_that_fit_are_all_shown() -> None:
    lines = shown(8)
    assert sum(line.startswith("job-with-a") for line in lines) == 8
    assert not any("more job" in line for line in lines)


def test_a_larger_terminal_shows_more() -> None:
    lines = shown(100, size=(50, 160))
    assert 24 < len(lines) <= 50
    header = next(line for line in lines if line.startswith("job "))
    assert header.split()[-1] == "lost"
    assert "demand" in header
    assert all(len(line) <= 160 for line in lines)


def test_the_variables_for_lines_and_columns_are_respected() -> None:
    lines = shown(100, LINES="12", COLUMNS="60")
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize(("lines", "jobs"), [("", 30), ("15", 10)])
def test_once_prints_all_jobs_unless_lines_limit_them(lines: str, jobs: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "30", "--once"],
        env={**os.environ, "COLUMNS": "80", "LINES": lines},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = done.stdout.splitlines()
    rows = sum(line.startswith("job-with-a") for line in printed)
    assert rows == 30 if jobs == 30 else 3 <= rows <= jobs
    assert all(len(line) <= 80 for line in printed)
