# SPDX-License-Identifier: MIT
"""Applications of the model as real processes: work is sleep, I/O is real writes.

A process waits in `penstock.bench.starter` until its release, then becomes the
program in C, ``application.c``, which announces its operations by ``penstock.h``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from penstock.bench import starter
from penstock.bench.stage import LIMIT_S, Daemon, free_environment
from penstock.errors import InputError
from penstock.model import Application, Column, Instance
from penstock.native.build import shim_path

__all__ = ["Place", "live_yields", "run_applications"]

#: From the moment at which all processes are ready to time zero, at least (s).
_READY_S: Final = 0.2
#: Kind of a phase -> its letter in ``application.c``, and the unit there.
_PHASES: Final = {"work": ("w", 1e9), "io": ("i", 1.0)}


@dataclass(frozen=True)
class Place:
    """Where applications run."""

    program: Path
    """The compiled ``application.c``."""
    daemon: Daemon
    data: Path
    """Where files are written."""
    block_bytes: int = 64 << 10
    """Size of a call."""


def live_yields(place: Place, instance: Instance) -> Column:
    """Return the yield of every application at its end, as it saw it itself.

    y_i = (work + volume / b_i) / (end - release), papers/1 eq. 6.
    """
    ends = run_applications(place, instance.applications)
    return np.array(
        [
            (it.work.sum() + it.volume.sum() / cap) / (times[-1] - it.release)
            for (it, cap), times in zip(instance.with_caps(), ends, strict=True)
        ]
    )


def run_applications(
    place: Place, applications: Sequence[Application]
) -> list[list[float]]:
    """Return for every application when its phases ended (s after time zero).

    Time zero is a whole second of the monotonic clock, as it is in a simulation:
    policies that want to be woken at multiples of a second are woken alike.
    """
    shim_path()  # Built now, if need be, and not in the time of the first one.
    started: list[subprocess.Popen[str]] = []
    try:
        started += [_started(place, it) for it in applications]
        place.daemon.await_ready()
        for process in started:
            _hear(process)
        zero = int(time.monotonic() + _READY_S) + 1
        for process, it in zip(started, applications, strict=True):
            _tell(process, zero * 10**9 + round(it.release * 1e9))
        return [
            [end * 1e-9 - zero for end in _ends(process, it.name)]
            for process, it in zip(started, applications, strict=True)
        ]
    finally:
        for process in started:
            process.kill()
            process.communicate()


def _started(place: Place, it: Application) -> subprocess.Popen[str]:
    words = [str(place.daemon.folder), it.name, str(it.nodes), str(place.program)]
    words += [str(place.data / it.name), str(place.block_bytes), *_phases(it)]
    return subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-m", starter.__name__, *words],
        env=free_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _phases(it: Application) -> list[str]:
    listed = []
    for kind, amount in it.phases():
        letter, unit = _PHASES[kind]
        listed.append(f"{letter}{round(amount * unit)}")
    return listed


def _hear(process: subprocess.Popen[str]) -> None:
    if process.stdout is not None:
        process.stdout.readline()


def _tell(process: subprocess.Popen[str], release_ns: int) -> None:
    # One that has failed says why when it is asked for its ends.
    with suppress(BrokenPipeError):
        if process.stdin is not None:
            process.stdin.write(f"{release_ns}\n")
            process.stdin.flush()


def _ends(process: subprocess.Popen[str], name: str) -> list[int]:
    said, complaint = process.communicate(timeout=LIMIT_S)
    if process.returncode != 0:
        reason = complaint.strip().rpartition("\n")[2] or "it could not write"
        raise InputError(
            f"application {name} failed: {reason}",
            remedy="is there room in the folder? see --folder",
        )
    return [int(line) for line in said.split()]
