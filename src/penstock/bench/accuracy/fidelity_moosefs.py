# SPDX-License-Identifier: MIT
"""Yields of ordinary programs on a real MooseFS, compared with simulated yields.

Jobs are shell scripts that sleep (work) and call ``dd`` or a Python writer, each with
an fsync (I/O). Nobody announces anything: the controller detects the operations and
estimates their volumes. MooseFS has four chunk servers; the link of the client node
carries `_LINK` bytes/s, and the controller shares `_BANDWIDTH`, a bit less.

The simulated instance has the same phases. What a program needs to start, to open its
file and to end is measured first, and belongs to the work before its operation.

This module runs twice: `measure` starts a MooseFS (`moosefs`), and beside it `main`
runs the jobs and prints what they measure as JSON, one object per line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from penstock.bench import BenchSettings, Measurement
from penstock.bench.applications import start_waiting
from penstock.bench.moosefs import (
    FOLDER,
    ClusterSpec,
    check_requirements,
    client_mount,
    prioritise_processes,
    run_module,
)
from penstock.bench.testbed import (
    TIMEOUT_S,
    BenchDaemon,
    high_priority,
    running_daemon,
)
from penstock.errors import InputError
from penstock.live.ending import end_process
from penstock.model import Application, Column, Instance, Platform, Window
from penstock.native.files import shim_path
from penstock.policies import get_policy
from penstock.sim import simulate

__all__ = ["instance_with", "main", "measure"]

#: Limit of the network with all its headers, and what the controller shares (bytes/s).
#: So little that the servers, which need a processor, keep up on a busy machine.
_LINK: Final = 11.5e6
_BANDWIDTH: Final = 10e6
_POLICIES: Final = ("fair-share", "fcfs", "greedy-yield", "soft-deadline", "greedy-com")
#: Largest accepted relative difference of a yield.
_ERROR: Final = 0.05
#: End of the window that a live controller shows to policies.
_FAR_S: Final = 3600.0
#: Least time between the start of all processes and time zero.
_READY_S: Final = 0.5
#: Runs of each program whose start-up time is measured.
_STARTS: Final = 7


class _Job(NamedTuple):
    """A script: work and an operation, again and again."""

    name: str
    program: str
    """One of `_COMMANDS`."""
    release_s: float
    volume_bytes: int
    """Volume of each operation."""
    works_s: tuple[float, ...]
    """Work before each operation."""


#: First, each of three jobs has one operation while no other has I/O: from then on the
#: controller knows their volumes. The last job is a newcomer: it writes once, more than
#: all others. This workload was selected among random ones: yields hardly change if
#: phases last a tenth of a second longer, and in virtual time the controller, without a
#: history, differs by less than 2 % under every policy. Most workloads with newcomers
#: differ more under greedy-com: benchmarks/volumes.py.
_JOBS: Final = (
    _Job("a", "dd", 0.0, 13_330_000, (0.6, 6.25, 1.78, 1.78)),
    _Job("b", "python", 0.2, 23_410_000, (2.37, 3.51, 1.06)),
    _Job("c", "dd", 0.4, 6_030_000, (5.13, 0.71, 2.96, 2.96)),
    _Job("late", "python", 6.58, 55_250_000, (2.05,)),
)
#: Program -> command that writes `{bytes}` bytes to `{file}` and syncs them.
_COMMANDS: Final = {
    "dd": "dd if=/dev/zero of={file} bs=256K count={bytes} iflag=count_bytes,fullblock"
    " conv=notrunc,fsync status=none",
    "python": """{python} -S -E -c '
import os, sys
left, block = int(sys.argv[2]), bytes(256 << 10)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
while left:
    left -= os.write(file, block[:left])
