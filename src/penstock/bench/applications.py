# SPDX-License-Identifier: MIT
"""Run applications of the model as real processes: work is sleep, I/O is real writes.

A process waits in `penstock.bench.starter` until the release of its application, and
then executes the C program ``application.c``, which announces its operations through
``penstock.h`` unless its place has no hints.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from penstock.bench import starter
from penstock.bench.testbed import TIMEOUT_S, BenchDaemon, clean_environment
from penstock.errors import InputError
from penstock.live.ending import end_process
from penstock.model import Application, Column, Instance, Platform, Window
from penstock.native.files import shim_path

__all__ = [
    "RunPlace",
    "WorkloadRow",
    "instance_from_rows",
    "live_yields",
    "run_applications",
    "start_waiting",
]

#: An application: nodes, release (s), then alternately work (s) and volume (MB).
WorkloadRow: TypeAlias = tuple[int, float, tuple[float, ...]]

#: Least time between the start of all processes and time zero.
_READY_S: Final = 0.2
_NS: Final = 1e9
#: End of the window that a live controller shows to policies.
_FAR_S: Final = 3600.0


@dataclass(frozen=True)
class RunPlace:
    """The program, daemon and folder with which applications run."""

    program: Path
    """The program of ``application.c``."""
    daemon: BenchDaemon
    data: Path
    """Folder of the files that are written."""
    block_bytes: int = 64 << 10
    """Bytes per write call."""
    has_hints: bool = True
    """The programs announce their operations."""


def instance_from_rows(platform: Platform, rows: Sequence[WorkloadRow]) -> Instance:
    """Return the instance of a workload; its applications are a1, a2 and so on."""
    applications = (
        Application.from_phases(
            f"a{number}",
            nodes,
            [
                ("io", amount * 1e6) if index % 2 else ("work", amount)
                for index, amount in enumerate(amounts)
            ],
            release=release,
        )
        for number, (nodes, release, amounts) in enumerate(rows, 1)
    )
    return Instance(platform, Window(0.0, _FAR_S), tuple(applications))


def live_yields(place: RunPlace, instance: Instance) -> Column:
    """Return the yield of every application at its end, from its own time stamps.

    y_i = (work + volume / b_i) / (end - release)   (bandwidth sharing, eq. 6).
    """
    ends = run_applications(place, instance.applications)
    return np.array(
        [
            (app.work.sum() + app.volume.sum() / cap) / (times[-1] - app.release)
            for (app, cap), times in zip(instance.with_caps(), ends, strict=True)
        ]
    )


def run_applications(
    place: RunPlace, applications: Sequence[Application]
) -> list[list[float]]:
    """Return the end of every phase of every application (s after time zero).

    Time zero is a whole second of the monotonic clock. So policies that wake at
    multiples of a second wake at the same times as in a simulation.
    """
    shim_path()  # Without the preload library, fail before anything starts.
    started: list[subprocess.Popen[str]] = []
    try:
        started += [_start(place, app) for app in applications]
        place.daemon.await_ready()
        for process in started:
            _await_ready(process)
        zero = int(time.monotonic() + _READY_S) + 1
        for process, app in zip(started, applications, strict=True):
            _send_release(process, zero * 10**9 + round(app.release * 1e9))
        return [
            [end * 1e-9 - zero for end in _phase_ends_ns(process, app.name)]
            for process, app in zip(started, applications, strict=True)
        ]
    finally:
        for process in started:
            end_process(process)


def start_waiting(words: Sequence[str]) -> subprocess.Popen[str]:
    """Start a process that waits for its release; `words` are those of `starter`."""
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", starter.__name__, *words],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _start(place: RunPlace, app: Application) -> subprocess.Popen[str]:
    """Start the process of an application; it waits for its release."""
    words = [str(place.daemon.folder), app.name, str(app.nodes), str(place.program)]
    words += [str(place.data / app.name), str(place.block_bytes)]
    words += _phase_words(app, has_hints=place.has_hints)
    return start_waiting(words)


def _phase_words(app: Application, *, has_hints: bool = True) -> list[str]:
    """Return the phases as arguments of ``application.c``."""
    io_letter = "i" if has_hints else "u"
    return [
        f"w{round(amount * _NS)}" if kind == "work" else f"{io_letter}{round(amount)}"
        for kind, amount in app.phases()
    ]


def _await_ready(process: subprocess.Popen[str]) -> None:
    """Wait for the line "ready"."""
    if process.stdout is not None:
        process.stdout.readline()


def _send_release(process: subprocess.Popen[str], release_ns: int) -> None:
    # A process that has already failed is reported by `_phase_ends_ns`.
    with suppress(BrokenPipeError):
        if process.stdin is not None:
            process.stdin.write(f"{release_ns}\n")
            process.stdin.flush()


def _phase_ends_ns(process: subprocess.Popen[str], name: str) -> list[int]:
    """Return what the process printed; raise `InputError` if it failed."""
    output, errors = process.communicate(timeout=TIMEOUT_S)
    if process.returncode != 0:
        reason = errors.strip().rpartition("\n")[2] or "it could not write"
        raise InputError(
            f"application {name} failed: {reason}",
            remedy="choose a folder with enough free space: --folder",
        )
    return [int(line) for line in output.split()]
