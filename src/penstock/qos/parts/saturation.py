# SPDX-License-Identifier: MIT
"""Find the least depth at which the storage reaches its full throughput.

While requests wait, the storage is saturated, and what it does in a window is what it
can do at the current depth. The search tries the depths 1, 2, 4, ..., 1024:

- both neighbours of the best known depth, until they have been measured;
- after that one neighbour in every 16 windows, because the capacity may change.

A depth is better than another if it moves at least 5 % more bytes and does not answer
5 % fewer requests, or if it answers at least 5 % more requests and moves 2 % more
bytes. (More bytes for fewer requests only means that larger requests were served, and
more requests for the same bytes that smaller ones were.) The best depth is found from
depth 1 upwards: a deeper one replaces the best so far only if it is better.

`set_holding_depth` takes the depth from the search and from the feedback
(`penstock.qos.parts.feedback`).

Several mounts in front of one storage. Requests of all mounts wait for each other at
the storage, but each mount measures its own applications only. So mounts tell each
other, through the controller, the slack factors E_i of their applications
(`penstock.qos.credit`). E = min_i E_i over the other mounts is the factor by which the
number of requests at the storage may change. In each window every mount multiplies its
own depth by E ** g, down to 1, and not below what its promises need.

Why this is stable: a storage that serves one request after the other, s seconds each,
has T = s L with L the sum of the depths, so E = D / (s L). With x = log L and
r = log(D / s) a window changes x by g (r - x), x being d windows old. This converges to
L = D / s if and only if g < 2 sin(pi / (4 d + 2)): 1 for d = 1, 0.618 for d = 2. A
measurement is one to two windows old. With g = 1/4 (`_GAIN`) the distance shrinks per
window by a factor of 0.5 for d = 1 and 0.77 for d = 2.

Source: not in two-level scheduling, which makes the depth infinite under overload
(``overload=send``).
"""

from __future__ import annotations

from math import ceil, inf
from typing import Final

from penstock.columns import exact_sum
from penstock.kernels import part
from penstock.qos.parts.feedback import completed_requests, storage_time_s
from penstock.qos.parts.holding import is_short_of_capacity
from penstock.qos.parts.promises import has_rivals, set_capacity
from penstock.qos.state import (
    CLASSES,
    DECIDED_DEPTH,
    DEPTH,
    LATENCY_DEPTH,
    LEVELS,
    MAX_OUTSTANDING,
    MOVED_BYTES,
    PACE_ANSWERS,
    PACE_BUSY_S,
    PACE_BYTES,
    PACE_LEVEL,
    PACES,
    RIVALS_SLACK,
    SAMPLES,
    SATURATED,
    SATURATED_CREDIT_S,
    SHARED_DEPTH,
    THRESHOLD,
    TOTAL_BYTES_PER_S,
    WAITING,
    SchedulerState,
)

__all__ = [
    "best_level",
    "capacity_bytes_per_s",
    "next_depth",
    "record_pace",
    "set_holding_depth",
    "shared_depth",
]

#: A ratio from which one pace counts as higher than another.
_MIN_GAIN: Final = 1.05
#: The ratio of the bytes from which more requests count as a gain.
_MIN_BYTES_GAIN: Final = 1.02
#: A pace is measured over at least so many answers.
_MIN_ANSWERS: Final = 16
#: Weight of the newest measurement in the moving average.
_NEWEST_WEIGHT: Final = 0.3
#: One window in this many tries a neighbour of the best depth.
_TRY_EVERY: Final = 16
#: Exponent of the slack factor of other mounts in a step of the depth.
_GAIN: Final = 0.25


@part
def _is_measured(state: SchedulerState, level: int) -> bool:
    """Return True if the pace at the depth 2**level is known."""
    return state.pace_bytes_per_s[level] > 0.0


@part
def _beats(state: SchedulerState, level: int, other: int) -> bool:
    """Return True if the pace at a level is higher, by the rule of the module."""
    moved = state.pace_bytes_per_s[level] / state.pace_bytes_per_s[other]
    answered = state.pace_requests_per_s[level] / state.pace_requests_per_s[other]
    more_bytes = moved >= _MIN_GAIN and answered > 1 / _MIN_GAIN
    return more_bytes or (answered >= _MIN_GAIN and moved >= _MIN_BYTES_GAIN)


@part
def record_pace(
    state: SchedulerState,
    depth: float,
    moved_bytes: float,
    answered: int,
    busy_s: float,
) -> None:
    """Record a window in which requests waited and the storage was busy for `busy_s`.

    Windows at one depth are added up until enough requests have been answered: a large
    request counts as a whole when it is complete.
    """
    counter, value = state.counter, state.value
    level = 0
    while level < LEVELS - 1 and depth >= 2 << level:
        level += 1
    if level != counter[PACE_LEVEL]:
        counter[PACE_LEVEL] = level
        _clear_sums(state)
    value[PACE_BYTES] += moved_bytes
    counter[PACE_ANSWERS] += answered
    value[PACE_BUSY_S] += busy_s
    enough = max(_MIN_ANSWERS, 2 << level)
    if counter[PACE_ANSWERS] < enough or value[PACE_BYTES] <= 0.0:
        return
    bytes_per_s = value[PACE_BYTES] / value[PACE_BUSY_S]
    requests_per_s = counter[PACE_ANSWERS] / value[PACE_BUSY_S]
    if _is_measured(state, level):
        old_bytes, old_requests = (
            state.pace_bytes_per_s[level],
            state.pace_requests_per_s[level],
        )
        bytes_per_s = old_bytes + _NEWEST_WEIGHT * (bytes_per_s - old_bytes)
        requests_per_s = old_requests + _NEWEST_WEIGHT * (requests_per_s - old_requests)
    state.pace_bytes_per_s[level] = bytes_per_s
    state.pace_requests_per_s[level] = requests_per_s
    counter[PACES] += 1
    _clear_sums(state)


