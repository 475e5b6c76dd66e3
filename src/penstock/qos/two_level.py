# SPDX-License-Identifier: MIT
"""Share throughput by start tags, then send by deadline; feedback sets depth.

Rule
    Upper level (throughput). It admits requests to the lower level; how, depends on
    ``overload``.
    Lower level (latency). Admitted requests are sent in the order of their deadlines
    (`penstock.qos.edf`) while fewer than L requests are at the storage. Feedback sets L
    once per time window (`penstock.qos.feedback`).

    The upper level with ``overload=hold``, the default: requests within the promise of
    their application are admitted while the lower level holds less than

        D_full = (sum_i t_i) x credit window,

    the others only while fewer than L requests are in the lower level, in the order of
    their start tags (`penstock.qos.promises`). While the storage is never idle, L is
    the least depth that reaches full throughput (`penstock.qos.saturation`), and late
    requests go last if it cannot keep all promises (`penstock.qos.late_aware`).

    With ``overload=send``, the rule of the paper: requests are admitted in the order of
    their start tags (`penstock.qos.sfq`) while the credit D, common to all
    applications, is positive; each takes its cost from D. D is filled to D_full when
    the storage is spare (the lower level holds fewer than 0.9 times the queue threshold
    min_i L_RT_i) or when the credit window expires. Under overload the depth is
    infinite and all requests are sent: the throughput is the highest possible, but the
    scheduler no longer decides the order.

Parameters
    window
        Length of a time window (s). Default 0.5.
    credit
        Length of a credit window (s). 0, the default: ``window``, so that deadlines
        decide the order; but half of the shortest latency bound while the storage is
        never idle, so that admitted requests complete within that time.
    overload
        hold (default) or send.
    storage
        own (default): every scheduler that reports to this one has its own storage.
        shared: they are at client nodes in front of one storage. Only with hold.

Properties
    O(log n) per request. With hold an application that always has a request gets at
    least its t_i if the t_i add up to at most the capacity; the proof is in
    `penstock.qos.promises`. With send it does not: D goes to whoever has more requests,
    and with an infinite depth the storage serves in order of arrival. Nor do reports or
    layouts change shares then, because no request waits in the upper level where start
    tags decide. No request starves: promises, start tags and deadlines grow with time,
    and late requests have reserved turns.

Source
    Two-level scheduling, section 3. Deviations:

    1. ``overload=hold``: with an infinite depth neither level decides anything.
    2. With hold each application has its own credit, and a deadline counts from the
       arrival; for a request that is late when it is admitted, from the admission.
       Otherwise an application that issues too much would always have the earliest
       deadlines.
    3. Spareness counts the whole lower level, including its EDF queue.
    4. Of each throughput t_i a server counts only the fraction that the application
       receives on this server in D_full.
    5. Overload ends when everything due can be completed in time
       (`penstock.qos.feedback`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, fsum, inf
from typing import Final

from penstock.qos.guarantees import Guarantees
from penstock.qos.levels import FIRST_DEPTH, LOWER_LEVEL_SHARE, TwoLevel
from penstock.qos.promises import PromiseQueue
from penstock.qos.request import Request
from penstock.qos.saturation import Saturation
from penstock.qos.sfq import StartTagQueue, TaggedQueue
from penstock.qos.slo import Slo
from penstock.registry import Parameter

__all__ = ["PARAMETERS", "SPARE_SHARE", "HoldingTwoLevel", "SendingTwoLevel", "make"]

#: The storage is spare below this fraction of the queue threshold.
SPARE_SHARE: Final = 0.9

PARAMETERS: Final = (
    Parameter("window", "length of a time window", 0.5, unit="s", low=1e-3),
    Parameter(
        "credit", "length of a credit window; 0: chosen from the latencies", 0.0, "s"
    ),
    Parameter(
        "overload",
        "hold excess requests back, or send all to the storage",
        "hold",
        choices=("hold", "send"),
    ),
    Parameter(
        "storage",
        "own: one per scheduler; shared: one for the schedulers of all client nodes",
        "own",
        choices=("own", "shared"),
    ),
)


class SendingTwoLevel(TwoLevel):
    """The scheduler of the paper (``overload=send``); see the module for the rule."""

    guarantees = Guarantees(latency=True)
    _upper: StartTagQueue[TaggedQueue]

    def __init__(
        self, slos: Mapping[str, Slo], now: float, window_s: float, credit_s: float
    ) -> None:
        self.credit_bytes = 0.0
        """D; below 0 by at most the cost of the request admitted last."""
        self._threshold = FIRST_DEPTH
        self._credit_ends_s = now
        upper = StartTagQueue(slos, TaggedQueue)
        super().__init__(slos, now, upper, window_s, credit_s, latency_share=1.0)

    def _admit(self, now: float) -> None:
        """Admit requests in the order of their start tags while D is positive."""
        upper = self._upper
        while upper.waiting and (self.credit_bytes > 0 or self._refill(now)):
            request = upper.pop()
            self.credit_bytes -= request.cost_bytes
            self._pass_down(request, now)

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
            self.credit_bytes = min(full_bytes, self.credit_bytes + full_bytes)
        return self.credit_bytes > 0

    def _update_total(self) -> None:
        """Update the sum of t_i, and cut D to D_full."""
        super()._update_total()
        self.credit_bytes = min(self.credit_bytes, self.full_credit_bytes)

    def _set_depth(self, busy_s: float, now: float) -> None:  # noqa: ARG002
        """Set depth and queue threshold as the feedback says."""
        self.depth, self._threshold = self.decision.depth, self.decision.threshold

    def _next_wake_s(self, now: float) -> float:
        """Wake at the end of the window, or of a credit window that holds requests up.

        A credit window that has already expired is renewed by the next `_refill`.
        """
        if self._upper.waiting and now < self._credit_ends_s < self._window_ends_s:
            return self._credit_ends_s
        return self._window_ends_s


class HoldingTwoLevel(TwoLevel):
    """The scheduler with ``overload=hold``; see the module for the rule."""

    guarantees = Guarantees(promises=True, shares=True, latency=True)
    _upper: PromiseQueue

    def __init__(
        self,
        slos: Mapping[str, Slo],
        now: float,
        window_s: float,
        credit_s: float,
        *,
        shared_storage: bool = False,
    ) -> None:
        self._saturation = Saturation()
        upper = PromiseQueue(slos, shared_storage=shared_storage)
        super().__init__(
            slos, now, upper, window_s, credit_s, latency_share=LOWER_LEVEL_SHARE
        )
        if shared_storage:
            self.guarantees = Guarantees(
                promises=True, shares=True, client_nodes=True, latency=True
            )

    @property
    def credit_bytes(self) -> float:
        """D: what the lower level may still take of requests within promises."""
        return self.full_credit_bytes - self._lower_bytes

    def record_remote_service(
        self,
        server: str,
        served_bytes: Mapping[str, float],
        now: float,
        wanting: Iterable[str] = (),
    ) -> None:
        """Record a report: service elsewhere, and applications that want more."""
        self._upper.record_report(server, served_bytes, wanting, now)

    def wanting(self, now: float) -> tuple[str, ...]:
        """Return the applications to report as wanting more service."""
        return self._upper.wanting(now)

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Record the time at the storage; refund the unused part of the cost."""
        super().complete(request, moved_bytes, now)
        self._upper.record_completion(request.application, now)

    def _admit(self, now: float) -> None:
        """Admit requests within promises while D is positive, others while L allows."""
        upper, lower = self._upper, self._lower
        upper.hold_until_s = inf
        full_bytes = self.full_credit_bytes
        while upper.waiting:
            has_room = self.outstanding + len(lower.heap) < self.depth
            if not has_room and self._lower_bytes >= full_bytes:
                break
            request = upper.pop_at(now, has_room=has_room)
            if request is None:
                break
            if request.deadline_s < now:
                request.deadline_s = now + upper.queue_of(request.application).latency_s
            self._pass_down(request, now)

    def _next_wake_s(self, now: float) -> float:  # noqa: ARG002
        """Wake at the end of the window, or when held requests may go."""
        if self._upper.waiting:
            return min(self._window_ends_s, self._upper.hold_until_s)
        return self._window_ends_s

    def _set_depth(self, busy_s: float, now: float) -> None:
        """Set the depth, and update by which time requests count as late."""
        decision = self.decision
        full_pace_depth = self._full_pace_depth(busy_s, now)
        if self._upper.has_rivals(now):
            self.depth = max(
                min(full_pace_depth, decision.latency_depth), self._promised_depth()
            )
        elif decision.overloaded or self._saturated:
            self.depth = full_pace_depth
        else:
            self.depth = max(full_pace_depth, min(decision.depth, decision.threshold))
        for application, statistics in self._classes.items():
            times_s = statistics.storage_times_s
            if times_s:
                mean_s = (statistics.queue_time_s + fsum(times_s)) / len(times_s)
                self._upper.queue_of(application).lower_level_s = mean_s

    def _promised_depth(self) -> float:
        """Return how many requests at the storage the promises need: t T / c.

        This is Little's law, with T the mean time at the storage and c the mean size. A
        shared storage has the requests of other nodes too, which make T long. T counts
        up to half of the shortest latency bound.
        """
        times_s = [t for c in self._classes.values() for t in c.storage_times_s]
        if not self._moved_bytes:
            return 1.0
        most_s = len(times_s) * self._saturated_credit_s
        time_s = min(fsum(times_s), most_s)
        return ceil(self._total_bytes_per_s * time_s / self._moved_bytes)

    def _full_pace_depth(self, busy_s: float, now: float) -> float:
        """Return the depth of the search for the least one with full throughput.

        While requests wait, in the upper or in the lower level, at a saturated storage,
        record its pace first.
        """
        search = self._saturation
        if (self._upper.waiting or self._lower.heap) and self._saturated:
            answered = sum(len(c.storage_times_s) for c in self._classes.values())
            used_depth = min(self.depth, self._max_outstanding)
            search.record(used_depth, self._moved_bytes, answered, busy_s)
            capacity = search.capacity_bytes_per_s()
            if capacity:
                self._upper.set_capacity(capacity / self._total_bytes_per_s, now)
            return search.next_depth()
        return 2.0 ** search.best_level()


def make(
    slos: Mapping[str, Slo],
    now: float,
    window: float,
    credit: float,
    overload: str,
    storage: str,
) -> TwoLevel:
    """Return a scheduler that starts at `now` (s)."""
    if overload == "send":
        return SendingTwoLevel(slos, now, window, credit)
    shared_storage = storage == "shared"
    return HoldingTwoLevel(slos, now, window, credit, shared_storage=shared_storage)
