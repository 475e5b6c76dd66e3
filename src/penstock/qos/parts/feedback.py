# SPDX-License-Identifier: MIT
"""Feedback control of the queue depth at the storage, once per time window.

Quantities per time window k and class (application) i (two-level scheduling, section
3.2.2):

======== ==========================================================================
L        depth: maximum number of requests at the storage at once
L_max    largest number of requests that were at the storage in window k
X        number of requests that the storage completed in window k
D_i      latency bound of class i
MT_i     mean waiting time of class i in the EDF queue; the value of window k is the
         estimate for window k + 1
T_i      95th percentile of the time that requests of class i spent at the storage
E_i      (D_i - MT_i) / T_i: factor by which the time at the storage may grow
L_RT_i   E_i L: largest depth that keeps the latency bound of class i
L_0      least depth that completes everything due by the end of window k + 1
L_U      least depth that completes everything that is queued or will arrive
======== ==========================================================================

Completions are assumed proportional to the depth, so N completions need the depth
N L / X. This gives L_0 and L_U:

    L_0 = N_due L / X,    L_U = N_all L / X.

Rule for the depth of window k + 1:

- Not overloaded so far. If L_RT_i < L_0 for some class i, the storage becomes
  *overloaded*: it cannot complete in time what is due. The depth is then infinite, and
  L_max is used in place of L. Otherwise the depth is min_i min(L_RT_i, L_U).
- Overloaded so far. The storage stays overloaded while X <= N_due. Otherwise the depth
  is min_i max(L_RT_i, L_0).

Interpretations, where the paper leaves the choice open:

- L is at most L_max: if the depth was not used up, T_i was measured at L_max.
- A storage that was idle could have completed more. X is therefore divided by the
  fraction of the window in which the storage was busy.
- Leaving overload. The paper says that the depth stays infinite while more is queued or
  arriving than X, and also that it is set anew when X exceeds what is due. Both can be
  true, since what is due is part of what is queued or arriving. Here the second
  condition alone decides, also with ``overload=send``: the first would keep the depth
  infinite although everything due can be completed in time.
- The definition of L_U is not legible in our copy of the paper; this one fits its use.
  L_U limits the depth only beyond 2 L: under a light load L_U is small, and the next
  burst would meet a depth of 1. In the paper, too, the depth under a light load is
  L_RT (section 4.2.1: about 15, which is 300 ms x 50 MB/s / 1 MB).

The times at the storage are kept one by one, up to `penstock.qos.state.SAMPLE_LIMIT` in
a window. When there are more, every second one of each class is dropped, and from then
on in this window every second (fourth, ...) completion of a class is kept. All other
quantities count every request.
"""

from __future__ import annotations

from math import ceil, inf
from typing import Final, NamedTuple

from penstock.columns import exact_sum, nth_smallest
from penstock.kernels import part
from penstock.qos.interface import PERCENTILE
from penstock.qos.state import (
    CLASSES,
    DECIDED_DEPTH,
    DEPTH,
    DUE_DEPTH,
    IDLE_S,
    IDLE_SINCE_S,
    LATENCY_DEPTH,
    LATENCY_SHARE,
    MAX_OUTSTANDING,
    MOVED_BYTES,
    OUTSTANDING,
    SAMPLE_LIMIT,
    SAMPLES,
    STRIDE,
    THRESHOLD,
    USEFUL_DEPTH,
    WINDOW_S,
    SchedulerState,
)

__all__ = [
    "DepthDecision",
    "WindowStatistics",
    "begin_window",
    "completed_requests",
    "decide_depth",
    "due_next",
    "group_samples",
    "join_window",
    "record_decision",
    "record_slacks",
    "record_time",
    "slack_factor",
    "storage_time_s",
    "window_statistics",
]

#: Lower bound of T_i, against division by zero.
_MIN_TIME_S: Final = 1e-9
#: Lower bound of the busy fraction by which X is divided.
_MIN_BUSY_SHARE: Final = 0.01


class WindowStatistics(NamedTuple):
    """Measurements of a window that concern all classes."""

    length_s: float
    """Length of the window."""
    depth: float
    """L."""
    max_outstanding: int
    """L_max."""
    busy_share: float
    """Fraction of the window in which the storage was not idle."""
    outstanding: int
    """Requests at the storage at the end."""
    queued: int
    """Requests in the EDF queue at the end."""
    queued_due: int
    """Requests in the EDF queue that are due within the next window."""


