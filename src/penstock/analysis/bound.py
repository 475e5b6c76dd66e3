# SPDX-License-Identifier: MIT
"""Upper bound on MinYield (bandwidth sharing, equation 8) for every scheduler.

Rule. To have yield y at T_i, application i may lose at most (1 - y)(T_i - tau_i)
seconds. Its operation j is posted at r_ij and completes at c_ij in dedicated mode. No
scheduler posts it before r_ij, and it must complete at

    d_ij = c_ij + slack_i(y),  slack_i(y) = (1 - y)(T_i - tau_i) - lost_i(start).

Only the volume that is needed to reach the yield counts. If there is no pre-emptive
fluid schedule with these releases and deadlines, caps b_i and capacity B, then no
scheduler reaches y, even if it knows the future. Bisection on y gives the bound.
The proof is in ``docs/background/bound.md``.

T_i is t_end. An application that finishes earlier keeps the yield of that instant
(`Run.yields`): T_i = min(t_end, tau_i + X_i / y), where X_i is its total progress.

Several storage targets are replaced by one target with the sum of their bandwidths.
Every schedule remains possible, so the bound still holds.

Feasibility of one yield y, for n operations of m applications:

- if every b_i = B: earliest deadline first, exact, O(n log m) (method "edf");
- otherwise, up to `FLOW_LIMIT`: maximum flow, exact (method "flow");
- above that limit: EDF without caps, a weaker bound (method "edf-relaxed").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.analysis.bound_edf import lateness
from penstock.analysis.bound_flow import flow_feasible
from penstock.errors import InputError
from penstock.model import Application, Column, Instance, Platform, Sharing

__all__ = [
    "FLOW_LIMIT",
    "Bound",
    "Method",
    "StorageDemand",
    "bisect_target",
    "min_yield_bound",
    "pooled",
]

Method: TypeAlias = Literal["edf", "flow", "edf-relaxed"]
_Indices: TypeAlias = NDArray[np.int64]

#: Largest product of applications and operations for which maximum flow is used.
FLOW_LIMIT: Final = 100_000

_EPSILON: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound that no scheduler can exceed."""

    min_yield: float
    """Upper bound on MinYield: the infeasible end of the bisection."""
    method: Method
    """How feasibility was decided: exactly ("edf", "flow") or "edf-relaxed"."""


def min_yield_bound(instance: Instance, *, tolerance: float = 1e-9) -> Bound:
    """Return an upper bound on the MinYield of any scheduler.

    Parameters
    ----------
    instance
        Applications may have a past, and may finish inside the window.
    tolerance
        Largest difference between the result and the largest feasible yield.
        Rounding errors are added to the bound, so the bound is never too low.
    """
    if not tolerance > 0:
        raise InputError(
            f"{tolerance!r} is not a tolerance",
            where="tolerance",
            remedy="give a positive number",
        )
    instance = pooled(instance)
    demand = StorageDemand.of(instance)
    relaxed = _search(demand.lateness, demand.best_yield(), tolerance)
    if np.all(instance.caps == instance.platform.bandwidth):
        return Bound(relaxed, "edf")
    if len(demand.share) * len(demand.release) > FLOW_LIMIT:
        return Bound(relaxed, "edf-relaxed")
    return Bound(bisect_target(demand.flow_feasible, relaxed, tolerance), "flow")


def pooled(instance: Instance) -> Instance:
    """Return an equivalent or easier instance with a single target.

    N targets that are shared by time serve N seconds of I/O per second. Application i
    uses n_i of them while it transfers b_i bytes per second.
    """
    if instance.platform.sharing is Sharing.BANDWIDTH:
        return instance
    applications = tuple(
        replace(
            a,
            volume=a.volume * (len(a.targets) / cap),
            done_volume=a.done_volume * (len(a.targets) / cap),
            profile=np.array([float(len(a.targets))]),
            targets=(0,),
        )
        for a, cap in instance.with_caps()
    )
    targets = float(instance.platform.targets)
    return Instance(Platform(targets, targets), instance.window, applications)


def bisect_target(
    feasible: Callable[[float], bool], high: float, tolerance: float
) -> float:
    """Return `high` if it is feasible, otherwise the smallest infeasible target tried.

    The result exceeds the largest feasible target by at most `tolerance`.
    """
    return _search(lambda target: -1.0 if feasible(target) else 1.0, high, tolerance)


def _search(late: Callable[[float], float], high: float, tolerance: float) -> float:
    """Return the smallest target tried at which `late` is positive, or `high`.

    Every other step is a step of regula falsi: lateness is almost linear in the
    target, so a third of the steps is enough. If `late` returns only -1 and 1, this
    is plain bisection. Correctness depends only on the sign of `late`.
    """
    if high <= 0 or (late_high := late(high)) <= 0:
        return high
    low, late_low = 0.0, -late_high
    interpolate = False
    while high - low > tolerance:
        guess = 0.5 * (low + high)
        if interpolate and late_low > -math.inf:
            guess = low + (high - low) * late_low / (late_low - late_high)
            # Stay away from both ends, otherwise one end might never move.
            guess = max(low + 0.5 * tolerance, min(guess, high - 0.5 * tolerance))
        # low and high are neighbours in double precision: stop.
        if not low < guess < high:
            break
        late_guess = late(guess)
        if late_guess > 0:
            high, late_high = guess, late_guess
        else:
            low, late_low = guess, late_guess
        interpolate = not interpolate
    return high


