# SPDX-License-Identifier: MIT
"""Keep promises first, then share what is left by start tags.

`PromiseQueue` is the upper level of the two-level scheduler with ``overload=hold``. It
serves an application that has had less than its promise t_i before all others, and
shares the remaining bandwidth by start tags (`penstock.qos.sfq`).

Promise clock. R_i is the time until which the service of application i so far keeps its
promise. While R_i <= now the application is *within its promise*: its requests go
first, the smallest R_i before the others, and each moves the clock,

    R_i = R_i + c / r_i,    r_i = t_i min(1.01, s),

with c the cost of the request (bytes) and s (`capacity_over_promises`) the measured
capacity of the storage divided by the sum of the t_i (1 % more than promised, if there
is as much, makes up for whole requests). While R_i > now its requests are *beyond its
promise*. They are sent only while the storage has room, in the order of their start
tags, and do not move the clock: using bandwidth that others leave costs nothing later.
Service d on other servers moves the clock by d / r_i, to at most now + `LAG_S`. So a
promise is one of total service. An application that was idle has saved at most `LAG_S`
seconds of its promise, and one that is served too little is owed at most twice that.

Why an application that always has a request here gets t_i if sum t_i <= capacity: its
clock stands still unless it is served, and it goes before every request that is beyond
a promise. Requests within promises need at most sum t_i, so they find bandwidth.

Held requests. An application with few processes may have all its requests at the
storage, where those of others are in front. Two rules keep its promise and its share:

- *Short*: it has had requests for `BUSY_S`, and is owed more than 0.1 s of its promise
  and more than two requests; then it is short until it is owed nothing. Meanwhile
  requests beyond a promise are held while it has a request at the storage, and for at
  most `THINK_S` after its last answer, in which a blocking process issues the next
  request. This is the only time in which the storage can be idle although requests
  wait.
- *Shared storage* (``storage=shared``: schedulers of several client nodes in front of
  one storage). An application of another node that always has requests there takes part
  in the order of start tags: its finish tag here moves with the reports of its node.
  Requests beyond a promise are held while their start tag is ahead of that finish tag
  by more than one request of each and one report.

An application that cannot use the favour (its own processes are too slow) must not hold
others for ever: if it gains less than half of its promise in `TRIAL_S`, nothing is held
for it during `PAUSE_S`.

While s < 1 late requests go last (`penstock.qos.late_aware`).

Source: not in two-level scheduling, whose credit is common to all applications and goes
to the one with most requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from penstock.qos.late_aware import LAG_S, ClassQueue
from penstock.qos.request import Request
from penstock.qos.sfq import ApplicationQueues
from penstock.qos.slo import Slo

__all__ = ["BUSY_S", "PAUSE_S", "THINK_S", "TRIAL_S", "VALID_S", "PromiseQueue"]

#: Longest time between an answer and the next request of a process that only waits for
#: answers (s).
THINK_S: Final = 0.002
#: An application wants more service if it has had requests for this time (s).
BUSY_S: Final = 0.2
#: Time in which an application must gain from requests that are held for it (s).
TRIAL_S: Final = 2.0
#: After a trial without gain nothing is held for the application for this time (s).
PAUSE_S: Final = 16.0
#: An application is short if it is owed more than this (s) and more than two requests.
_SHORT_S: Final = 0.1
#: Promises are kept with this margin, if the storage has it.
_MARGIN: Final = 1.01
#: The capacity is enough if it is this fraction of the sum of the throughputs.
_ENOUGH: Final = 0.95
#: Void entries that a heap may hold beside one per application.
_VOID_ENTRIES: Final = 64
#: Least gain in a trial, as a fraction of the promise.
_MIN_GAIN: Final = 0.5
#: A report that an application wants more service is valid for this time (s).
VALID_S: Final = 1.0


def _valid(
    heap: list[tuple[float, int, ClassQueue]],
) -> list[tuple[float, int, ClassQueue]]:
    """Return a heap without its void entries."""
    valid = [entry for entry in heap if entry[1] == entry[2].number]
    heapify(valid)
    return valid


class PromiseQueue(ApplicationQueues[ClassQueue]):
    """Requests within promises first, then by start tag; see the module for the rules.

    Parameters
    ----------
    shared_storage
        True: other nodes send to the same storage and report their service.
    """

    def __init__(self, slos: Mapping[str, Slo], *, shared_storage: bool) -> None:
        super().__init__(slos, ClassQueue)
        self.capacity_over_promises = 1.0
        """s: capacity of the storage divided by the sum of the t_i; see
        `set_capacity`."""
        self.hold_until_s = inf
        """When requests that `pop_at` has held may go; inf: none held. The caller
        resets it."""
        self._shared_storage = shared_storage
        self._now_s = -inf
        # Heaps of (key, number, queue); an entry is void if its number is not that of
        # the queue. A queue with requests is in `_yielding`, or in `_heads` and, while
        # the storage is not short, in `_promised`.
        self._promised: list[tuple[float, int, ClassQueue]] = []
        self._yielding: list[tuple[float, int, ClassQueue]] = []
        self._most_entries = _VOID_ENTRIES
        """Length of a heap from which void entries are removed."""
        self._unqueued: dict[str, ClassQueue] = {}
        """Applications without a queued request that were served before."""
        self._elsewhere: dict[str, ClassQueue] = {}
        """Applications that want more service on other nodes of the storage."""

    # --- Arrivals, completions and reports ------------------------------------------

    def push(self, request: Request) -> None:
        """Add a request that has just arrived; its deadline must be set."""
        queue, now = self.queue_of(request.application), request.arrived_s
        self._now_s = now
        self.waiting += 1
        first = not (queue.requests or queue.late)
        queue.requests.append(request)
        if first:
            self._unqueued.pop(request.application, None)
            if not queue.at_storage and now >= queue.completed_s + THINK_S:
                queue.busy_since_s = now
                saved_s = LAG_S if self.capacity_over_promises >= 1 else 0.0
                queue.promise_s = max(queue.promise_s, now - saved_s)
            queue.start_tag = self._next_start_tag(queue)
        if first or queue.yielding:
            self._enter(queue)

    def queue_of(self, application: str) -> ClassQueue:
        """Return the queue of an application; create it at the first call."""
        queue = self.queues.get(application)
        if queue is None:
            queue = super().queue_of(application)
            self._most_entries = _VOID_ENTRIES + 2 * len(self.queues)
        return queue

    def record_completion(self, application: str, now: float) -> None:
        """Record that the storage has completed a request of an application."""
        queue = self.queues[application]
        queue.at_storage -= 1
        queue.completed_s = now

    def record_report(
        self,
        server: str,
        served_bytes: Mapping[str, float],
        wanting: Iterable[str],
        now: float,
    ) -> None:
        """Record what another server has served, and which applications want more."""
        self._now_s = now
        self.record_remote_service(server, served_bytes)
        if self._remote_service is not self._reported:
            return
        for application in served_bytes:
            self._count_remote_service(self.queue_of(application))
        for application in wanting if self._shared_storage else ():
            queue = self.queue_of(application)
            queue.wants_until_s = now + VALID_S
            self._elsewhere[application] = queue

    def _count_remote_service(self, queue: ClassQueue) -> None:
        """Move the tags and the promise clock of a queue by its reported service."""
        start_tag = self._backlogged_start_tag(queue)
        moved_s = start_tag - queue.finish_tag
        queue.finish_tag = start_tag
        if moved_s and (queue.requests or queue.late) and not queue.yielding:
            queue.start_tag += moved_s
            self._enter(queue)

    def has_rivals(self, now: float) -> bool:
        """Return True if an application wants more service on another node."""
        return any(now < queue.wants_until_s for queue in self._elsewhere.values())

    def wanting(self, now: float) -> tuple[str, ...]:
        """Return the applications that have had requests here for `BUSY_S`."""
        if not self._shared_storage:
            return ()
        return tuple(
            name
            for name, queue in self.queues.items()
            if now >= queue.busy_since_s + BUSY_S
            and (queue.requests or queue.late or queue.is_active(now, THINK_S))
        )

    # --- Order ----------------------------------------------------------------------

    def pop_at(self, now: float, *, has_room: bool) -> Request | None:
        """Remove and return the next request; None if none may go now.

        Without `has_room` only requests within a promise may go.
        """
        self._now_s = now
        if self.capacity_over_promises < 1:
            queue = self._pop_late_last(now, has_room=has_room)
        else:
            queue = self._pop_promised(now)
            if queue is None and has_room:
                queue = self._pop_by_tag(now)
        return None if queue is None else self._take(queue, now)

    def _pop_promised(self, now: float) -> ClassQueue | None:
        """Remove and return the queue that is owed most; None: none is owed."""
        heap = self._promised
        while heap:
            promise_s, number, queue = heap[0]
            if number == queue.number:
                if promise_s > now:
                    return None
                heappop(heap)
                return queue
            heappop(heap)
        return None

    def _pop_by_tag(self, now: float) -> ClassQueue | None:
        """Remove and return the queue with the smallest start tag, unless held."""
        heads = self._heads
        while heads:
            _, number, queue = heads[0]
            if number == queue.number:
                if self._is_held(queue, now):
                    return None
                heappop(heads)
                return queue
            heappop(heads)
        return self._pop_yielding(now)

    def _pop_late_last(self, now: float, *, has_room: bool) -> ClassQueue | None:
        """Remove and return the queue with the smallest start tag that does not yield.

        Without room it must have had less than its share.
        """
        heads = self._heads
        queue = self._pop_most_owed() if self._yielding else None
        while queue is None and heads:
            _, number, first = heads[0]
            if number == first.number:
                if self._is_held(first, now) if has_room else first.promise_s > now:
                    return None
                if not self._yields(first, now):
                    queue = first
            heappop(heads)
        if queue is None and has_room:
            queue = self._pop_yielding(now)
        return queue

    def _yields(self, queue: ClassQueue, now: float) -> bool:
        """Move the queue to the yielding ones if it yields; return True if it does."""
        queue.move_late_requests(now)
        if not queue.yields(self._virtual_time - queue.start_tag):
            return False
        queue.number, queue.yielding = self._next_number(), True
        heappush(self._yielding, (queue.start_tag, queue.number, queue))
        return True

    def _pop_most_owed(self) -> ClassQueue | None:
        """Return the yielding queue that is owed most, if it is more than `LAG_S`."""
        yielding = self._yielding
        while yielding and yielding[0][2].number != yielding[0][1]:
            heappop(yielding)
        if not yielding or self._virtual_time - yielding[0][0] <= LAG_S:
            return None
        queue = heappop(yielding)[2]
        queue.catching_up = True
        return queue

    def _pop_yielding(self, now: float) -> ClassQueue | None:
        """Return the yielding queue with the longest latency bound, unless it is held.

        Its late requests are the least late, and those with tighter bounds stay in
        time.
        """
        yielding = [q for _, n, q in self._yielding if n == q.number]
        if not yielding:
            return None
        queue = max(yielding, key=lambda queue: queue.latency_s)
        return None if self._is_held(queue, now) else queue

    def set_capacity(self, over_promises: float, now: float) -> None:
        """Set the measured capacity divided by the sum of the t_i.

        A capacity of 95 % of the sum counts as enough, because it is measured in whole
        requests. If it is less, all are owed more and more: what all are owed is
        forgiven, so that the clocks tell who had less than its share.
        """
        enough = over_promises >= _ENOUGH
        self.capacity_over_promises = (
            max(1.0, over_promises) if enough else over_promises
        )
        active = [q for q in self.queues.values() if q.requests or q.late]
        owed_s = now - max((q.promise_s for q in active), default=now)
        for queue in active:
            if self.capacity_over_promises < 1 and owed_s > 0:
                queue.promise_s += owed_s
            if self.capacity_over_promises >= 1 or not queue.yielding:
                self._enter(queue)

    def _take(self, queue: ClassQueue, now: float) -> Request:
        """Remove, charge and return the next request of a queue."""
        request = queue.take(now, late_last=self.capacity_over_promises < 1)
        self._charge(queue, queue.start_tag, request)
        queue.at_storage += 1
        if queue.promise_s <= now:
            since_s = max(queue.promise_s, now - 2 * LAG_S)
            queue.promise_s = since_s + queue.charged_bytes / self._promised_rate(queue)
        if queue.requests or queue.late:
            queue.start_tag = self._backlogged_start_tag(queue)
            self._enter(queue)
        else:
            queue.number, queue.yielding = self._next_number(), False
            self._unqueued[queue.application] = queue
        return request

    def _enter(self, queue: ClassQueue) -> None:
        """Put a queue with requests into the heaps."""
        queue.number, queue.yielding = self._next_number(), False
        number = queue.number
        heappush(self._heads, (queue.start_tag, number, queue))
        if self.capacity_over_promises >= 1:
            heappush(self._promised, (queue.promise_s, number, queue))
            if len(self._heads) > self._most_entries:
                self._heads = _valid(self._heads)
            if len(self._promised) > self._most_entries:
                self._promised = _valid(self._promised)

    def _promised_rate(self, queue: ClassQueue) -> float:
        """Return r_i (bytes/s)."""
        return queue.weight * (
            self.capacity_over_promises
            if self.capacity_over_promises < _MARGIN
            else _MARGIN
        )

    def _backlogged_start_tag(self, queue: ClassQueue) -> float:
        """Return F' + d / t_i, and move the promise clock by d / r_i."""
        delay_bytes = self._remote_service.take_delay_bytes(
            queue.application, queue.charged_bytes
        )
        if not delay_bytes:
            return queue.finish_tag
        queue.remote_bytes += delay_bytes
        queue.report_s = delay_bytes / queue.weight
        moved_s = queue.promise_s + delay_bytes / self._promised_rate(queue)
        most_s = max(queue.promise_s, self._now_s + LAG_S)
        queue.promise_s = min(moved_s, most_s)
        return queue.finish_tag + queue.report_s

    # --- Held requests --------------------------------------------------------------

    def _is_held(self, queue: ClassQueue, now: float) -> bool:
        """Return True if the next request of a queue waits for another application."""
        held = False
        if self._unqueued and self.capacity_over_promises >= 1:
            held = self._waits_for_short(now)
        if self._elsewhere:
            held |= self._waits_for_other_nodes(queue, now)
        if held and queue.promise_s > now:
            self._hold_until(queue.promise_s)
        return held

    def _waits_for_short(self, now: float) -> bool:
        """Return True if an application with requests at the storage is short."""
        held = False
        for name, other in tuple(self._unqueued.items()):
            if not other.is_active(now, THINK_S):
                del self._unqueued[name]
            elif self._is_short(other, now) and self._helps(other, now):
                held = True
                if not other.at_storage:
                    self._hold_until(other.completed_s + THINK_S)
        return held

    def _waits_for_other_nodes(self, queue: ClassQueue, now: float) -> bool:
        """Return True if an application of another node had less than this queue."""
        held = False
        for name, other in tuple(self._elsewhere.items()):
            if now >= other.wants_until_s:
                del self._elsewhere[name]
            elif (
                other is not queue
                and self._is_ahead(queue, other)
                and self._helps(other, now)
            ):
                held = True
                self._hold_until(other.wants_until_s)
        return held

    def _hold_until(self, time_s: float) -> None:
        self.hold_until_s = min(self.hold_until_s, time_s)

    def _is_short(self, queue: ClassQueue, now: float) -> bool:
        """Return True if the application is owed much, or was and still is owed."""
        if now < queue.busy_since_s + BUSY_S:
            return False
        least_s = max(_SHORT_S, 2 * queue.last_cost_bytes / queue.weight)
        queue.short = now - queue.promise_s > (0.0 if queue.short else least_s)
        return queue.short

    def _is_ahead(self, queue: ClassQueue, other: ClassQueue) -> bool:
        """Return True if a queue is ahead of an application of another node."""
        allowed_s = queue.last_cost_bytes / queue.weight + other.report_s
        debt_s = max(LAG_S, 4 * allowed_s)
        tag = max(other.finish_tag, self._virtual_time - debt_s)
        return queue.start_tag > tag + allowed_s

    def _helps(self, queue: ClassQueue, now: float) -> bool:
        """Return False if the application does not gain from what is held for it."""
        if now < queue.pause_until_s:
            return False
        length_s = now - queue.trial_since_s
        if now - queue.favoured_s > TRIAL_S or length_s > TRIAL_S:
            gain_s = queue.finish_tag - queue.trial_tag
            tried = now - queue.favoured_s <= TRIAL_S
            queue.trial_since_s, queue.trial_tag = now, queue.finish_tag
            least_s = _MIN_GAIN * min(1.0, self.capacity_over_promises) * length_s
            if tried and gain_s < least_s:
                queue.pause_until_s = now + PAUSE_S
                queue.short = False
                queue.promise_s = max(queue.promise_s, now)
        queue.favoured_s = now
        return now >= queue.pause_until_s
