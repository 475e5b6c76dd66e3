# SPDX-License-Identifier: MIT
"""Run the scenes on a MooseFS cluster.

``python -m penstock.bench.partition.nodes PLAN`` runs a `PartitionPlan` (JSON) beside
the cluster (see `penstock.bench.moosefs`). An application is a shell script that starts
the program of ``microbenchmark.c`` once per I/O phase and sleeps in between. It writes
two files on each of the targets that its folder leads to (driver ``directories``; a
target is the folder of one chunk server), in small calls. So all applications that use
a target have equally much data under way to it, and a target that serves in the order
of arrival gives them equal shares, as in the simulation.

First, the bandwidth of an application alone on 1, 2, ... targets is measured, and the
time in I/O of every application alone. For the strategy ``auto``, each also runs alone
under a daemon, whose history then knows its requests and pauses. Volumes and work are
announced: an allocation may depend on a difference of some milliseconds. Standard
output has one line (JSON) per measurement.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from penstock.bench.moosefs import (
    FOLDER,
    client_mount,
    label_of,
    prioritise_processes,
)
from penstock.bench.partition.scenes import (
    CALL_BYTES,
    FILES,
    PLACEMENTS,
    TARGETS,
    PartitionApp,
    PartitionPlan,
    PhaseSpan,
    total_s,
)
from penstock.bench.testbed import (
    TIMEOUT_S,
    clean_environment,
    high_priority,
    running_daemon,
)
from penstock.errors import InputError
from penstock.live.staging.drivers.directories import Directories
from penstock.live.staging.rules import Staging
from penstock.native.files import program_path

__all__ = ["main", "script_of"]

#: Settings that need the storage targets.
_DIVIDING: Final = ("3a", "3b", "auto", *PLACEMENTS)
_JOBS: Final = FOLDER / "jobs"
_JOURNALS: Final = FOLDER / "journals"
_NAMES: Final = tuple(label_of(number) for number in range(1, TARGETS + 1))
#: Time from the start of the processes to the first phase (s).
_START_S: Final = 3.0
_POLL_S: Final = 0.02
#: The targets of an application are counted this long before its first phase (s).
_COUNT_S: Final = 0.04
#: With fixed targets, the daemon lets every job draw a little more than the storage
#: has: the targets limit it, which the daemon does not share one by one.
_HEADROOM: Final = 1.05
#: Settings under which jobs may have other targets than others.
_FIXED: Final = ("3a", "3b", *PLACEMENTS)


def main(words: Sequence[str]) -> None:
    """Run all scenes under every setting; print what was measured."""
    plan = msgspec.json.decode(words[0], type=PartitionPlan)
    prioritise_processes()
    Staging(_JOURNALS, always=False).prepare()
    with high_priority():
        profile = _profile(plan.probe_bytes)
        _print(profile=profile)
        apps = {app.name: app for scene in plan.scenes.values() for app in scene}
        remember = "auto" in plan.settings
        alone = _alone(list(apps.values()), profile, remember=remember)
        _print(alone=alone)
        for scene, members in plan.scenes.items():
            for setting in plan.settings:
                phases_s = _run_scene(members, setting, profile)
                _print(scene=scene, setting=setting, phases_s=phases_s)


def _print(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


# --- Measurements ---------------------------------------------------------------------


def _profile(probe_bytes: int) -> list[float]:
    """Return what a program draws alone on 1, 2, ... targets (bytes/s)."""
    probe = PartitionApp("probe", 1, probe_bytes, 0.0, 0.0, 0.0, phases=1)
    rates = []
    for count in range(1, TARGETS + 1):
        _prepare([probe])
        _assign(probe, _NAMES[:count])
        phases_s = _run([probe], [()])[probe.name]
        rates.append(probe.volume_bytes / total_s(phases_s))
    return rates


def _alone(
    apps: Sequence[PartitionApp], profile: Sequence[float], *, remember: bool
) -> dict[str, float]:
    """Return the time in I/O of every application alone (s), all targets used.

    It is measured without a daemon. With `remember`, each runs before under one that
    remembers it.
    """
    io_s: dict[str, float] = {}
    for app in apps:
        only = replace(app, start_s=0.0)
        if remember:
            with _controlled([only], "none", profile) as starters:
                _run([only], starters)
        io_s[app.name] = total_s(_run_scene([only], "none", profile)[app.name])
    return io_s


def _run_scene(
    apps: Sequence[PartitionApp], setting: str, profile: Sequence[float]
) -> dict[str, list[PhaseSpan]]:
    """Return the I/O phases of every application under a setting."""
    if setting == "none":
        _prepare(apps)
        return _run(apps, [()] * len(apps))
    with _controlled(apps, setting, profile) as starters:
        return _run(apps, starters)


# --- Folders --------------------------------------------------------------------------


def _prepare(apps: Sequence[PartitionApp], *, assigned: bool = True) -> None:
    """Remove what former runs have left; make the folders of applications.

    With `assigned`, they lead to all targets.
    """
    shutil.rmtree(_JOBS, ignore_errors=True)
    for name in _NAMES:
        for path in (client_mount() / name).iterdir():
            path.unlink()
    _JOBS.mkdir()
    for app in apps if assigned else ():
        _assign(app, _NAMES)


def _assign(app: PartitionApp, names: Sequence[str]) -> None:
    Directories(client_mount()).assign(_JOBS / app.name, names)


def script_of(app: PartitionApp, start_ns: int, program: Path, folder: Path) -> str:
    """Return the shell script of an application, which writes below `folder`.

    Slots k of the folder lead to n targets, k modulo n: the files are in slots 0 to
    n - 1. The targets are counted shortly before a phase begins, because a strategy may
    change them until then. The first phase begins at `start_ns` (monotonic clock).
    """
    early_ns = start_ns - round(_COUNT_S * 1e9)
    wall_ns = time.time_ns() - time.monotonic_ns() + early_ns
    pause_ns = round(app.delay_s * 1e9)
    facts = f"{app.requests} {app.size_bytes} {CALL_BYTES} {pause_ns}"
    lines = [
        "#!/bin/sh",
        "set -e",
        "write() {  # START PHASE",
        f"    targets=$(readlink {folder}/* | sort -u | wc -l)",
        f"    parts=$((targets * {FILES})) part=0 paths=",
        '    while [ "$part" -lt "$parts" ]; do',
        f'        paths="$paths {folder}/$((part % targets))/{app.name}-$2-$part"',
        "        part=$((part + 1))",
        "    done",
        f'    {program} "$1" {facts} "$parts" $paths',
        "}",
        f"left=$(({wall_ns} - $(date +%s%N)))",
        'if [ "$left" -gt 0 ]; then',
        '    sleep "$((left / 1000000000)).$(printf %09d $((left % 1000000000)))"',
        "fi",
        f"write {start_ns} 0",
    ]
    for phase in range(1, app.phases):
        lines += [f"sleep {app.work_s}", f"write 0 {phase}"]
    return "\n".join(lines) + "\n"


# --- Daemon and jobs ------------------------------------------------------------------


@contextmanager
def _controlled(
    apps: Sequence[PartitionApp], setting: str, profile: Sequence[float]
) -> Iterator[list[tuple[str, ...]]]:
    """Run a daemon; yield the commands that start programs in the jobs.

    An idle process in each job lets it join before the first phase, in the order of
    the applications, and keeps its part of the targets.
    """
    _prepare(apps, assigned=setting not in _DIVIDING)
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="s") as name, ExitStack() as on:
        folder = Path(name) / "run"
        daemon = on.enter_context(
            running_daemon(folder, **_settings(setting, profile, len(apps)))
        )
        daemon.await_ready()
        starters = [_starter(folder, app) for app in apps]
        for app, starter in zip(apps, starters, strict=True):
            on.enter_context(_idle_process(starter))
            _wait_for(_JOBS / app.name / str(TARGETS - 1))
        yield starters


def _starter(folder: Path, app: PartitionApp) -> tuple[str, ...]:
    """Return a command that starts a program in the job of an application."""
    run = (sys.executable, "-m", "penstock", "run", f"--folder={folder}")
    hints = [f"--hint-volume={app.volume_bytes} B"]
    if app.work_s > 0:
        hints.append(f"--hint-work={app.work_s} s")
    return *run, f"--job={app.name}", *hints, "--"


def _settings(setting: str, profile: Sequence[float], count: int) -> dict[str, object]:
    most = _HEADROOM * (count if setting in _FIXED else 1)
    settings: dict[str, object] = {
        "policy": "fair-share",
        "bandwidth": f"{most * profile[-1]} B/s",
        "prefixes": client_mount(),
        "gap": "10 ms",
        "state": FOLDER / "history.sqlite",
    }
    if setting in _DIVIDING:
        settings["targets"] = f"directories:{client_mount()}:{','.join(_NAMES)}"
        settings["job_folder"] = _JOBS / "{job}"
    if setting in PLACEMENTS:
        settings["placement"] = setting
        settings["target_bandwidths"] = ",".join(f"{rate} B/s" for rate in profile)
    else:
        settings["strategy"] = setting
    if setting == "3a":
        settings["strategy"] = f"3a:applications={count}"
    return settings


@contextmanager
def _idle_process(starter: Sequence[str]) -> Iterator[None]:
    process = subprocess.Popen(  # noqa: S603 - our own program
        [*starter, "sleep", "3600"], env=_environment()
    )
    try:
        yield
    finally:
        process.kill()
        process.wait(TIMEOUT_S)


def _environment() -> Mapping[str, str]:
    staging = Staging(_JOURNALS, always=False)
    return clean_environment() | staging.environment()


def _wait_for(path: Path) -> None:
    """Wait until the daemon has given a job its targets."""
    end_s = time.monotonic() + TIMEOUT_S
    while not path.is_symlink():
        if time.monotonic() > end_s:
            raise InputError(f"nobody makes {path}")
        time.sleep(_POLL_S)


# --- Runs -----------------------------------------------------------------------------


def _run(
    apps: Sequence[PartitionApp], starters: Sequence[tuple[str, ...]]
) -> dict[str, list[PhaseSpan]]:
    """Run applications at the same time; return the I/O phases of each."""
    zero = time.monotonic() + _START_S
    started: list[subprocess.Popen[str]] = []
    try:
        for app, starter in zip(apps, starters, strict=True):
            script = FOLDER / f"{app.name}.sh"
            start_ns = round((zero + app.start_s) * 1e9)
            program = program_path("microbenchmark")
            script.write_text(script_of(app, start_ns, program, _JOBS / app.name))
            started.append(_start([*starter, "sh", str(script)]))
        pairs = zip(apps, started, strict=True)
        return {app.name: _phases(app, process, zero) for app, process in pairs}
    finally:
        for process in started:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=TIMEOUT_S)


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own program
        command,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _phases(
    app: PartitionApp, process: subprocess.Popen[str], zero_s: float
) -> list[PhaseSpan]:
    """Wait for an application; return its phases, from open to close.

    Their times count from `zero_s`, of the monotonic clock.
    """
    output, errors = process.communicate(timeout=TIMEOUT_S)
    if process.returncode != 0:
        reason = errors.strip().rpartition("\n")[2] or "it could not write"
        raise InputError(f"application {app.name} failed: {reason}")
    times = [int(word) * 1e-9 - zero_s for word in output.split()]
    return list(zip(times[::2], times[1::2], strict=True))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as failure:
        sys.exit(str(failure))