@dataclass(frozen=True, eq=False, slots=True)
class StorageDemand:
    """The operations of an instance, from which deadlines for a target yield follow.

    Volumes are in seconds of the whole storage (volume / B). The capacity is then 1,
    and the cap of application i is its share b_i / B.
    """

    release: Column
    """r_ij: when each operation is posted in dedicated mode, ascending (s)."""
    complete: Column
    """c_ij: when each operation completes in dedicated mode (s)."""
    volume: Column
    """Volume of each operation (s of the whole storage)."""
    application: _Indices
    """Application that posts each operation."""
    following: _Indices
    """Next operation of the same application; arbitrary for the last one."""
    share: Column
    """b_i / B of every application."""
    tau: Column
    """Release of every application (s)."""
    lost: Column
    """Time that every application lost before its start (s)."""
    finish: Column
    """When every application finishes in dedicated mode (s)."""
    window_end: float
    """t_end (s)."""
    allowance: float
    """Largest effect of rounding on a deadline (s); added to every deadline."""

    @classmethod
    def of(cls, instance: Instance) -> Self:
        """Return the demand of `instance`."""
        end, bandwidth = instance.window.end, instance.platform.bandwidth
        columns = [_operations(a, cap, end) for a, cap in instance.with_caps()]
        release, complete, volume = (np.hstack(c) for c in zip(*columns, strict=True))
        counts = [len(posts) for posts, _, _ in columns]
        # Stable, so that equal releases of one application stay in its order.
        order = np.argsort(release, kind="stable")
        application = np.repeat(np.arange(len(counts)), counts)[order]
        by_application = np.argsort(application, kind="stable")
        following = np.empty_like(by_application)
        following[by_application] = np.roll(by_application, -1)
        return cls(
            release=release[order],
            complete=complete[order],
            volume=volume[order] / bandwidth,
            application=application,
            following=following,
            share=instance.caps / bandwidth,
            tau=np.array([a.release for a in instance.applications]),
            lost=np.array([a.lost_at_start(cap) for a, cap in instance.with_caps()]),
            finish=np.array(
                [a.dedicated_times(cap)[-1] for a, cap in instance.with_caps()]
            ),
            window_end=end,
            allowance=_allowance(instance, len(release)),
        )

    def best_yield(self) -> float:
        """Return the smallest yield in dedicated mode: an upper bound by itself."""
        age = np.minimum(self.window_end, self.finish) - self.tau
        # An application without phases has age 0 and does not limit the bound.
        delay = np.divide(self.lost, age, out=np.zeros_like(age), where=age > 0)
        return min(1.0, 1.0 - float(delay.max()) + 4.0 * _EPSILON)

    def at(self, target: float) -> tuple[Column, Column]:
        """Return deadline and needed volume of every operation for a yield > 0.

        Both are in seconds: volumes are seconds of the whole storage.
        """
        total = self.finish - self.tau - self.lost
        measured = np.minimum(self.window_end - self.tau, total / target)
        # Negative only by rounding, because the target is at most `best_yield`.
        slack = np.maximum((1.0 - target) * measured - self.lost, 0.0)
        # When dedicated mode reaches the needed progress; later volume is not needed.
        reached = (self.tau + measured - slack)[self.application]
        needed = self.share[self.application] * (reached - self.release)
        deadline = np.minimum(self.complete, reached)
        deadline += (slack + self.allowance)[self.application]
        return deadline, np.clip(needed, 0.0, self.volume)

    def lateness(self, target: float) -> float:
        """Return the largest lateness of EDF without caps (s); feasible if <= 0."""
        return float(
            lateness(
                self.release,
                *self.at(target),
                self.application,
                self.following,
                len(self.share),
            )
        )

    def flow_feasible(self, target: float) -> bool:
        """Return True if the yield `target` is feasible with the caps."""
        deadline, needed = self.at(target)
        return flow_feasible(
            self.release, deadline, needed, self.application, self.share
        )


def _operations(
    application: Application, cap: float, end: float
) -> tuple[Column, Column, Column]:
    """Return post time, completion time and volume of the operations before `end`.

    The times are those of dedicated mode.
    """
    times = application.dedicated_times(cap)
    posts, completions = times[:-1:2], times[1::2]
    count = int(np.searchsorted(posts, end))
    return posts[:count], completions[:count], application.volume[:count]


def _allowance(instance: Instance, operations: int) -> float:
    """Return the largest rounding error of a time in the schedule (s).

    RATIONALE: a time is a sum of at most 2n terms, in dedicated mode and again in
    the schedule. Each term has an error of half a unit in the last place of the
    largest time. The total is added to every deadline, so a yield is infeasible only
    if it is infeasible in exact arithmetic.
    """
    dates = [instance.window.end, *(a.release for a in instance.applications)]
    return (2 * operations + 16) * _EPSILON * max(abs(date) for date in dates)
