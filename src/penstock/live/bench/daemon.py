# SPDX-License-Identifier: MIT
"""How long a grant takes to reach the page, measured on a real daemon.

One job does I/O all the time, another one in phases. With every phase of the second the
policy must share anew, so that a new grant appears in its page. The second job looks
into the page every 0.1 ms: if it span, it would take a processor from the daemon.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.live.settings import Settings
from penstock.live.wire import Client

__all__ = ["page_latencies"]

_START_S: Final = 60.0
_LIMIT_S: Final = 600.0
_BUSY: Final = """
import time
with open("busy", "wb", buffering=0) as stream:
    while True:
        stream.seek(0)
        stream.write(bytes(4096))
        time.sleep(0.005)
"""
#: What a phase of the second job is: idle for longer than the gap, then one call.
_PHASES: Final = """
import os, sys, time
from pathlib import Path
from penstock.live import Page
page = Page.open(Path(os.environ["PENSTOCK_PAGE"]))
with open("phases", "wb", buffering=0) as stream:
    for number in range(int(sys.argv[1])):
        time.sleep(0.15)
        seen, begun = page.grants(), time.perf_counter()
        stream.write(b"a")
        while page.grants() == seen and time.perf_counter() < begun + 1.0:
            time.sleep(0.0001)
        print(time.perf_counter() - begun)
"""


def page_latencies(folder: Path, count: int) -> list[float]:
    """Return the times from a call to the grant that follows from it (s)."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="penstock-") as name:
        root = Path(name)
        (root / "data").mkdir()
        with ExitStack() as stack:
            stack.enter_context(_running(_serve(root), root))
            _await(root / "run")
            stack.enter_context(_running(_job(root, "busy", _BUSY), root))
            done = subprocess.run(  # noqa: S603 - ourselves
                _job(root, "phases", _PHASES, str(count)),
                cwd=root / "data",
                env=_environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=_LIMIT_S,
            )
    if done.returncode != 0:
        raise InputError(
            f"the measured program failed: {done.stderr.strip()[-200:]}",
            remedy="try `penstock run --verbose -- true`",
        )
    return [float(line) for line in done.stdout.split()]


def _serve(root: Path) -> list[str]:
    options = {
        "folder": root / "run",
        "prefixes": root / "data",
        "bandwidth": "1 GB/s",
        "gap": "50 ms",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "penstock", "serve", *words]


def _job(root: Path, name: str, text: str, *words: str) -> list[str]:
    own = ["run", f"--job={name}", f"--folder={root / 'run'}", "--verbose", "--"]
    return [sys.executable, "-m", "penstock", *own, sys.executable, "-c", text, *words]


@contextmanager
def _running(command: list[str], root: Path) -> Iterator[None]:
    process = subprocess.Popen(  # noqa: S603 - ourselves
        command,
        cwd=root / "data",
        env=_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(_START_S)


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}


def _await(folder: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            Client(Settings(folder=str(folder)).socket).close()
        except InputError:
            if time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(0.05)
