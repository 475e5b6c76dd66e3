# SPDX-License-Identifier: MIT
"""Measure how long a grant takes to reach the page, with a real daemon.

One job does I/O all the time, another one in phases. Every phase of the second job
makes the policy share again, so that a new grant appears in its page. The second job
polls the page every 0.1 ms; a busy loop would take a processor from the daemon.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from penstock.bench.testbed import (
    TIMEOUT_S,
    clean_environment,
    running_daemon,
    temporary_folder,
)
from penstock.errors import InputError

__all__ = ["BUSY", "PHASES", "page_latencies"]

#: A program that does I/O all the time.
BUSY: Final = """
import time
with open("busy", "wb", buffering=0) as stream:
    while True:
        stream.seek(0)
        stream.write(bytes(4096))
        time.sleep(0.005)
"""
#: A program that prints latencies. A phase: idle for longer than a gap, then a call.
PHASES: Final = """
import os, sys, time
from pathlib import Path
from penstock.live.node.pages.page import Page
page = Page.open(Path(os.environ["PENSTOCK_PAGE"]))
with open("phases", "wb", buffering=0) as stream:
    for number in range(int(sys.argv[1])):
        time.sleep(0.15)
        seen, begun = page.grant_number(), time.perf_counter()
        stream.write(bytes(1000 + number % 7 * 300))
        while page.grant_number() == seen and time.perf_counter() < begun + 1.0:
            time.sleep(0.0001)
        print(time.perf_counter() - begun)
"""


def page_latencies(folder: Path, count: int) -> list[float]:
    """Return the times from a call to the grant that it causes (s)."""
    with temporary_folder(folder) as root:
        (root / "data").mkdir()
        with ExitStack() as stack:
            settings = {"prefixes": root / "data", "bandwidth": "1 GB/s"}
            stack.enter_context(running_daemon(root / "run", **settings)).await_ready()
            stack.enter_context(_running(_job(root, "busy", BUSY), root))
            done = subprocess.run(  # noqa: S603 - our own program
                _job(root, "phases", PHASES, str(count)),
                cwd=root / "data",
                env=clean_environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT_S,
            )
    if done.returncode != 0:
        raise InputError(
            f"the measured program failed: {done.stderr.strip()[-200:]}",
            remedy="run `penstock run --verbose -- true` to see why",
        )
    return [float(line) for line in done.stdout.split()]


def _job(root: Path, name: str, text: str, *words: str) -> list[str]:
    """Return the command that runs a Python script as a job."""
    options = ["run", f"--job={name}", f"--folder={root / 'run'}", "--verbose", "--"]
    return [
        sys.executable,
        "-m",
        "penstock",
        *options,
        sys.executable,
        "-c",
        text,
        *words,
    ]


@contextmanager
def _running(command: list[str], root: Path) -> Iterator[None]:
    """Run a command during the block."""
    process = subprocess.Popen(  # noqa: S603 - our own program
        command,
        cwd=root / "data",
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)
