# SPDX-License-Identifier: MIT
"""A batch schedule of random APEX jobs, placed first fit.

Bandwidth sharing, section 6.3.1.

Rule
    The wanted number of jobs of a class is
    ``share x nodes x 2 x days / (walltime x nodes of a mean job)``. Draw a class with
    probability proportional to (wanted - placed)+ and a job of this class. Place the
    job at the first instant from which its nodes are free for its whole duration. Stop
    when every class is within 10 % of its wanted number and the first free slot is
    later than `days`. Cores and duration of a job are those of its class with noise:
    noisy(v) = max(.95 v, N(v, .1 v)).

Readings
    - Only the number of free nodes is tracked. If a schedule never uses more nodes than
      exist, every job can be assigned fixed nodes: jobs are intervals, so assign nodes
      in the order of their begins.
    - The first free slot is the first instant at which the smallest job that the
      noise admits (.95 v), of any class, would be placed.
    - Durations are whole seconds, rounded up, as in the authors' program. Events at
      the same instant are therefore exactly equal.
    - The factor 2 of `days`: the authors' program wants the jobs of 180 days, because
      the shares of the table sum to only 0.48 (NERSC) and 0.36 (TRILAB). When all jobs
      are placed and a slot is still free, every wanted number grows by a tenth, which
      keeps the mix.
    - A class is also balanced if its number differs by less than one job: neither 4
      nor 5 is within 10 % of 4.49 (VPIC on M_2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from penstock.errors import InternalError
from penstock.kernels import kernel
from penstock.model import Column
from penstock.workloads.apex.table import JobClass, Machine

__all__ = ["Schedule", "draw_schedule", "wanted_jobs"]

_Indices: TypeAlias = NDArray[np.int64]

_FLOOR: Final = 0.95
_SPREAD: Final = 0.1
_TOLERANCE: Final = 0.1
_GROWTH: Final = 1.1
_DAY_S: Final = 86_400.0
#: Number of jobs whose random numbers are drawn at once.
_BLOCK: Final = 4096


@dataclass(frozen=True, eq=False, slots=True)
class Schedule:
    """The jobs of a schedule, in the order of their placement."""

    job_class: _Indices
    """Index of the class of every job."""
    nodes: _Indices
    begin: Column
    """Instant at which every job begins (s)."""
    end: Column
    """Instant at which every job ends if nothing delays it (s)."""

    def windows(self, days: float) -> NDArray[np.float64]:
        """Return [begin, end] of the windows within [0, days], longest first.

        A window is the interval between two consecutive begins or ends of jobs. Of two
        windows with the same length, the earlier one comes first.
        """
        events = np.unique(np.concatenate([self.begin, self.end]))
        events = events[events <= days * _DAY_S]
        order = np.argsort(-np.diff(events), kind="stable")
        return np.stack([events[:-1], events[1:]], axis=1)[order]


class _Mix(NamedTuple):
    """The classes as columns, with the numbers of wanted and placed jobs."""

    need: Column
    """Nodes of a mean job, not rounded."""
    walltime_s: Column
    """Duration of a mean job (s)."""
    wanted: Column
    placed: _Indices
    first: _Indices
    """First interval of the profile in which the smallest job of the class may fit."""


class _Profile(NamedTuple):
    """Free nodes over time: `free[k]` nodes from `times[k]` to `times[k + 1]`."""

    times: Column
    free: _Indices
    size: _Indices
    """Number of intervals, as an array with one entry."""


def wanted_jobs(
    classes: Sequence[JobClass], machine: Machine, days: float
) -> list[float]:
    """Return the initial wanted number of jobs of every class."""
    node_seconds = machine.nodes * 2.0 * days * _DAY_S
    mean_nodes = [math.ceil(c.cores / machine.cores_per_node) for c in classes]
    return [
        c.share * node_seconds / (c.walltime_s * nodes)
        for c, nodes in zip(classes, mean_nodes, strict=True)
    ]


def draw_schedule(
    classes: Sequence[JobClass], machine: Machine, days: float, generator: Generator
) -> Schedule:
    """Draw jobs of `classes` and place them until `days` of `machine` are full."""
    mix = _Mix(
        need=np.array([c.cores / machine.cores_per_node for c in classes]),
        walltime_s=np.array([c.walltime_s for c in classes]),
        wanted=np.array(wanted_jobs(classes, machine, days)),
        placed=np.zeros(len(classes), dtype=np.int64),
        first=np.zeros(len(classes), dtype=np.int64),
    )
    profile = _Profile(np.zeros(1), np.array([machine.nodes]), np.array([1]))
    columns: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    count = _BLOCK
    while count == _BLOCK:
        choices = generator.uniform(size=_BLOCK)
        noise = np.maximum(_FLOOR, generator.normal(1.0, _SPREAD, size=(2, _BLOCK)))
        if noise[0].max() * mix.need.max() > machine.nodes:
            # On the machines of the paper this takes more than 30 standard deviations.
            raise InternalError(f"a job does not fit on {machine.nodes} nodes")
        profile = _with_room(profile, _BLOCK)
        whole = np.empty((2, _BLOCK), dtype=np.int64)
        times = np.empty((2, _BLOCK))
        count = _fill(mix, profile, days * _DAY_S, choices, noise, whole, times)
        columns.append((whole[:, :count], times[:, :count]))
    job_class, nodes = np.concatenate([whole for whole, _ in columns], axis=1)
    begin, end = np.concatenate([times for _, times in columns], axis=1)
    return Schedule(job_class, nodes, begin, end)


def _with_room(profile: _Profile, count: int) -> _Profile:
    """Return `profile` with space for `count` more intervals."""
    size = int(profile.size[0])
    times, free = np.empty(size + count), np.empty(size + count, dtype=np.int64)
    times[:size], free[:size] = profile.times[:size], profile.free[:size]
    return _Profile(times, free, profile.size)


@kernel
def _fill(
    mix: _Mix,
    profile: _Profile,
    horizon: float,
    choices: Column,
    noise: NDArray[np.float64],
    whole: NDArray[np.int64],
    times: NDArray[np.float64],
) -> int:
    """Place one job per random number; return the number of placed jobs.

    Writes class and nodes of every job to `whole`, begin and end to `times`.
    """
    for n in range(len(choices)):
        if _is_balanced(mix) and _first_free_slot(mix, profile) >= horizon:
            return n
        c = _choose(mix, choices[n])
        nodes = math.ceil(mix.need[c] * noise[0, n])
        duration = float(math.ceil(mix.walltime_s[c] * noise[1, n]))
        k = _advance_and_find(mix, profile, c, nodes, duration)
        whole[0, n], whole[1, n] = c, nodes
        times[0, n], times[1, n] = profile.times[k], profile.times[k] + duration
        _reserve(profile, k, nodes, duration)
        mix.placed[c] += 1
    return len(choices)


@kernel
def _is_balanced(mix: _Mix) -> bool:
    """Return True if every class is within 10 % of its wanted number, or one job."""
    for c in range(len(mix.wanted)):
        off = abs(mix.placed[c] - mix.wanted[c])
        if off >= 1.0 and off > _TOLERANCE * mix.wanted[c]:
            return False
    return True


@kernel
def _choose(mix: _Mix, share: float) -> int:
    """Return the class at the fraction `share` of the jobs that remain to be placed."""
    left = 0.0
    while left == 0.0:
        for c in range(len(mix.wanted)):
            left += max(mix.wanted[c] - mix.placed[c], 0.0)
        if left == 0.0:
            for c in range(len(mix.wanted)):
                mix.wanted[c] *= _GROWTH
    left *= share
    last = 0
    for c in range(len(mix.wanted)):
        own = max(mix.wanted[c] - mix.placed[c], 0.0)
        if own > 0.0:
            last = c
            if left < own:
                break
            left -= own
    return last


@kernel
def _first_free_slot(mix: _Mix, profile: _Profile) -> float:
    """Return the earliest possible begin of the smallest job of any class."""
    slot = np.inf
    for c in range(len(mix.first)):
        _advance(mix, profile, c)
        slot = min(slot, profile.times[mix.first[c]])
    return slot


@kernel
def _advance(mix: _Mix, profile: _Profile, c: int) -> None:
    """Set `first` of class `c` to the interval in which its smallest job would begin.

    Nodes are never freed, so no job of the class can begin earlier from now on, and
    full intervals are searched only once. If an interval is inserted before `first`,
    the search begins one interval too early, which is harmless.
    """
    nodes = math.ceil(mix.need[c] * _FLOOR)
    duration = float(math.ceil(mix.walltime_s[c] * _FLOOR))
    mix.first[c] = _earliest(profile, mix.first[c], nodes, duration)


@kernel
def _advance_and_find(
    mix: _Mix, profile: _Profile, c: int, nodes: int, duration: float
) -> int:
    """Do as `_advance`, and return the interval in which a job of the class can begin.

    NOTE: one pass over the intervals instead of two: the job needs at least what the
    smallest job of its class needs, so where that one cannot begin, it cannot either.
    """
    times, free, size = profile.times, profile.free, profile.size[0]
    least = math.ceil(mix.need[c] * _FLOOR)
    shortest = float(math.ceil(mix.walltime_s[c] * _FLOOR))
    first = int(mix.first[c])
    k = j = first
    first_end, end = times[first] + shortest, times[k] + duration
    while j < size and times[j] < end:
        if free[j] < nodes:
            k = j + 1
            end = times[k] + duration
            if free[j] < least and times[j] < first_end:
                first, first_end = k, times[k] + shortest
        j += 1
    mix.first[c] = first
    return k


@kernel
def _earliest(profile: _Profile, k: int, nodes: int, duration: float) -> int:
    """Return the first interval from `k` on at which a job can begin.

    NOTE: the earliest possible begin is always the begin of an interval, because that
    is where nodes become free.
    """
    j = k
    while j < profile.size[0] and profile.times[j] < profile.times[k] + duration:
        if profile.free[j] < nodes:
            k = j + 1
        j += 1
    return k


@kernel
def _reserve(profile: _Profile, k: int, nodes: int, duration: float) -> None:
    """Reserve `nodes` for `duration`, starting at the begin of interval `k`."""
    times, free = profile.times, profile.free
    size = int(profile.size[0])
    end = times[k] + duration
    j = k
    while j < size and times[j] < end:
        free[j] -= nodes
        j += 1
    if j == size or times[j] > end:
        for i in range(size, j, -1):
            times[i], free[i] = times[i - 1], free[i - 1]
        times[j], free[j] = end, free[j - 1] + nodes
        profile.size[0] = size + 1