@part
def _clear_sums(state: SchedulerState) -> None:
    """Begin a new pace."""
    state.value[PACE_BYTES] = 0.0
    state.counter[PACE_ANSWERS] = 0
    state.value[PACE_BUSY_S] = 0.0


@part
def _depth_of(level: int) -> float:
    """Return 2**level."""
    return float(1 << level)


@part
def next_depth(state: SchedulerState) -> float:
    """Return the depth for the next window: the best one, or one to be tried."""
    best = best_level(state)
    if _is_measured(state, best):
        if best > 0 and not _is_measured(state, best - 1):
            return _depth_of(best - 1)
        if best < LEVELS - 1 and not _is_measured(state, best + 1):
            return _depth_of(best + 1)
    if state.counter[PACES] % _TRY_EVERY == _TRY_EVERY - 1:
        # Below and above the best depth, alternately.
        if state.counter[PACES] // _TRY_EVERY % 2:
            return _depth_of(min(best + 1, LEVELS - 1))
        return _depth_of(max(best - 1, 0))
    return _depth_of(best)


@part
def capacity_bytes_per_s(state: SchedulerState) -> float:
    """Return the highest recent throughput near the best depth; 0: unknown."""
    best = best_level(state)
    highest = 0.0
    for level in range(max(best - 1, 0), min(best + 2, LEVELS)):
        highest = max(highest, state.pace_bytes_per_s[level])
    return highest


@part
def best_level(state: SchedulerState) -> int:
    """Return log2 of the best depth."""
    best = -1
    for level in range(LEVELS):
        if _is_measured(state, level) and (best < 0 or _beats(state, level, best)):
            best = level
    return max(best, 0)


# --- The depth with overload=hold -------------------------------------------------


@part
def set_holding_depth(state: SchedulerState, busy_s: float, now: float) -> None:
    """Set the depth, and update by which time requests count as late."""
    value = state.value
    depth = _full_pace_depth(state, busy_s, now)
    if has_rivals(state, now):
        depth = min(depth, value[LATENCY_DEPTH], shared_depth(state))
        depth = max(depth, _promised_depth(state))
    elif value[DECIDED_DEPTH] < inf and not state.counter[SATURATED]:
        depth = max(depth, min(value[DECIDED_DEPTH], value[THRESHOLD]))
    value[DEPTH] = depth
    for k in range(state.counter[CLASSES]):
        i = state.classes[k]
        if state.completed[i] > 0:
            total_s = state.queue_time_s[i] + storage_time_s(state, i)
            state.lower_level_s[i] = total_s / state.completed[i]


@part
def shared_depth(state: SchedulerState) -> float:
    """Return the depth that the latency bounds at other mounts allow.

    It starts at what is used, and is multiplied by E ** `_GAIN` in each window.
    """
    value = state.value
    if value[RIVALS_SLACK] == inf:
        value[SHARED_DEPTH] = inf
        return inf
    used_depth = min(value[DEPTH], float(state.counter[MAX_OUTSTANDING]))
    depth = min(value[SHARED_DEPTH], 2.0 * used_depth)
    value[SHARED_DEPTH] = max(1.0, depth * value[RIVALS_SLACK] ** _GAIN)
    return value[SHARED_DEPTH]


@part
def _promised_depth(state: SchedulerState) -> float:
    """Return how many requests at the storage the promises need: t T / c.

    This is Little's law, with T the mean time at the storage and c the mean size. A
    shared storage has the requests of other nodes too, which make T long. T counts up
    to half of the shortest latency bound.
    """
    counter, value = state.counter, state.value
    if counter[MOVED_BYTES] == 0:
        return 1.0
    completed = completed_requests(state)
    samples = counter[SAMPLES]
    time_s = exact_sum(state.sample_s, 0, samples, state.partials)
    time_s *= completed / samples
    time_s = min(time_s, completed * value[SATURATED_CREDIT_S])
    needed = value[TOTAL_BYTES_PER_S] * time_s / counter[MOVED_BYTES]
    return float(ceil(needed))


@part
def _full_pace_depth(state: SchedulerState, busy_s: float, now: float) -> float:
    """Return the depth of the search for the least one with full throughput.

    While requests wait, in the upper or in the lower level, at a saturated storage,
    record its pace first.
    """
    counter, value = state.counter, state.value
    waiting = counter[WAITING] + state.by_deadline[0]
    if waiting == 0 or not counter[SATURATED]:
        # What was measured before is no longer true: nothing waits for the storage.
        if is_short_of_capacity(state):
            set_capacity(state, 1.0, now)
        return _depth_of(best_level(state))
    used_depth = min(value[DEPTH], float(counter[MAX_OUTSTANDING]))
    moved_bytes = float(counter[MOVED_BYTES])
    record_pace(state, used_depth, moved_bytes, completed_requests(state), busy_s)
    capacity = capacity_bytes_per_s(state)
    if capacity > 0.0:
        set_capacity(state, capacity / value[TOTAL_BYTES_PER_S], now)
    return next_depth(state)