os.fsync(file)' {file} {bytes}""",
}


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield live and simulated yields on a MooseFS for every policy."""
    check_requirements()
    policies = settings.policies or _POLICIES
    for policy in policies:
        get_policy(policy)
    worst = 0.0
    shim_path()  # Without the preload library, fail before anything starts.
    words = [str(max(1, settings.rounds // 15)), *policies]
    start_ups: dict[str, float] = {}
    for line in run_module(ClusterSpec(client_bytes_per_s=_LINK), __name__, words):
        if "start_ups" in line:
            start_ups = line["start_ups"]
            yield from _start_up_measurements(start_ups)
            continue
        instance = instance_with(start_ups)
        live = _yields(instance, line["ends"])
        simulated = simulate(instance, line["policy"], steady=False).yields
        worst = max(worst, float(np.max(np.abs(live / simulated - 1.0))))
        yield from _measurements(line["policy"], live, simulated)
    name = "largest difference of a yield"
    yield Measurement(name, 100.0 * worst, "%", most=100.0 * _ERROR)


def _start_up_measurements(start_ups: dict[str, float]) -> Iterator[Measurement]:
    for program, start_up_s in start_ups.items():
        yield Measurement(f"start and end of {program}", 1e3 * start_up_s, "ms")


def _measurements(
    policy: str, live: Column, simulated: Column
) -> Iterator[Measurement]:
    for job, live_yield, simulated_yield in zip(_JOBS, live, simulated, strict=True):
        yield Measurement(
            f"{policy}, {job.name} ({job.program}): live yield / simulated",
            float(live_yield / simulated_yield),
            "",
            1.0 - _ERROR,
            1.0 + _ERROR,
            {"live": float(live_yield), "simulated": float(simulated_yield)},
        )


def instance_with(start_ups: dict[str, float]) -> Instance:
    """Return the jobs as an instance; programs take these times to start (s)."""
    applications = (
        Application.from_phases(
            job.name,
            1,
            [
                phase
                for work_s in job.works_s
                for phase in (
                    ("work", work_s + start_ups[job.program]),
                    ("io", float(job.volume_bytes)),
                )
            ],
            release=job.release_s,
        )
        for job in _JOBS
    )
    platform = Platform(_BANDWIDTH, _BANDWIDTH)
    return Instance(platform, Window(0.0, _FAR_S), tuple(applications))


def _yields(instance: Instance, ends_s: Sequence[float]) -> Column:
    """Return (work + volume / b_i) / (end - release) of every job."""
    return np.array(
        [
            (app.work.sum() + app.volume.sum() / cap) / (end_s - app.release)
            for (app, cap), end_s in zip(instance.with_caps(), ends_s, strict=True)
        ]
    )


# --- Beside the cluster -----------------------------------------------------------


def main(words: Sequence[str]) -> None:
    """Run the jobs under every policy; print start-up times and ends as JSON.

    Parameters
    ----------
    words
        The runs under each policy, of which the median counts, then the policies.
    """
    runs, policies = int(words[0]), words[1:]
    prioritise_processes()
    with high_priority():
        with _daemon(_POLICIES[0]) as daemon:
            start_ups = {program: _start_up(daemon, program) for program in _COMMANDS}
        _print(start_ups=start_ups)
        for policy in policies:
            ends = []
            for _ in range(runs):
                with _daemon(policy) as daemon:
                    ends.append(_run(daemon))
            _print(policy=policy, ends=np.median(ends, axis=0).tolist())


def _print(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


@contextmanager
def _daemon(policy: str) -> Iterator[BenchDaemon]:
    """Run a new daemon, without any history, that controls the mount."""
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="s") as name:
        settings = {
            "policy": policy,
            "bandwidth": f"{_BANDWIDTH} B/s",
            "prefixes": client_mount(),
        }
        with running_daemon(Path(name), **settings) as daemon:
            daemon.await_ready()
            yield daemon


def _start_up(daemon: BenchDaemon, program: str) -> float:
    """Return how long a program takes that writes nothing (s)."""
    probe = _Job(f"probe-{program}", program, 0.0, 0, (0.0,) * _STARTS)
    runs = [_run(daemon, [probe])[0] / _STARTS for _ in range(3)]
    return median(runs)


def _run(daemon: BenchDaemon, jobs: Sequence[_Job] = _JOBS) -> list[float]:
    """Run the jobs at the same time; return when each has ended (s after time zero)."""
    started = [_start(daemon, job) for job in jobs]
    try:
        for process in started:
            assert process.stdout is not None  # noqa: S101 - for the type checker
            process.stdout.readline()
        zero = time.monotonic() + _READY_S
        with ThreadPoolExecutor(len(jobs)) as pool:
            ends = pool.map(_end_of, started, [zero + job.release_s for job in jobs])
            return [end - zero for end in ends]
    finally:
        for process in started:
            end_process(process)


def _start(daemon: BenchDaemon, job: _Job) -> subprocess.Popen[str]:
    """Start the process of a job; it waits for its release."""
    script = FOLDER / f"{job.name}.sh"
    script.write_text(_script(client_mount(), job))
    script.chmod(0o755)
    words = [str(daemon.folder), job.name, "0", str(script)]
    return start_waiting(words)


def _script(folder: Path, job: _Job) -> str:
    """Return the shell script of a job, which writes to a file in `folder`."""
    write = _COMMANDS[job.program].format(
        file=folder / job.name, bytes=job.volume_bytes, python=sys.executable
    )
    phases = (f"sleep {work_s}\n{write}\n" for work_s in job.works_s)
    return f"#!/bin/sh\nset -e\n{''.join(phases)}"


def _end_of(process: subprocess.Popen[str], release_s: float) -> float:
    """Release a process; return when it has ended (monotonic clock, s)."""
    _, errors = process.communicate(f"{round(release_s * 1e9)}\n", TIMEOUT_S)
    end_s = time.monotonic()
    if process.returncode != 0:
        reason = errors.strip().rpartition("\n")[2] or "it could not write"
        raise InputError(f"a job failed: {reason}")
    return end_s


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as failure:
        sys.exit(str(failure))
