# SPDX-License-Identifier: MIT
"""Share throughput, then the earliest deadline first, as deep as latency bears.

Rule
    Upper level: start tags (`penstock.qos.sfq`) and a credit D, which every request
    takes its cost from. With D used up nothing passes. D is filled to D_full = (sum
    of t_i) x ``credit`` when the storage is spare, as the lower level notices whenever
    something arrives or completes, and when a credit window expires.
    Lower level: of those that passed, the earliest deadline goes first
    (`penstock.qos.edf`), while fewer than L are at the storage; L is set by feedback
    once per time window (`penstock.qos.feedback`).
    Spareness: fewer than 0.9 times the queue threshold are below the upper level.

Parameters
    window
        Length of a time window (s). Default 0.5.
    credit
        Length of a credit window (s). 0, the default: ``window``, so that deadlines
        decide; but half of the tightest latency while the storage is never idle, so
        that what is below the upper level takes no longer than that.
    overload
        hold (default): what the storage cannot serve in time waits in the upper level,
        so that shares hold and deadlines still decide. A credit window fills D only
        up to D_full less what is below. While the storage is never idle the depth is
        the least with which it does as much (`penstock.qos.saturation`). An
        application whose requests pile up has those served first that can still be in
        time (`penstock.qos.punctual`).
        send: as papers/5 has it. Under overload the depth is infinite, so that the
        storage has all there is: throughput, and no say in the order.

Properties
    O(log n) per request. Nothing starves: start tags and deadlines grow, and those
    who are late have their turns. For shares and depth see the parts.

Source
    papers/5 section 3. Deviations: ``overload=hold``, for with an infinite depth
    neither level decides anything; a deadline is counted from the arrival, and from
    the admission for a request that is late by then: else who issues too much would
    come first; what is below counts all of the lower level, the EDF queue too; of a
    throughput a server counts the part that the application has on it; overload is
    over when what is due can be had in time (`penstock.qos.feedback`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum, inf
from typing import Final

from penstock.qos.edf import DueFirst
from penstock.qos.feedback import DepthDecision, Served, WindowStatistics, decide
from penstock.qos.punctual import LateAwareQueue
from penstock.qos.request import Request
from penstock.qos.saturation import Pace, Saturation
from penstock.qos.slo import Slo, slo_of
from penstock.registry import Parameter

__all__ = ["MARGIN", "PARAMETERS", "TwoLevel", "make"]

#: Spare is what holds less than this share of the queue threshold.
MARGIN: Final = 0.9
#: Of a latency, what the lower level may take where the upper one holds requests.
_LOWER: Final = 0.5
#: A storage that is idle for less than the rest has all the work it can do.
_SATURATED: Final = 0.98
#: Before anything was measured.
_FIRST_DEPTH: Final = 8.0

_OVERLOAD: Final = ("hold", "send")
PARAMETERS: Final = (
    Parameter("window", "length of a time window", 0.5, unit="s", low=1e-3),
    Parameter(
        "credit", "length of a credit window; 0: as long as latencies bear", 0.0, "s"
    ),
    Parameter("overload", "what is done with too many", "hold", choices=_OVERLOAD),
)


class TwoLevel:
    """The two-level scheduler of papers/5."""

    def __init__(
        self,
        slos: Mapping[str, Slo],
        now: float,
        window: float,
        credit: float,
        *,
        hold: bool,
    ) -> None:
        self.wake = inf
        self.outstanding = 0
        self.depth = _FIRST_DEPTH
        self.served: dict[str, int] = {}
        self.decision = DepthDecision(_FIRST_DEPTH, _FIRST_DEPTH)
        """What feedback said last."""
        self.credit = 0.0
        """D (bytes); below 0 by no more than the last request that passed."""
        self._window, self._credit, self._hold = window, credit, hold
        self._share = _LOWER if hold else 1.0
        self._upper = LateAwareQueue(slos, entitles=hold)
        self.hear, self.spread = self._upper.hear, self._upper.spread
        self._lower = DueFirst()
        self._saturation = Saturation()
        self._threshold = _FIRST_DEPTH
        self._saturated = True
        self._below = 0
        self._classes: dict[str, Served] = {}
        self._most = self._moved = 0
        self._idle = 0.0
        self._expires = now
        self._ends = now + window
        self._idle_since = now
        self.change(slos, now)

    @property
    def waiting(self) -> int:
        """Number of requests that wait, on both levels."""
        return self._upper.waiting + len(self._lower.heap)

    @property
    def full(self) -> float:
        """D_full (bytes): the sum of t_i over one credit window."""
        return self._total * self._credit_window

    @property
    def _credit_window(self) -> float:
        return self._short if self._saturated else self._credit or self._window

    def change(self, slos: Mapping[str, Slo], now: float) -> None:  # noqa: ARG002
        """Set other objectives; deadlines that are given stay."""
        least = min((slo.latency for slo in slos.values()), default=1.0)
        self._short = self._credit or _LOWER * least
        self._upper.change(slos)
        self._slos = dict(slos)
        self._sum_up()

    def arrive(self, request: Request, now: float) -> None:
        """Take a request in; it is due l_i from now."""
        request.arrived = now
        latency = self._upper.flow_of(request.application).latency
        request.deadline = now + latency
        self._upper.push(request)

    def dispatch(self, now: float) -> list[Request]:
        """Close windows that have ended, admit, and send the earliest deadlines."""
        if now >= self._ends:
            self._close_window(now)
        if self._upper.waiting:
            self._admit(now)
        gone: list[Request] = []
        lower = self._lower
        while lower.heap and self.outstanding < self.depth:
            request = lower.pop()
            self._send(request, now)
            gone.append(request)
        self._set_wake(now)
        return gone

    def complete(self, request: Request, moved: int, now: float) -> None:
        """Note how long the storage took; give back what was not used."""
        self.outstanding -= 1
        self._below -= request.cost
        if not self.outstanding:
            self._idle_since = now
        seen = self._seen(request.application)
        seen.times.append(now - request.sent)
        seen.waited += request.sent - request.admitted
        self._moved += moved
        if unused := request.unused(moved):
            self.served[request.application] -= unused
            self._upper.refund(request, unused)

    # --- Upper level ----------------------------------------------------------------

    def _admit(self, now: float) -> None:
        """Let requests pass in the order of their start tags, while there is credit."""
        upper, lower = self._upper, self._lower
        while upper.waiting and (self.credit > 0 or self._refill(now)):
            room = not lower.heap and self.outstanding < self.depth
            request = upper.pop_at(now, left_over=room)
            if request is None:
                break
            cost = request.cost
            self.credit -= cost
            self._below += cost
            request.admitted = now
            self._seen(request.application).came += 1
            lower.push(request)

    def _sum_up(self) -> None:
        """Add up the throughputs, of each the part that it has here; cut D to D_full.

        An SLO is one of the total service, on all servers.
        """
        flow_of = self._upper.flow_of
        parts = (slo.throughput * flow_of(a).part() for a, slo in self._slos.items())
        self._total = fsum(parts) or slo_of(self._slos, "").throughput
        self.credit = min(self.credit, self.full)

    def _refill(self, now: float) -> bool:
        """Fill D if the storage is spare or the credit window has expired."""
        if self.outstanding + len(self._lower.heap) < MARGIN * self._threshold:
            self.credit = self.full
        elif now >= self._expires:
            self._expires = now + self._credit_window
            grant = self.full - self._below if self._hold else self.full
            self.credit = min(self.full, self.credit + max(0.0, grant))
        return self.credit > 0

    # --- Lower level ----------------------------------------------------------------

    def _send(self, request: Request, now: float) -> None:
        if not self.outstanding:
            self._idle += now - self._idle_since
        self.outstanding += 1
        if self.outstanding > self._most:
            self._most = self.outstanding
        request.sent = now
        name = request.application
        self.served[name] = self.served.get(name, 0) + request.cost

    def _set_wake(self, now: float) -> None:
        """Ask for the end of the window, and of the credit window if it is waited for.

        A credit window that has expired is used at once, unless there is no need.
        """
        if not (self.outstanding or self._upper.waiting or self._lower.heap):
            self.wake = inf
        elif self._upper.waiting and now < self._expires < self._ends:
            self.wake = self._expires
        else:
            self.wake = self._ends

    # --- Feedback -------------------------------------------------------------------

    def _seen(self, application: str) -> Served:
        seen = self._classes.get(application)
        if seen is None:
            latency = self._upper.flow_of(application).latency
            seen = self._classes[application] = Served(latency * self._share)
        return seen

    def _begin_window(self) -> None:
        self._classes = {}
        self._most = self.outstanding
        self._moved = 0
        self._idle = 0.0

    def _close_window(self, now: float) -> None:
        """Set the depth by what was seen; a window may have ended long ago."""
        length = self._window + now - self._ends
        past = self._past(now, length)
        self._saturated = past.busy > _SATURATED
        self._sum_up()
        decision = decide(past, overloaded=self.decision.overloaded)
        if decision is not None:
            self.decision = decision
            self._set_depth(past.busy * length)
            self._note_times()
        self._ends = now + self._window
        self._idle_since = max(self._idle_since, now)
        self._begin_window()

    def _past(self, now: float, length: float) -> WindowStatistics:
        idle = self._idle + (0.0 if self.outstanding else now - self._idle_since)
        return WindowStatistics(
            window=length,
            classes=self._classes,
            depth=self.depth,
            most=self._most,
            busy=1.0 - idle / length,
            outstanding=self.outstanding,
            queued=len(self._lower.heap),
            due=self._lower.due(now + self._window),
        )

    def _note_times(self) -> None:
        """Note what the requests of each class take below the upper level."""
        for application, seen in self._classes.items():
            if seen.times and self._hold:
                mean = (seen.waited + fsum(seen.times)) / len(seen.times)
                self._upper.flow_of(application).ahead = mean

    def _set_depth(self, busy: float) -> None:
        """Set how many may be at the storage, which was busy for so long (s)."""
        decision = self.decision
        enough = self._enough(busy) if self._hold else 0.0
        self.depth, self._threshold = decision.depth, decision.threshold
        if self._hold:
            if decision.overloaded or self._saturated:
                self.depth = self._threshold = enough
            else:
                self.depth = max(enough, min(self.depth, self._threshold))
        if self.depth < inf:
            self.depth = float(int(self.depth))

    def _enough(self, busy: float) -> float:
        """Learn what the storage can do; return the least depth with which it does."""
        known = self._saturation
        if self._upper.waiting and self._saturated:
            answered = sum(len(seen.times) for seen in self._classes.values())
            known.note(self.depth, Pace(self._moved / busy, answered / busy))
            self._upper.scale = known.capacity() / self._total or 1.0
            return known.next()
        return 2.0 ** known.best()


def make(
    slos: Mapping[str, Slo], now: float, window: float, credit: float, overload: float
) -> TwoLevel:
    """Return a scheduler that begins now."""
    return TwoLevel(slos, now, window, credit, hold=_OVERLOAD[int(overload)] == "hold")
