# SPDX-License-Identifier: MIT
"""Throughput and latency of real processes on a real mount, with each scheduler.

*Two groups*: the experiment of papers/5 section 4.2, shorter. 32 processes each write
1 MB at a time through a mount of 50 MB/s. app1 is promised 40 MB/s within 100 ms and is
off and on in turn, at 50 MB/s; app2 is promised 20 MB/s within 300 ms, and its rate
grows from 20 to 50 MB/s. Before that, both keep below what they are promised and 50
MB/s together. The mount is *overloaded* in a second if more requests are under way
in it than it can serve meanwhile.

*Small reads*: one process reads 4 KiB anywhere in a file, while 32 write 1 MB at a time
as fast as they can.

*Passing*: bandwidth through a mount that schedules, without a limit, over that of a
pass-through which does not (`plain`), rounds interleaved, the best of each.

Times are taken by the clients. With ``--output DIR``: all windows (``slo.json``), and
rates, response times and depth drawn (``slo.svg``).
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

from penstock.bench import Figure, Setting
from penstock.bench.slo.clients import ClientPlan, Kind, finish, start, stop
from penstock.bench.slo.mounts import Watch, plain_mount, scheduled_mount
from penstock.bench.slo.report import SchedulerRun, save
from penstock.bench.slo.windows import (
    AnsweredRequest,
    compliance,
    moved,
    windows,
)
from penstock.qos.feedback import percentile
from penstock.units import format_volume

__all__ = ["BenchScale", "measure"]

_Rates: TypeAlias = tuple[tuple[float, float], ...]

_BASELINE, _OURS = "fifo", "two-level"
_CAPACITY: Final = 50e6
_SIZE: Final = 1_000_000
_PROCESSES: Final = 32
#: Of this length are the windows of papers/5 Figure 5.
_WINDOW_S: Final = 1.0
_WINDOW_REQUESTS: Final = _CAPACITY * _WINDOW_S / _SIZE
_PROMISES: Final = {"app1": (40e6, 0.1), "app2": (20e6, 0.3)}
_BOUNDS: Final = {name: latency for name, (_, latency) in _PROMISES.items()}
_TIGHT_S: Final = min(_BOUNDS.values())
_SMALL: Final = {"reader": (1e6, 0.05), "writer": (45e6, 2.0)}
_SMALL_SIZE: Final = 4096
_SMALL_SPAN: Final = 16 << 20

_KINDS: Final[tuple[Kind, ...]] = ("write", "read")
_PASS_SPAN: Final = 4 << 20
#: Size of a request -> least share of what an unscheduled mount passes.
_PASS_GOALS: Final = {1 << 20: 0.85, 4096: 0.60}


@dataclass(frozen=True)
class BenchScale:
    """How much is done, and how long it lasts (s)."""

    schedulers: tuple[str, ...] = (_BASELINE, "sfq", "edf", _OURS)
    ready: float = 2.0
    """From the start of the clients to their beginning."""
    calm: float = 6.0
    """Two groups: both keep to their promises,"""
    half: float = 8.0
    """then app1 is off for so long, then on;"""
    turns: int = 2
    """so many times."""
    small: float = 5.0
    """Small reads, with each scheduler."""
    passing: float = 0.4
    """One round of passing."""

    @property
    def run(self) -> float:
        """Two groups, with each scheduler."""
        return self.calm + 2 * self.half * self.turns


_SCALE: Final = BenchScale()


def measure(setting: Setting, scale: BenchScale = _SCALE) -> Iterator[Figure]:
    """Yield all figures."""
    with tempfile.TemporaryDirectory(dir=setting.folder, prefix="penstock-") as name:
        root = Path(name)
        yield from _two_groups(root, setting, scale)
        yield from _small_reads(root, scale)
        yield from _passing(root, max(1, setting.rounds // 2), scale)


# --- Two groups -----------------------------------------------------------------------


def _two_groups(root: Path, setting: Setting, scale: BenchScale) -> Iterator[Figure]:
    runs: dict[str, SchedulerRun] = {}
    for scheduler in scale.schedulers:
        runs[scheduler] = _groups_run(root / scheduler, scheduler, scale)
        yield from _groups_figures(scheduler, runs)
    if setting.output is not None:
        made_by = setting.provenance
        save(setting.output, runs, _WINDOW_S, _SIZE, _BOUNDS, made_by)


def _groups_run(root: Path, scheduler: str, scale: BenchScale) -> SchedulerRun:
    with scheduled_mount(root, scheduler, _PROMISES, _CAPACITY) as point:
        begin = time.monotonic() + scale.ready
        rates = {"app1": _off_and_on(scale), "app2": _growing(scale)}
        plans = {
            name: _writers(point / name, begin, scale.run, rates[name])
            for name in _PROMISES
        }
        with Watch(point, begin, _WINDOW_S) as watch:
            found = _answers(plans)
    count = round(scale.run / _WINDOW_S)
    return SchedulerRun(
        windows(found, _WINDOW_S, count, _WINDOW_REQUESTS), watch.depths[:count]
    )


def _groups_figures(
    scheduler: str, runs: Mapping[str, SchedulerRun]
) -> Iterator[Figure]:
    run, ours = runs[scheduler], scheduler == _OURS
    calm = compliance(run.windows, _BOUNDS, overloaded=False).values()
    kept = sum(kept for kept, _ in calm) / max(1, sum(count for _, count in calm))
    yield Figure(
        f"{scheduler}: not overloaded, p95 in bound",
        100.0 * kept,
        "%",
        least=95.0 if ours else -inf,
    )
    tight = compliance(run.windows, dict.fromkeys(_BOUNDS, _TIGHT_S), overloaded=True)
    for name, (kept, count) in tight.items():
        share = 100.0 * kept / max(1, count)
        yield Figure(f"{scheduler}: overloaded, {name} p95 in 100 ms", share, "%")
    # If app2 never has it, each window in which app1 has it counts as ten times.
    often = tight["app1"][0] / (tight["app2"][0] or 0.1)
    yield Figure(
        f"{scheduler}: overloaded, 100 ms for app1 over app2",
        often,
        "times",
        least=10.0 if ours else -inf,
        parts={name: float(kept) for name, (kept, _) in tight.items()},
    )
    yield Figure(
        f"{scheduler}: throughput over {_BASELINE}",
        moved(run.windows) / moved(runs[_BASELINE].windows),
        "",
        least=0.95 if ours else -inf,
    )


def _off_and_on(scale: BenchScale) -> _Rates:
    """Return the rate of app1: calm; then off and on, with (nearly) upright flanks."""
    points: _Rates = ((0.0, 25e6), (scale.calm - 1e-6, 25e6), (scale.calm, 0.0))
    for turn in range(scale.turns):
        on = scale.calm + (2 * turn + 1) * scale.half
        off = on + scale.half
        points += (on - 1e-6, 0.0), (on, 50e6), (off - 1e-6, 50e6), (off, 0.0)
    return points


def _growing(scale: BenchScale) -> _Rates:
    """Return the rate of app2."""
    return (0.0, 20e6), (scale.calm, 20e6), (scale.run, 50e6)


# --- Small reads ----------------------------------------------------------------------


class _Small(NamedTuple):
    p95_s: float
    """Of the reader."""
    written: int
    """Requests of the writers."""


def _small_reads(root: Path, scale: BenchScale) -> Iterator[Figure]:
    runs: dict[str, _Small] = {}
    for scheduler in scale.schedulers:
        place = root / f"small-{scheduler}"
        runs[scheduler] = run = _small_run(place, scheduler, scale)
        base, ours = runs[_BASELINE], scheduler == _OURS
        name = f"{scheduler}: reads of 4 KiB beside writers"
        yield Figure(f"{name}, p95", run.p95_s * 1e3, "ms")
        yield Figure(
            f"{name}, p95 of {_BASELINE} over it",
            base.p95_s / run.p95_s,
            "times",
            least=10.0 if ours else -inf,
        )
        yield Figure(
            f"{name}, writers over {_BASELINE}",
            run.written / base.written,
            "",
            least=0.95 if ours else -inf,
        )


def _small_run(root: Path, scheduler: str, scale: BenchScale) -> _Small:
    with scheduled_mount(root, scheduler, _SMALL, _CAPACITY) as point:
        _prepare(root / "backing" / "reader", _SMALL_SPAN)
        begin = time.monotonic() + scale.ready
        plans = {
            "writer": _writers(point / "writer", begin, scale.small),
            "reader": ClientPlan(
                *(str(point / "reader"), "read", _SMALL_SIZE, 1),
                *(begin, begin + scale.small),
                span=_SMALL_SPAN,
            ),
        }
        found = _answers(plans)
    times = [answer.answered - answer.issued for answer in found["reader"]]
    written = sum(answer.answered <= scale.small for answer in found["writer"])
    return _Small(percentile(times), written)


def _prepare(folder: Path, size: int) -> None:
    """Make the file of the first reader."""
    (folder / "read-0").write_bytes(bytes(size))


# --- Passing --------------------------------------------------------------------------


def _passing(root: Path, rounds: int, scale: BenchScale) -> Iterator[Figure]:
    """Yield what passes through both mounts, for each size and direction."""
    with ExitStack() as stack:
        promises = {"all": (1e9, 1.0)}
        points = {
            "scheduled": stack.enter_context(
                scheduled_mount(root / "scheduled", _OURS, promises)
            ),
            "plain": stack.enter_context(plain_mount(root / "plain")),
        }
        for name in points:
            _prepare(root / name / "backing", _PASS_SPAN)
        for size, least in _PASS_GOALS.items():
            for kind in _KINDS:
                best = dict.fromkeys(points, 0)
                for _ in range(rounds):
                    for name, point in points.items():
                        best[name] = max(best[name], _passed(point, kind, size, scale))
                text = f"{kind}s of {format_volume(size)} passed over unscheduled"
                yield Figure(
                    f"{_OURS}: {text}", best["scheduled"] / best["plain"], "", least
                )


def _passed(point: Path, kind: Kind, size: int, scale: BenchScale) -> int:
    """Return how many requests one process gets through in a round."""
    begin = time.monotonic() + 0.3
    end = begin + scale.passing
    plan = ClientPlan(str(point), kind, size, 1, begin, end, span=_PASS_SPAN)
    return len(_answers({"": plan})[""])


# --- Clients --------------------------------------------------------------------------


def _writers(
    folder: Path, begin: float, run_s: float, rates: _Rates = ()
) -> ClientPlan:
    return ClientPlan(
        *(str(folder), "write", _SIZE, _PROCESSES, begin, begin + run_s, rates),
        span=_SIZE,
    )


def _answers(plans: Mapping[str, ClientPlan]) -> dict[str, list[AnsweredRequest]]:
    """Let groups run side by side; return the answers that each of them got."""
    with ExitStack() as stack:
        started = {}
        for name, plan in plans.items():
            started[name] = start(plan)
            stack.callback(stop, started[name])
        return {name: finish(started[name], plan) for name, plan in plans.items()}
