# SPDX-License-Identifier: MIT
"""Runs of a program, plainly and under ``penstock run``, in turn.

``penstock run`` finds nothing configured and starts its private daemon, in a folder of
its own. ``stopwatch.c`` takes the time of the program itself.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from penstock.bench.testbed import TIMEOUT_S, clean_environment
from penstock.errors import InputError, UnavailableError
from penstock.live.settings import Settings
from penstock.live.wire.frames import Client, Peer
from penstock.native.files import program_path

__all__ = ["PairedRuns", "RunTimes"]

#: Time between two attempts to connect.
_POLL_S: Final = 0.02


@dataclass(frozen=True)
class RunTimes:
    """Times of one run (s)."""

    own_s: float
    """From the start of the program itself to its end."""
    processor_s: float
    """Processor time of all processes of the program."""
    total_s: float
    """From the start of ``penstock run``, if it is used, to the end."""


class PairedRuns:
    """Runs programs; its daemon ends with the context."""

    def __init__(
        self, root: Path, rounds: int, environment: Mapping[str, str] | None = None
    ) -> None:
        """Keep files in `root`; `environment` is added for all programs."""
        self._stopwatch = program_path("stopwatch")
        self._report = root / "report"
        self._settings = Settings(folder=str(root / "daemon"))
        self._rounds = rounds
        self._environment = {
            **clean_environment(),
            **(environment or {}),
            "PENSTOCK_FOLDER": self._settings.folder,
            "PENSTOCK_SETTINGS": os.devnull,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the daemon that the first controlled run has started."""
        with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._settings.socket))
            with os.fdopen(os.pidfd_open(Peer.of(connection).pid)) as process:
                signal.pidfd_send_signal(process.fileno(), signal.SIGTERM)
                select.select([process], [], [], TIMEOUT_S)  # until it has ended

    def start(self) -> float:
        """Let ``penstock run`` start its daemon; return how long that takes (s).

        ``penstock run`` would give up on a daemon that is slow because the machine is
        busy; this waits for it.
        """
        begun = time.monotonic()
        command = (sys.executable, "-m", "penstock", "run", "--quiet", "--", "true")
        subprocess.run(  # noqa: S603 - our own program
            command, env=self._environment, check=True, timeout=TIMEOUT_S
        )
        elapsed_s = time.monotonic() - begun
        while True:
            try:
                Client(self._settings.socket).close()
            except UnavailableError:
                if time.monotonic() - begun > TIMEOUT_S:
                    raise
                time.sleep(_POLL_S)
            else:
                return elapsed_s

    def pairs(
        self,
        words: Sequence[str],
        work: Path,
        prepare: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[RunTimes, RunTimes]]:
        """Yield the times of plain and controlled runs, which alternate.

        `prepare` is called before every run.
        """
        for turn in range(self._rounds):
            times = {}
            for controlled in (False, True) if turn % 2 else (True, False):
                prepare()
                times[controlled] = self.run(words, work, controlled=controlled)
            yield times[False], times[True]

    def run(self, words: Sequence[str], work: Path, *, controlled: bool) -> RunTimes:
        """Run a program in the folder `work`; return its times.

        Raises `InputError` if the program fails, or if it cannot be controlled.
        """
        command = [str(self._stopwatch), str(self._report), *words]
        if controlled:
            # Without control, there would be nothing to measure.
            run = (sys.executable, "-m", "penstock", "run", "--require-control", "--")
            command = [*run, *command]
        begun = time.monotonic()
        done = subprocess.run(  # noqa: S603 - the program of the caller
            command,
            cwd=work,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
            timeout=TIMEOUT_S,
        )
        total_s = time.monotonic() - begun
        if done.returncode != 0:
            start = "under penstock run" if controlled else "without penstock"
            reason = done.stderr.strip().rpartition("\n")[2] or "no message"
            raise InputError(f"{words[0]} failed {start}: {reason}")
        own_ns, processor_ns = map(int, self._report.read_text().split())
        return RunTimes(own_ns * 1e-9, processor_ns * 1e-9, total_s)
