# SPDX-License-Identifier: MIT
"""Policies side by side on the same instances, with the bound on MinYield."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from penstock.analysis import Bound, Metrics, measure, min_yield_bound
from penstock.errors import InternalError
from penstock.experiments.source import Source
from penstock.policies import get_policy
from penstock.sim import simulate, warm_up

__all__ = ["Outcome", "Report", "compare"]

#: Policies whose decisions take far longer than the others': begun first, so
#: that no worker is left alone with one at the end.
_SLOW_POLICIES = ("best-next-event",)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one policy did on one instance."""

    metrics: Metrics
    yields: tuple[float, ...]
    """Yield of every application at the end of the window."""
    events: int
    decisions: int
    seconds: float
    """Time the engine took (s)."""


@dataclass(slots=True)
class Report:
    """One instance: what it is, and what every policy did on it."""

    index: int
    pressure: float = 0.0
    window: tuple[float, float] = (0.0, 0.0)
    digest: str = ""
    bound: Bound | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is computed once per instance."""

    pressure: float
    window: tuple[float, float]
    digest: str
    bound: Bound | None


@dataclass(frozen=True, slots=True)
class _Task:
    source: Source
    index: int
    policy: str | None
    """None: the facts of the instance."""
    steady: bool
    bounded: bool

    def run(self) -> Outcome | _Facts:
        instance = self.source.instance(self.index)
        if self.policy is None:
            return _Facts(
                pressure=instance.pressure(),
                window=(instance.window.begin, instance.window.end),
                digest=instance.digest(),
                bound=min_yield_bound(instance) if self.bounded else None,
            )
        run = simulate(instance, self.policy, steady=self.steady)
        return Outcome(
            metrics=measure(run),
            yields=tuple(run.yields.tolist()),
            events=run.events,
            decisions=run.decisions,
            seconds=run.seconds,
        )


def compare(
    source: Source,
    policies: Sequence[str],
    *,
    steady: bool = True,
    bounded: bool = True,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Report]:
    """Simulate every policy on every instance of `source`.

    The result does not depend on `jobs` (but for `seconds`).

    Parameters
    ----------
    policies
        As for `penstock.policies.get_policy`.
    bounded
        Whether to compute the bound on MinYield.
    jobs
        Number of processes.
    progress
        Called with the number of tasks done and in all.
    """
    labels = {text: get_policy(text).label for text in policies}
    tasks = [
        _Task(source, index, policy, steady, bounded)
        for index in range(source.count)
        for policy in (*labels, None)
    ]
    # Longest first; a stable sort, so that a worker keeps its instance.
    tasks.sort(key=lambda task: not str(task.policy).startswith(_SLOW_POLICIES))
    reports = [Report(index) for index in range(source.count)]
    found: dict[tuple[int, str], Outcome] = {}
    progress(0, len(tasks))
    for done, (task, result) in enumerate(_results(tasks, jobs), start=1):
        if isinstance(result, Outcome):
            found[task.index, labels[str(task.policy)]] = result
        else:
            report = reports[task.index]
            report.pressure, report.window = result.pressure, result.window
            report.digest, report.bound = result.digest, result.bound
        progress(done, len(tasks))
    for report in reports:
        report.outcomes = {n: found[report.index, n] for n in labels.values()}
    return reports


def _results(
    tasks: Sequence[_Task], jobs: int
) -> Iterator[tuple[_Task, Outcome | _Facts]]:
    """Run the tasks, in this process or in `jobs` others, as they are done."""
    workers = min(jobs, len(tasks))
    if workers <= 1:
        for task in tasks:
            yield task, task.run()
        return
    # RATIONALE: not fork, as a progress display may run a thread in this process.
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(workers, context, initializer=warm_up) as pool:
        futures: dict[Future[Any], _Task] = {pool.submit(t.run): t for t in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise InternalError(
                "a worker process died (out of memory?); try --jobs 1"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
