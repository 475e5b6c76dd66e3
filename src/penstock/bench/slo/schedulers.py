# SPDX-License-Identifier: MIT
"""Throughput and latency of real processes on a real mount, with each scheduler.

*Two groups*: the experiment of two-level scheduling, section 4.2, but shorter. Two
groups of 32 processes write requests of 1 MB through a mount with a limit of 50 MB/s.
app1 has the SLO (40 MB/s, 100 ms) and is alternately off and on, at 50 MB/s. app2 has
the SLO (20 MB/s, 300 ms), and its rate grows from 20 to 50 MB/s. At first both stay
below their SLOs and below 50 MB/s in total. A window of one second is *overloaded* if
more requests are under way than the mount can serve in a second.

*Small reads*: one process reads 4 KiB at scattered positions of a file while 32
processes write 1 MB at a time as fast as they can.

*Passing*: throughput of a mount with a scheduler and without a limit, divided by that
of a pass-through without a scheduler (`plain`); rounds are interleaved, and the best
round of each counts.

The clients take the times. With ``--output DIR`` all windows are written to
``slo.json`` and plotted in ``slo.svg``.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from penstock.bench import BenchSettings, Measurement
from penstock.bench.slo.clients import ClientPlan, Kind, run_groups
from penstock.bench.slo.mounts import DepthRecorder, plain_mount, scheduled_mount
from penstock.bench.slo.report import SchedulerRun, save
from penstock.bench.slo.windows import (
    answered_requests,
    compliance,
    windows,
)
from penstock.qos import percentile
from penstock.units import format_volume

__all__ = ["BenchScale", "measure_schedulers"]

_Rates: TypeAlias = tuple[tuple[float, float], ...]

_BASELINE, _OURS = "fifo", "two-level"
_CAPACITY: Final = 50e6
_SIZE: Final = 1_000_000
_PROCESSES: Final = 32
#: Length of a window, as in Figure 5 of two-level scheduling.
_WINDOW_S: Final = 1.0
_WINDOW_REQUESTS: Final = _CAPACITY * _WINDOW_S / _SIZE
_SLOS: Final = {"app1": (40e6, 0.1), "app2": (20e6, 0.3)}
_BOUNDS: Final = {name: latency for name, (_, latency) in _SLOS.items()}
_TIGHT_S: Final = min(_BOUNDS.values())
_SMALL_SLOS: Final = {"reader": (1e6, 0.05), "writer": (45e6, 2.0)}
_SMALL_BYTES: Final = 4096
_SMALL_FILE_BYTES: Final = 16 << 20

_KINDS: Final[tuple[Kind, ...]] = ("write", "read")
_PASS_FILE_BYTES: Final = 4 << 20
#: Size of a request -> goal: least throughput relative to the plain mount.
_PASS_GOALS: Final = {1 << 20: 0.85, 4096: 0.60}


@dataclass(frozen=True)
class BenchScale:
    """Schedulers to measure, and the length of each part (s)."""

    schedulers: tuple[str, ...] = (_BASELINE, "sfq", "edf", _OURS)
    ready: float = 2.0
    """Time from the start of the clients to their first request."""
    calm: float = 6.0
    """Two groups: both keep to their SLOs."""
    half: float = 8.0
    """Two groups: app1 is off for this time, then on for this time."""
    turns: int = 2
    """Two groups: number of off and on times of app1."""
    small: float = 5.0
    """Small reads: length with each scheduler."""
    passing: float = 0.4
    """Passing: length of a round."""

    @property
    def run(self) -> float:
        """Two groups: length with each scheduler."""
        return self.calm + 2 * self.half * self.turns


_SCALE: Final = BenchScale()


def measure_schedulers(
    settings: BenchSettings, scale: BenchScale = _SCALE
) -> Iterator[Measurement]:
    """Yield all measurements."""
    with tempfile.TemporaryDirectory(dir=settings.folder, prefix="penstock-") as name:
        root = Path(name)
        yield from _two_groups(root, settings, scale)
        yield from _small_reads(root, scale)
        yield from _passing(root, max(1, settings.rounds // 2), scale)


# --- Two groups -----------------------------------------------------------------------


def _two_groups(
    root: Path, settings: BenchSettings, scale: BenchScale
) -> Iterator[Measurement]:
    runs: dict[str, SchedulerRun] = {}
    for scheduler in scale.schedulers:
        runs[scheduler] = _run_groups(root / scheduler, scheduler, scale)
        yield from _group_measurements(scheduler, runs)
    if settings.output is not None:
        provenance = settings.provenance
        save(settings.output, runs, _WINDOW_S, _SIZE, _BOUNDS, provenance)


def _run_groups(root: Path, scheduler: str, scale: BenchScale) -> SchedulerRun:
    with scheduled_mount(root, scheduler, _SLOS, _CAPACITY) as point:
        begin = time.monotonic() + scale.ready
        rates = {"app1": _off_and_on(scale), "app2": _growing(scale)}
        plans = {
            name: _writers(point / name, begin, scale.run, rates[name])
            for name in _SLOS
        }
        with DepthRecorder(point, begin, _WINDOW_S) as recorder:
            answers = run_groups(plans)
    count = round(scale.run / _WINDOW_S)
    return SchedulerRun(
        windows(answers, _WINDOW_S, count, _WINDOW_REQUESTS), recorder.depths[:count]
    )


def _group_measurements(
    scheduler: str, runs: Mapping[str, SchedulerRun]
) -> Iterator[Measurement]:
    run, has_goal = runs[scheduler], scheduler == _OURS
    calm = compliance(run.windows, _BOUNDS, overloaded=False).values()
    kept = sum(kept for kept, _ in calm) / max(1, sum(count for _, count in calm))
    yield Measurement(
        f"{scheduler}: windows without overload with p95 in its bound",
        100.0 * kept,
        "%",
        least=95.0 if has_goal else -inf,
    )
    tight = compliance(run.windows, dict.fromkeys(_BOUNDS, _TIGHT_S), overloaded=True)
    for name, (kept, count) in tight.items():
        share = 100.0 * kept / max(1, count)
        yield Measurement(
            f"{scheduler}: overloaded windows with p95 of {name} in 100 ms", share, "%"
        )
    # If app2 is never within 100 ms, count it as a tenth of a window.
    ratio = tight["app1"][0] / (tight["app2"][0] or 0.1)
    yield Measurement(
        f"{scheduler}: overloaded windows in 100 ms, app1 / app2",
        ratio,
        "times",
        least=10.0 if has_goal else -inf,
        parts={name: float(kept) for name, (kept, _) in tight.items()},
    )
    yield Measurement(
        f"{scheduler}: throughput / that of {_BASELINE}",
        answered_requests(run.windows)
        / max(1, answered_requests(runs[_BASELINE].windows)),
        "",
        least=0.95 if has_goal else -inf,
    )


def _off_and_on(scale: BenchScale) -> _Rates:
    """Return the rate of app1: constant at first, then alternately off and on."""
    points: _Rates = ((0.0, 25e6), (scale.calm - 1e-6, 25e6), (scale.calm, 0.0))
    for turn in range(scale.turns):
        on = scale.calm + (2 * turn + 1) * scale.half
        off = on + scale.half
        points += (on - 1e-6, 0.0), (on, 50e6), (off - 1e-6, 50e6), (off, 0.0)
    return points


def _growing(scale: BenchScale) -> _Rates:
    """Return the rate of app2: constant at first, then growing."""
    return (0.0, 20e6), (scale.calm, 20e6), (scale.run, 50e6)


# --- Small reads ----------------------------------------------------------------------


class _SmallReads(NamedTuple):
    p95_s: float
    """95th percentile of the response times of the reader."""
    written: int
    """Number of requests answered to the writers."""


def _small_reads(root: Path, scale: BenchScale) -> Iterator[Measurement]:
    runs: dict[str, _SmallReads] = {}
    for scheduler in scale.schedulers:
        folder = root / f"small-{scheduler}"
        runs[scheduler] = run = _run_small_reads(folder, scheduler, scale)
        base, has_goal = runs[_BASELINE], scheduler == _OURS
        name = f"{scheduler}: reads of 4 KiB beside writers"
        yield Measurement(f"{name}, p95", run.p95_s * 1e3, "ms")
        yield Measurement(
            f"{name}, p95 of {_BASELINE} / p95",
            base.p95_s / run.p95_s,
            "times",
            least=10.0 if has_goal else -inf,
        )
        yield Measurement(
            f"{name}, writers / those of {_BASELINE}",
            run.written / max(1, base.written),
            "",
            least=0.95 if has_goal else -inf,
        )


def _run_small_reads(root: Path, scheduler: str, scale: BenchScale) -> _SmallReads:
    with scheduled_mount(root, scheduler, _SMALL_SLOS, _CAPACITY) as point:
        _create_file(root / "backing" / "reader", _SMALL_FILE_BYTES)
        begin = time.monotonic() + scale.ready
        plans = {
            "writer": _writers(point / "writer", begin, scale.small),
            "reader": ClientPlan(
                *((str(point / "reader"),), "read", _SMALL_BYTES, 1),
                *(begin, begin + scale.small),
                span=_SMALL_FILE_BYTES,
            ),
        }
        answers = run_groups(plans)
    times = [answer.answered - answer.issued for answer in answers["reader"]]
    written = sum(answer.answered <= scale.small for answer in answers["writer"])
    return _SmallReads(percentile(times), written)


def _create_file(folder: Path, size: int) -> None:
    """Create the file of the first reader."""
    (folder / "read-0").write_bytes(bytes(size))


# --- Passing --------------------------------------------------------------------------


def _passing(root: Path, rounds: int, scale: BenchScale) -> Iterator[Measurement]:
    """Yield the relative throughput for each request size and direction."""
    with ExitStack() as stack:
        slos = {"all": (1e9, 1.0)}
        points = {
            "scheduled": stack.enter_context(
                scheduled_mount(root / "scheduled", _OURS, slos)
            ),
            "plain": stack.enter_context(plain_mount(root / "plain")),
        }
        for name in points:
            _create_file(root / name / "backing", _PASS_FILE_BYTES)
        for size, least in _PASS_GOALS.items():
            for kind in _KINDS:
                best = dict.fromkeys(points, 0)
                for _ in range(rounds):
                    for name, point in points.items():
                        best[name] = max(
                            best[name], _count_requests(point, kind, size, scale)
                        )
                text = f"{kind}s of {format_volume(size)} scheduled / unscheduled"
                yield Measurement(
                    f"{_OURS}: {text}", best["scheduled"] / best["plain"], "", least
                )


def _count_requests(point: Path, kind: Kind, size: int, scale: BenchScale) -> int:
    """Return the number of requests of one process in a round."""
    begin = time.monotonic() + 0.3
    end = begin + scale.passing
    plan = ClientPlan((str(point),), kind, size, 1, begin, end, span=_PASS_FILE_BYTES)
    return len(run_groups({"": plan})[""])


# --- Clients --------------------------------------------------------------------------


def _writers(
    folder: Path, begin: float, run_s: float, rates: _Rates = ()
) -> ClientPlan:
    return ClientPlan(
        *((str(folder),), "write", _SIZE, _PROCESSES, begin, begin + run_s, rates),
        span=_SIZE,
    )
