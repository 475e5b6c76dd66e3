# SPDX-License-Identifier: MIT
"""Policies side by side on the same instances, with the bound on MinYield."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from penstock.analysis import Bound, Metrics, measure, min_yield_bound
from penstock.experiments.periods import check_periods
from penstock.experiments.runners.answers import Warn
from penstock.experiments.runners.local_pool import LocalPool
from penstock.experiments.source import Source
from penstock.model.documents import inside
from penstock.policies import get_policy
from penstock.sim import simulate

__all__ = ["InstanceComparison", "PolicyOutcome", "compare"]

#: Policies whose decisions take far longer than the others': begun first, so
#: that no worker is left alone with one at the end.
_SLOW_POLICIES = ("best-next-event",)


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """What one policy did on one instance."""

    metrics: Metrics
    yields: tuple[float, ...]
    """Yield of every application at the end of the window."""
    events: int
    decisions: int
    seconds: float
    """Time the engine took (s)."""


@dataclass(slots=True)
class InstanceComparison:
    """One instance: what it is, and what every policy did on it."""

    index: int
    pressure: float = 0.0
    window: tuple[float, float] = (0.0, 0.0)
    digest: str = ""
    bound: Bound | None = None
    applications: tuple[str, ...] = ()
    """Their names, in the order of all yields."""
    outcomes: dict[str, PolicyOutcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is computed once per instance."""

    pressure: float
    window: tuple[float, float]
    digest: str
    bound: Bound | None
    applications: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    source: Source
    index: int
    policy: str | None
    """None: the facts of the instance."""
    steady: bool
    bounded: bool

    @property
    def name(self) -> str:
        return f"{self.policy or 'the bound'} on instance {self.index}"

    def run(self) -> PolicyOutcome | _Facts:
        instance = self.source.instance(self.index)
        if self.policy is None:
            return _Facts(
                pressure=instance.pressure(),
                window=(instance.window.begin, instance.window.end),
                digest=instance.digest(),
                bound=min_yield_bound(instance) if self.bounded else None,
                applications=tuple(a.name for a in instance.applications),
            )
        with inside(self.source.place(self.index)):
            check_periods(instance, self.policy)
            run = simulate(instance, self.policy, steady=self.steady)
        return PolicyOutcome(
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
    progress: Callable[[float, float, str], None] = lambda *_: None,
) -> list[InstanceComparison]:
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
        Called with the number of tasks done and in all, and a message worth showing
        or "".
    """
    labels = {text: get_policy(text).label for text in policies}
    tasks = [
        _Task(source, index, policy, steady, bounded)
        for index in range(source.count)
        for policy in (*labels, None)
    ]
    # Longest first; a stable sort, so that a worker keeps its instance.
    tasks.sort(key=lambda task: not str(task.policy).startswith(_SLOW_POLICIES))
    reports = [InstanceComparison(index) for index in range(source.count)]
    found: dict[tuple[int, str], PolicyOutcome] = {}
    done = 0

    def show(message: str = "") -> None:
        progress(done, len(tasks), message)

    show()
    for task, result in _results(tasks, jobs, show):
        if isinstance(result, PolicyOutcome):
            found[task.index, labels[str(task.policy)]] = result
        else:
            report = reports[task.index]
            report.pressure, report.window = result.pressure, result.window
            report.digest, report.bound = result.digest, result.bound
            report.applications = result.applications
        done += 1
        show()
    for report in reports:
        report.outcomes = {n: found[report.index, n] for n in labels.values()}
    return reports


def _results(
    tasks: Sequence[_Task], jobs: int, warn: Warn
) -> Iterator[tuple[_Task, PolicyOutcome | _Facts]]:
    """Run the tasks, in this process or in `jobs` others, as they are done."""
    if min(jobs, len(tasks)) > 1:
        yield from LocalPool(jobs).run(tasks, warn)
        return
    for task in tasks:
        yield task, task.run()