class DepthDecision(NamedTuple):
    """The depth of the next window, and the quantities behind it."""

    depth: float
    """L; inf under overload."""
    threshold: float
    """Queue threshold min_i L_RT_i, which defines spareness; inf under overload."""
    due_depth: float
    """L_0."""
    useful_depth: float
    """L_U."""
    latency_depth: float
    """min_i L_RT_i, also under overload; at least 1."""


# --- Measurements of the present window -------------------------------------------


@part
def join_window(state: SchedulerState, i: int) -> None:
    """Make application `i` a class of this window, with its present latency bound."""
    if state.in_window[i] == 0:
        state.in_window[i] = 1
        state.classes[state.counter[CLASSES]] = i
        state.counter[CLASSES] += 1
        state.bound_s[i] = state.latency_s[i] * state.value[LATENCY_SHARE]
        state.queue_time_s[i] = 0.0
        state.admitted[i] = 0
        state.completed[i] = 0
        state.sampled[i] = 0


@part
def record_time(
    state: SchedulerState, i: int, storage_s: float, queue_s: float
) -> None:
    """Record a completion: its time at the storage and in the EDF queue."""
    counter = state.counter
    if state.completed[i] % counter[STRIDE] == 0:
        if counter[SAMPLES] == SAMPLE_LIMIT:
            _drop_every_second_sample(state)
        k = counter[SAMPLES]
        state.sample_s[k] = storage_s
        state.sample_application[k] = i
        state.sampled[i] += 1
        counter[SAMPLES] = k + 1
    state.completed[i] += 1
    state.queue_time_s[i] += queue_s


@part
def _drop_every_second_sample(state: SchedulerState) -> None:
    """Drop every second sample of each class, beginning with its second one."""
    counter = state.counter
    for k in range(counter[CLASSES]):
        state.sampled[state.classes[k]] = 0
        state.sample_end[state.classes[k]] = 0
    kept = 0
    for k in range(counter[SAMPLES]):
        i = state.sample_application[k]
        state.sample_end[i] += 1
        if state.sample_end[i] % 2 == 1:
            state.sample_s[kept] = state.sample_s[k]
            state.sample_application[kept] = i
            state.sampled[i] += 1
            kept += 1
    counter[SAMPLES] = kept
    counter[STRIDE] *= 2


@part
def begin_window(state: SchedulerState) -> None:
    """Reset the measurements."""
    counter = state.counter
    for k in range(counter[CLASSES]):
        state.in_window[state.classes[k]] = 0
    counter[CLASSES] = 0
    counter[SAMPLES] = 0
    counter[STRIDE] = 1
    counter[MAX_OUTSTANDING] = counter[OUTSTANDING]
    counter[MOVED_BYTES] = 0


# --- At the end of the window -----------------------------------------------------


@part
def window_statistics(
    state: SchedulerState, now: float, length_s: float
) -> WindowStatistics:
    """Return the statistics of the window that ends now."""
    idle_s = state.value[IDLE_S]
    if state.counter[OUTSTANDING] == 0:
        idle_s += now - state.value[IDLE_SINCE_S]
    due = 0
    for position in range(1, state.by_deadline[0] + 1):
        deadline_s = state.deadline_s[state.by_deadline[position]]
        if deadline_s < now + state.value[WINDOW_S]:
            due += 1
    return WindowStatistics(
        length_s,
        state.value[DEPTH],
        state.counter[MAX_OUTSTANDING],
        1.0 - idle_s / length_s,
        state.counter[OUTSTANDING],
        state.by_deadline[0],
        due,
    )


@part
def group_samples(state: SchedulerState) -> None:
    """Copy the samples to ``sorted_s``, class after class."""
    end = 0
    for k in range(state.counter[CLASSES]):
        i = state.classes[k]
        state.sample_end[i] = end
        end += state.sampled[i]
    for k in range(state.counter[SAMPLES]):
        i = state.sample_application[k]
        state.sorted_s[state.sample_end[i]] = state.sample_s[k]
        state.sample_end[i] += 1


