# SPDX-License-Identifier: MIT
"""The parts that both variants of the two-level scheduler have in common.

`TwoLevel` queues requests in an upper level, sends admitted requests by deadline while
fewer than ``depth`` requests are at the storage, and measures time windows for the
feedback (`penstock.qos.feedback`). `penstock.qos.two_level` defines the variants: when
the upper level admits a request, and which depth is set.

Order at equal times: `dispatch` first closes a window that has ended, then admits, then
sends. The driver reports completions and arrivals before it calls `dispatch`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from math import fsum, inf
from typing import Any, Final

from penstock.qos.edf import DeadlineHeap
from penstock.qos.feedback import (
    ClassStatistics,
    DepthDecision,
    WindowStatistics,
    decide_depth,
)
from penstock.qos.guarantees import Guarantees
from penstock.qos.request import Request
from penstock.qos.sfq import ApplicationQueues
from penstock.qos.slo import Slo, slo_of

__all__ = ["FIRST_DEPTH", "LOWER_LEVEL_SHARE", "TwoLevel"]

#: Depth before the first measurement.
FIRST_DEPTH: Final = 8.0
#: Fraction of the latency bound for the lower level, where the upper holds requests.
LOWER_LEVEL_SHARE: Final = 0.5
#: The storage is saturated if it was busy for more than this fraction of a window.
_SATURATED_SHARE: Final = 0.98
#: Older service counts less by this factor per window in the local share of a promise.
_DECAY: Final = 0.9


class TwoLevel(ABC):
    """A two-level scheduler.

    A variant defines `_admit`, `_set_depth`, `_next_wake_s` and `guarantees`.

    Parameters
    ----------
    upper
        The queue of the upper level.
    latency_share
        Fraction of the latency bounds that the lower level may use.
    """

    guarantees: Guarantees

    def __init__(
        self,
        slos: Mapping[str, Slo],
        now: float,
        upper: ApplicationQueues[Any],
        window_s: float,
        credit_s: float,
        *,
        latency_share: float,
    ) -> None:
        self.wake_s = inf
        self.outstanding = 0
        self.depth = FIRST_DEPTH
        self.served_bytes: dict[str, int] = {}
        self.decision = DepthDecision(FIRST_DEPTH, FIRST_DEPTH)
        """The last decision of the feedback."""
        self._window_s, self._credit_s = window_s, credit_s
        self._latency_share = latency_share
        self._upper = upper
        self.set_layout = upper.set_layout
        self._lower = DeadlineHeap()
        self._saturated = True
        self._lower_bytes = 0
        self._classes: dict[str, ClassStatistics] = {}
        self._max_outstanding = self._moved_bytes = 0
        self._idle_s = 0.0
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
        self._saturated_credit_s = self._credit_s or LOWER_LEVEL_SHARE * shortest_s
        self._upper.set_slos(slos)
        self._slos = dict(slos)
        self._update_total()

    def record_remote_service(
        self,
        server: str,
        served_bytes: Mapping[str, float],
        now: float,  # noqa: ARG002
        wanting: Iterable[str] = (),  # noqa: ARG002
    ) -> None:
        """Record a report: what another server has served since it started."""
        self._upper.record_remote_service(server, served_bytes)

    def wanting(self, now: float) -> tuple[str, ...]:  # noqa: ARG002
        """Return the applications to report as wanting more service: none."""
        return ()

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
        if self.outstanding or self._upper.waiting or lower.heap:
            self.wake_s = self._next_wake_s(now)
        else:
            self.wake_s = inf
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

    # --- Defined by the variants ----------------------------------------------------

    @abstractmethod
    def _admit(self, now: float) -> None:
        """Pass requests from the upper to the lower level with `_pass_down`."""

    @abstractmethod
    def _set_depth(self, busy_s: float, now: float) -> None:
        """Set the depth after a window in which the storage was busy for `busy_s`."""

    @abstractmethod
    def _next_wake_s(self, now: float) -> float:
        """Return when `dispatch` must be called again while there are requests."""

    # --- Lower level ----------------------------------------------------------------

    def _pass_down(self, request: Request, now: float) -> None:
        """Admit a request: put it into the lower level."""
        self._lower_bytes += request.cost_bytes
        request.admitted_s = now
        self._statistics_of(request.application).admitted += 1
        self._lower.push(request)

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

    def _update_total(self) -> None:
        """Update the sum of t_i on this server.

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
        for queue in self._upper.queues.values():
            queue.local_bytes *= _DECAY
            queue.remote_bytes *= _DECAY
        self._update_total()
        decision = decide_depth(past, overloaded=self.decision.overloaded)
        if decision is not None:
            self.decision = decision
            self._set_depth(past.busy_share * length_s, now)
            if self.depth < inf:
                self.depth = float(int(self.depth))
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
