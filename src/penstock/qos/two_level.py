# SPDX-License-Identifier: MIT
"""Share throughput by start tags, then send by deadline; feedback sets depth.

Rule
    Upper level (throughput). Requests are admitted in the order of their start tags
    (`penstock.qos.sfq`) while the credit D is positive; each takes its cost from D.
    D is filled to

        D_full = (sum_i t_i) x credit window

    when the storage is spare or when the credit window expires.
    Lower level (latency). Admitted requests are sent in the order of their deadlines
    (`penstock.qos.edf`) while fewer than L requests are at the storage. Feedback sets L
    once per time window (`penstock.qos.feedback`).
    The storage is *spare* while the lower level holds fewer than 0.9 times the queue
    threshold min_i L_RT_i.

Parameters
    window
        Length of a time window (s). Default 0.5.
    credit
        Length of a credit window (s). 0, the default: ``window``, so that deadlines
        decide the order; but half of the shortest latency bound while the storage is
        never idle, so that admitted requests complete within that time.
    overload
        hold (default): requests that the storage cannot serve in time stay in the upper
        level, so that shares hold and deadlines still decide the order. At the end of a
        credit window D grows by at most D_full minus the cost of the requests in the
        lower level. While the storage is never idle, the depth is the least one that
        reaches full throughput (`penstock.qos.saturation`). Requests that can still be
        in time are served before late ones (`penstock.qos.late_aware`).
        send: the rule of the paper. Under overload the depth is infinite and all
        requests are sent: the throughput is the highest possible, but the scheduler no
        longer decides the order.

Properties
    O(log n) per request. No request starves: start tags and deadlines grow with time,
    and late requests have reserved turns. For bounds on shares and depth see the parts.

Source
    Two-level scheduling, section 3. Deviations:

    1. ``overload=hold``: with an infinite depth neither level decides anything.
    2. A deadline counts from the arrival; for a request that is late when it is
       admitted, it counts from the admission. Otherwise an application that issues too
       much would always have the earliest deadlines.
    3. Spareness counts the whole lower level, including its EDF queue.
    4. Of each throughput t_i a server counts only the fraction that the application
       receives on this server.
    5. Overload ends when everything due can be completed in time
       (`penstock.qos.feedback`).

Order at equal times: `dispatch` first closes a window that has ended, then admits, then
sends. The driver reports completions and arrivals before it calls `dispatch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum, inf
from typing import Final

from penstock.qos.edf import DeadlineHeap
from penstock.qos.feedback import (
    ClassStatistics,
    DepthDecision,
    WindowStatistics,
    decide_depth,
)
from penstock.qos.late_aware import LateAwareQueue
from penstock.qos.request import Request
from penstock.qos.saturation import Pace, Saturation
from penstock.qos.slo import Slo, slo_of
from penstock.registry import Parameter

__all__ = ["PARAMETERS", "SPARE_SHARE", "TwoLevel", "make"]

#: The storage is spare below this fraction of the queue threshold.
SPARE_SHARE: Final = 0.9
#: Fraction of the latency bound for the lower level, where the upper holds requests.
_LOWER_LEVEL_SHARE: Final = 0.5
#: The storage is saturated if it was busy for more than this fraction of a window.
_SATURATED_SHARE: Final = 0.98
#: Depth before the first measurement.
_FIRST_DEPTH: Final = 8.0

_OVERLOAD: Final = ("hold", "send")
PARAMETERS: Final = (
    Parameter("window", "length of a time window", 0.5, unit="s", low=1e-3),
    Parameter(
        "credit", "length of a credit window; 0: chosen from the latencies", 0.0, "s"
    ),
    Parameter(
        "overload",
        "hold excess requests back, or send all to the storage",
        "hold",
        choices=_OVERLOAD,
    ),
)


class TwoLevel:
    """The two-level scheduler; see the module for the rule."""

    def __init__(
        self,
        slos: Mapping[str, Slo],
        now: float,
        window_s: float,
        credit_s: float,
        *,
        hold: bool,
    ) -> None:
        self.wake_s = inf
        self.outstanding = 0
        self.depth = _FIRST_DEPTH
        self.served_bytes: dict[str, int] = {}
        self.decision = DepthDecision(_FIRST_DEPTH, _FIRST_DEPTH)
        """The last decision of the feedback."""
        self.credit_bytes = 0.0
        """D; below 0 by at most the cost of the request admitted last."""
        self._window_s, self._credit_s, self._hold = window_s, credit_s, hold
        self._latency_share = _LOWER_LEVEL_SHARE if hold else 1.0
        self._upper = LateAwareQueue(slos, prefers_underserved=hold)
        self.record_remote_service = self._upper.record_remote_service
        self.set_layout = self._upper.set_layout
        self._lower = DeadlineHeap()
        self._saturation = Saturation()
        self._threshold = _FIRST_DEPTH
        self._saturated = True
        self._lower_bytes = 0
        self._classes: dict[str, ClassStatistics] = {}
        self._max_outstanding = self._moved_bytes = 0
        self._idle_s = 0.0
        self._credit_ends_s = now
        self._window_ends_s = now + window_s
        self._idle_since_s = now
        self.set_slos(slos, now)

    @property
    def waiting(self) -> int:
        """Number of queued requests, on both levels."""
        return self._upper.waiting + len(self._lower.heap)

    @property
    def full_credit_bytes(self) -> float:
        """D_full: the sum of t_i over one credit window."""
        return self._total_bytes_per_s * self._credit_window_s

    @property
    def _credit_window_s(self) -> float:
        if self._saturated:
            return self._saturated_credit_s
        return self._credit_s or self._window_s

    def set_slos(self, slos: Mapping[str, Slo], now: float) -> None:  # noqa: ARG002
        """Replace the SLOs; deadlines that are already set do not change."""
        shortest_s = min((slo.latency_s for slo in slos.values()), default=1.0)
        self._saturated_credit_s = self._credit_s or _LOWER_LEVEL_SHARE * shortest_s
        self._upper.set_slos(slos)
        self._slos = dict(slos)
        self._update_total()

    def arrive(self, request: Request, now: float) -> None:
        """Queue a new request in the upper level, with the deadline now + l_i."""
        request.arrived_s = now
        latency_s = self._upper.queue_of(request.application).latency_s
        request.deadline_s = now + latency_s
        self._upper.push(request)

    def dispatch(self, now: float) -> list[Request]:
        """Close a window that has ended, admit, and return the requests to send."""
        if now >= self._window_ends_s:
            self._close_window(now)
        if self._upper.waiting:
            self._admit(now)
        to_send: list[Request] = []
        lower = self._lower
        while lower.heap and self.outstanding < self.depth:
            request = lower.pop()
            self._send(request, now)
            to_send.append(request)
        self._set_wake(now)
        return to_send

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Record the time at the storage; refund the unused part of the cost."""
        self.outstanding -= 1
        self._lower_bytes -= request.cost_bytes
        if not self.outstanding:
            self._idle_since_s = now
        statistics = self._statistics_of(request.application)
        statistics.storage_times_s.append(now - request.sent_s)
        statistics.queue_time_s += request.sent_s - request.admitted_s
        self._moved_bytes += moved_bytes
        if unused_bytes := request.unused_bytes(moved_bytes):
            self.served_bytes[request.application] -= unused_bytes
            self._upper.refund(request, unused_bytes)

    # --- Upper level ----------------------------------------------------------------

    def _admit(self, now: float) -> None:
        """Admit requests in the order of their start tags while D is positive."""
        upper, lower = self._upper, self._lower
        while upper.waiting and (self.credit_bytes > 0 or self._refill(now)):
            has_room = not lower.heap and self.outstanding < self.depth
            request = upper.pop_at(now, has_room=has_room)
            if request is None:
                break
            cost_bytes = request.cost_bytes
            self.credit_bytes -= cost_bytes
            self._lower_bytes += cost_bytes
            request.admitted_s = now
            self._statistics_of(request.application).admitted += 1
            lower.push(request)

    def _update_total(self) -> None:
        """Update the sum of t_i on this server, and cut D to D_full.

        An SLO covers the service of all servers; only the local fraction counts here.
        """
        queue_of = self._upper.queue_of
        local = (
            slo.throughput_bytes_per_s * queue_of(application).local_share()
            for application, slo in self._slos.items()
        )
        self._total_bytes_per_s = (
            fsum(local) or slo_of(self._slos, "").throughput_bytes_per_s
        )
        self.credit_bytes = min(self.credit_bytes, self.full_credit_bytes)

    def _refill(self, now: float) -> bool:
        """Fill D if the storage is spare or the credit window has expired.

        Return True if D is positive.
        """
        full_bytes = self.full_credit_bytes
        in_lower_level = self.outstanding + len(self._lower.heap)
        if in_lower_level < SPARE_SHARE * self._threshold:
            self.credit_bytes = full_bytes
        elif now >= self._credit_ends_s:
            self._credit_ends_s = now + self._credit_window_s
            added_bytes = full_bytes - self._lower_bytes if self._hold else full_bytes
            self.credit_bytes = min(
                full_bytes, self.credit_bytes + max(0.0, added_bytes)
            )
        return self.credit_bytes > 0

    # --- Lower level ----------------------------------------------------------------

    def _send(self, request: Request, now: float) -> None:
        """Count a request that is sent to the storage."""
        if not self.outstanding:
            self._idle_s += now - self._idle_since_s
        self.outstanding += 1
        if self.outstanding > self._max_outstanding:
            self._max_outstanding = self.outstanding
        request.sent_s = now
        name = request.application
        self.served_bytes[name] = self.served_bytes.get(name, 0) + request.cost_bytes

    def _set_wake(self, now: float) -> None:
        """Wake at the end of the window, or of a credit window that holds requests up.

        A credit window that has already expired is renewed by the next `_refill`.
        """
        if not (self.outstanding or self._upper.waiting or self._lower.heap):
            self.wake_s = inf
        elif self._upper.waiting and now < self._credit_ends_s < self._window_ends_s:
            self.wake_s = self._credit_ends_s
        else:
            self.wake_s = self._window_ends_s

    # --- Feedback -------------------------------------------------------------------

    def _statistics_of(self, application: str) -> ClassStatistics:
        """Return the statistics of a class in this window."""
        statistics = self._classes.get(application)
        if statistics is None:
            latency_s = self._upper.queue_of(application).latency_s
            statistics = ClassStatistics(latency_s * self._latency_share)
            self._classes[application] = statistics
        return statistics

    def _begin_window(self) -> None:
        """Reset the statistics."""
        self._classes = {}
        self._max_outstanding = self.outstanding
        self._moved_bytes = 0
        self._idle_s = 0.0

    def _close_window(self, now: float) -> None:
        """Set the depth from the statistics; the window may have ended long ago."""
        length_s = self._window_s + now - self._window_ends_s
        past = self._window_statistics(now, length_s)
        self._saturated = past.busy_share > _SATURATED_SHARE
        self._update_total()
        decision = decide_depth(past, overloaded=self.decision.overloaded)
        if decision is not None:
            self.decision = decision
            self._set_depth(past.busy_share * length_s)
            self._update_lateness()
        self._window_ends_s = now + self._window_s
        self._idle_since_s = max(self._idle_since_s, now)
        self._begin_window()

    def _window_statistics(self, now: float, length_s: float) -> WindowStatistics:
        """Return the statistics of the window that ends now."""
        idle_now_s = 0.0 if self.outstanding else now - self._idle_since_s
        return WindowStatistics(
            length_s=length_s,
            classes=self._classes,
            depth=self.depth,
            max_outstanding=self._max_outstanding,
            busy_share=1.0 - (self._idle_s + idle_now_s) / length_s,
            outstanding=self.outstanding,
            queued=len(self._lower.heap),
            queued_due=self._lower.count_due_before(now + self._window_s),
        )

    def _update_lateness(self) -> None:
        """Set the mean time in the lower level, by which lateness is predicted."""
        if not self._hold:
            return
        for application, statistics in self._classes.items():
            times_s = statistics.storage_times_s
            if times_s:
                mean_s = (statistics.queue_time_s + fsum(times_s)) / len(times_s)
                self._upper.queue_of(application).lower_level_s = mean_s

    def _set_depth(self, busy_s: float) -> None:
        """Set depth and queue threshold; the storage was busy for `busy_s`."""
        decision = self.decision
        full_pace_depth = self._full_pace_depth(busy_s) if self._hold else 0.0
        self.depth, self._threshold = decision.depth, decision.threshold
        if self._hold:
            if decision.overloaded or self._saturated:
                self.depth = self._threshold = full_pace_depth
            else:
                self.depth = max(full_pace_depth, min(self.depth, self._threshold))
        if self.depth < inf:
            self.depth = float(int(self.depth))

    def _full_pace_depth(self, busy_s: float) -> float:
        """Return the depth of the search for the least one with full throughput.

        While requests wait at a saturated storage, record its pace first.
        """
        search = self._saturation
        if self._upper.waiting and self._saturated:
            answered = sum(len(c.storage_times_s) for c in self._classes.values())
            search.record(
                self.depth, Pace(self._moved_bytes / busy_s, answered / busy_s)
            )
            capacity = search.capacity_bytes_per_s()
            self._upper.scale = capacity / self._total_bytes_per_s or 1.0
            return search.next_depth()
        return 2.0 ** search.best_level()


def make(
    slos: Mapping[str, Slo], now: float, window: float, credit: float, overload: str
) -> TwoLevel:
    """Return a scheduler that starts at `now` (s)."""
    return TwoLevel(slos, now, window, credit, hold=overload == "hold")