@part
def storage_time_s(state: SchedulerState, i: int) -> float:
    """Return the sum of the times that the requests of `i` were at the storage."""
    end = state.sample_end[i]
    begin = end - state.sampled[i]
    total_s = exact_sum(state.sorted_s, begin, end, state.partials)
    return total_s * (state.completed[i] / state.sampled[i])


@part
def record_slacks(state: SchedulerState, now: float) -> None:
    """Record E_i of the classes with completions; `group_samples` has been called."""
    for k in range(state.counter[CLASSES]):
        i = state.classes[k]
        if state.completed[i] > 0:
            state.slack[i] = slack_factor(state, i)
            state.slack_s[i] = now


@part
def slack_factor(state: SchedulerState, i: int) -> float:
    """Return E_i = (D_i - MT_i) / T_i."""
    end, count = state.sample_end[i], state.sampled[i]
    rank = ceil(PERCENTILE * count) - 1
    storage_s = nth_smallest(state.sorted_s, end - count, end, rank)
    mean_wait_s = state.queue_time_s[i] / state.completed[i]
    return (state.bound_s[i] - mean_wait_s) / max(storage_s, _MIN_TIME_S)


@part
def completed_requests(state: SchedulerState) -> int:
    """Return the number of requests that the storage completed."""
    count = 0
    for k in range(state.counter[CLASSES]):
        count += state.completed[state.classes[k]]
    return count


@part
def due_next(state: SchedulerState, past: WindowStatistics) -> float:
    """Return N_due: the number of requests due by the end of the next window.

    These are the requests at the storage, the queued requests that are due, and of the
    expected arrivals (as many as in this window) the fraction 1 - D_i / window, which
    arrives early enough to be due in the window.
    """
    arriving_due = 0.0
    for k in range(state.counter[CLASSES]):
        i = state.classes[k]
        early = max(0.0, 1.0 - state.bound_s[i] / past.length_s)
        arriving_due += state.admitted[i] * early
    return past.outstanding + past.queued_due + arriving_due


@part
def _least_latency_depth(state: SchedulerState, depth: float) -> float:
    """Return min_i L_RT_i = min_i E_i L over the classes with completions."""
    least = inf
    for k in range(state.counter[CLASSES]):
        i = state.classes[k]
        if state.completed[i] > 0:
            least = min(least, state.slack[i] * depth)
    return least


@part
def decide_depth(
    state: SchedulerState,
    past: WindowStatistics,
    overloaded: bool,  # noqa: FBT001
) -> DepthDecision:
    """Return the depth of the next window; at least one request was completed.

    `overloaded` says whether the storage was overloaded in the past window.
    `record_slacks` must have been called.
    """
    busy_share = min(1.0, max(past.busy_share, _MIN_BUSY_SHARE))
    completed = completed_requests(state) / busy_share
    effective_depth = min(past.depth, float(past.max_outstanding))
    depth_per_completion = effective_depth / completed
    due = due_next(state, past)
    due_depth = due * depth_per_completion
    arriving = 0
    for k in range(state.counter[CLASSES]):
        arriving += state.admitted[state.classes[k]]
    present_and_arriving = past.outstanding + past.queued + arriving
    useful_depth = present_and_arriving * depth_per_completion
    latency_depth = _least_latency_depth(state, effective_depth)
    threshold = max(1.0, latency_depth)
    if overloaded:
        is_overload = completed <= due
        depth = max(latency_depth, due_depth)
    else:
        is_overload = latency_depth < due_depth
        depth = min(latency_depth, max(useful_depth, 2 * past.depth))
    if is_overload:
        return DepthDecision(inf, inf, due_depth, useful_depth, threshold)
    depth = max(1.0, depth)
    return DepthDecision(depth, threshold, due_depth, useful_depth, threshold)


@part
def record_decision(state: SchedulerState, decision: DepthDecision) -> None:
    """Keep the decision of the feedback."""
    state.value[DECIDED_DEPTH] = decision.depth
    state.value[THRESHOLD] = decision.threshold
    state.value[DUE_DEPTH] = decision.due_depth
    state.value[USEFUL_DEPTH] = decision.useful_depth
    state.value[LATENCY_DEPTH] = decision.latency_depth
