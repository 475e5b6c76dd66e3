# SPDX-License-Identifier: MIT
"""Upper bound on MinYield (papers/1 eq. 8) that holds for every scheduler.

Rule. To have yield y at T_i, application i may lose at most (1 - y)(T_i - tau_i)
seconds. So its operation j, posted at r_ij and complete at c_ij in dedicated mode,
is never posted before r_ij and must be complete at

    d_ij = c_ij + slack_i(y),  slack_i(y) = (1 - y)(T_i - tau_i) - lost_i(start).

Only the volume needed to reach the yield counts. If no pre-emptive fluid schedule
with these releases and deadlines, caps b_i and capacity B exists, no scheduler
reaches y, whatever it knows. Bisection on y; the proof is in
``docs/background/bound.md``.

T_i is t_end. An application that finishes earlier keeps the yield that it has at
that instant (`Run.yields`): T_i = min(t_end, tau_i + X_i / y), where X_i is all the
progress that it can make.

Where storage has several targets they are taken for one that is as large as all of
them: no schedule becomes impossible, so the bound still holds.

Feasibility of one yield y, for n operations of m applications:

- every b_i = B: earliest deadline first, exact, O(n log m) (method "edf");
- else: maximum flow, exact, up to `FLOW_LIMIT` (method "flow");
- beyond: EDF with the caps ignored, weaker but still a bound ("edf-relaxed").
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

#: Most applications x operations for which maximum flows are computed.
FLOW_LIMIT: Final = 100_000

_EPSILON: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Bound:
    """What no scheduler can exceed."""

    min_yield: float
    """Upper bound on MinYield: the infeasible end of the bisection."""
    method: Method
    """How feasibility was decided: exactly ("edf", "flow") or "edf-relaxed"."""


def min_yield_bound(instance: Instance, *, tolerance: float = 1e-9) -> Bound:
    """Return an upper bound on the MinYield that any scheduler reaches.

    Parameters
    ----------
    instance
        May bring history, and applications that finish inside the window.
    tolerance
        The result exceeds the largest feasible target by this at most, rounding
        apart. Rounding is always granted to the scheduler, never taken from it.
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
    """Return an instance on one target that can do all that several can.

    Where they are shared by time: N of them do N seconds of I/O per second, of which
    application i takes up n_i while it moves b_i bytes.
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
    """Return `high` if feasible, else an infeasible target, `tolerance` off at most."""
    return _search(lambda target: -1.0 if feasible(target) else 1.0, high, tolerance)


def _search(late: Callable[[float], float], high: float, tolerance: float) -> float:
    """Bisect where `late` becomes positive; return the end where it is, or `high`.

    Every other step is one of regula falsi: lateness is close to linear in the
    target, so a third of the steps is enough. With -1 and 1 for values it is plain
    bisection. Only the sign decides, how good the guesses are does not matter.
    """
    if high <= 0 or (late_high := late(high)) <= 0:
        return high
    low, late_low = 0.0, -late_high
    interpolate = False
    while high - low > tolerance:
        guess = 0.5 * (low + high)
        if interpolate and late_low > -math.inf:
            guess = low + (high - low) * late_low / (late_low - late_high)
            # Off both ends: a guess that hits the limit must not stay one-sided.
            guess = max(low + 0.5 * tolerance, min(guess, high - 0.5 * tolerance))
        # Neighbours in double precision: no tolerance can be met any better.
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
    """What a target yield asks of the storage.

    Volumes are in seconds of the whole storage (volume / B): the capacity is 1,
    the cap of application i is its share b_i / B.
    """

    release: Column
    """r_ij: post of every operation in dedicated mode, ascending (s)."""
    complete: Column
    """c_ij: its completion in dedicated mode (s)."""
    volume: Column
    """Its volume (s of the whole storage)."""
    application: _Indices
    """The application that posts it."""
    following: _Indices
    """The next operation of the same application; none: any."""
    share: Column
    """b_i / B of every application."""
    tau: Column
    """Release of every application (s)."""
    lost: Column
    """Time that it lost before its start (s)."""
    finish: Column
    """When it finishes in dedicated mode (s)."""
    window_end: float
    """t_end (s)."""
    allowance: float
    """By how much rounding can make a deadline seem missed (s)."""

    @classmethod
    def of(cls, instance: Instance) -> Self:
        """Return the demand of `instance`."""
        end, bandwidth = instance.window.end, instance.platform.bandwidth
        columns = [_operations(a, cap, end) for a, cap in instance.with_caps()]
        release, complete, volume = (np.hstack(c) for c in zip(*columns, strict=True))
        counts = [len(posts) for posts, _, _ in columns]
        # Stable: equal releases of one application stay in its own order.
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
        """Return the smallest yield in dedicated mode: no schedule is needed yet."""
        age = np.minimum(self.window_end, self.finish) - self.tau
        # No age: an application without any phase, which bounds nothing.
        delay = np.divide(self.lost, age, out=np.zeros_like(age), where=age > 0)
        return min(1.0, 1.0 - float(delay.max()) + 4.0 * _EPSILON)

    def at(self, target: float) -> tuple[Column, Column]:
        """Return deadline (s) and volume needed of every operation at `target` > 0."""
        total = self.finish - self.tau - self.lost
        measured = np.minimum(self.window_end - self.tau, total / target)
        # Below 0 by rounding only: the target is at most `best_yield`.
        slack = np.maximum((1.0 - target) * measured - self.lost, 0.0)
        # When dedicated mode makes the progress needed: what is later is cut off.
        reached = (self.tau + measured - slack)[self.application]
        needed = self.share[self.application] * (reached - self.release)
        deadline = np.minimum(self.complete, reached)
        deadline += (slack + self.allowance)[self.application]
        return deadline, np.clip(needed, 0.0, self.volume)

    def lateness(self, target: float) -> float:
        """Return how late EDF is at worst (s), caps ignored; feasible if not > 0."""
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
        """Tell whether `target` is feasible, caps included."""
        deadline, needed = self.at(target)
        return flow_feasible(
            self.release, deadline, needed, self.application, self.share
        )


def _operations(
    application: Application, cap: float, end: float
) -> tuple[Column, Column, Column]:
    """Return dedicated post, completion and volume of what is posted before `end`."""
    times = application.dedicated_times(cap)
    posts, completions = times[:-1:2], times[1::2]
    count = int(np.searchsorted(posts, end))
    return posts[:count], completions[:count], application.volume[:count]


def _allowance(instance: Instance, operations: int) -> float:
    """Return what rounding may cost a schedule of `operations` operations (s).

    RATIONALE: a date is a sum of at most 2n terms, in dedicated mode and again in
    the schedule, each off by half a unit in the last place of the largest date. All
    of it is granted to every deadline: a target is refused only if exact arithmetic
    refuses it too.
    """
    dates = [instance.window.end, *(a.release for a in instance.applications)]
    return (2 * operations + 16) * _EPSILON * max(abs(date) for date in dates)
