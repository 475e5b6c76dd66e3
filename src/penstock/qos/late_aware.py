# SPDX-License-Identifier: MIT
"""Start-time fair queueing that serves late requests last while the storage is short.

`LateAwareQueue` is the upper level of the two-level scheduler. ``scale`` is the
measured capacity of the storage divided by the sum of the throughputs t_i.

While scale >= 1 the storage can give every application its throughput. An application
that has had less than its share gets the next turn, and nothing is treated as late.

While scale < 1 some requests must be late. If all applications wait equally, all are
late. So some requests wait longer, and the others are in time: a 95th percentile
ignores 5 % of the requests. The rules are:

1. A request is *late* when it can no longer be answered before its deadline. It moves
   to the late queue of its application, behind the requests that can be in time.
2. An application that has only late requests *yields* its turn, if they have piled up:
   if their cost exceeds t_i l_i plus one request; within l_i no more arrives while
   the application keeps to t_i.
3. A yielding application keeps its start tag, so the service that it missed is owed to
   it (unless it has had its share): its next request that can be in time goes before
   those of applications that are owed less. An application that is owed more than
   `LAG_S` seconds of its throughput does not yield until it has caught up. So shares
   hold except for `LAG_S`, and late requests are sent in batches.
4. Late requests are also sent when no other application has a request and the storage
   has room, and in every `LATE_TURN`-th turn of their application. So none starves.

A late request gets a new deadline, now + l_i, when it is sent.

Source: not in two-level scheduling; this is our extension for ``overload=hold``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf
from typing import Final

from penstock.qos.request import Request
from penstock.qos.sfq import StartTagQueue, TaggedQueue
from penstock.qos.slo import Slo

__all__ = ["LAG_S", "LATE_TURN", "ClassQueue", "LateAwareQueue"]

#: An application may fall behind its share by this many seconds of its throughput.
LAG_S: Final = 1.0
#: Serve one late request in every 40 turns of an application: 2.5 %, half of what a
#: 95th percentile ignores.
LATE_TURN: Final = 40
#: Upper bound, as a fraction of l_i, of the time in the lower level that is assumed
#: when a request is tested for lateness.
_MAX_LOWER_LEVEL_SHARE: Final = 0.5


class ClassQueue(TaggedQueue):
    """The requests of one application: in-time requests, then late requests."""

    __slots__ = (
        *("lower_level_s", "catching_up", "late", "share_used_until_s", "start_tag"),
        *("turns", "yield_number"),
    )

    def __init__(self, application: str, slo: Slo) -> None:
        super().__init__(application, slo)
        self.late: deque[Request] = deque()
        self.lower_level_s = -inf
        """Mean time of its requests in the lower level; -inf: no request is late."""
        self.start_tag = 0.0
        """Start tag of its next request."""
        self.share_used_until_s = -inf
        """Until when the application has used up its share."""
        self.yield_number = 0
        """Serial number of its entry in the heap of yielding queues; 0: none."""
        self.catching_up = False
        self.turns = 0
        """Number of requests sent."""

    def move_late_requests(self, now: float) -> None:
        """Move requests that can no longer be in time to the late queue."""
        requests = self.requests
        earliest_s = now + min(
            self.lower_level_s, _MAX_LOWER_LEVEL_SHARE * self.latency_s
        )
        while requests and requests[0].deadline_s < earliest_s:
            self.late.append(requests.popleft())

    def yields(self, owed_s: float) -> bool:
        """Return True if the queue yields its turn (rules 2 and 3 of the module).

        `owed_s` is the service that it is owed, in seconds of its throughput.
        """
        if self.requests:
            return False
        self.catching_up = owed_s > (0.0 if self.catching_up else LAG_S)
        if self.catching_up:
            return False
        late_bytes = len(self.late) * self.last_cost_bytes
        return late_bytes > self.weight * self.latency_s + self.last_cost_bytes

    def take(self, now: float, *, late_last: bool) -> Request:
        """Remove and return the next request; a late one gets a new deadline.

        With `late_last`, late requests go last, except in every `LATE_TURN`-th turn.
        """
        self.turns += 1
        if self.requests and ((late_last and self.turns % LATE_TURN) or not self.late):
            request = self.requests.popleft()
        else:
            request = self.late.popleft()
            request.deadline_s = now + self.latency_s
        return request


class LateAwareQueue(StartTagQueue[ClassQueue]):
    """Requests by start tag, late requests last; see the module for the rules.

    Parameters
    ----------
    prefers_underserved
        Give the next turn to an application that has had less than its share.
    """

    def __init__(
        self, slos: Mapping[str, Slo], *, prefers_underserved: bool = True
    ) -> None:
        super().__init__(slos, ClassQueue)
        self._prefers_underserved = prefers_underserved
        self.scale = 1.0
        """Capacity of the storage divided by the sum of the throughputs."""
        self._yielding: list[tuple[float, int, ClassQueue]] = []

    def push(self, request: Request) -> None:
        """Add a request that has just arrived; its deadline must be set."""
        queue = self.queue_of(request.application)
        queue.requests.append(request)
        self.waiting += 1
        if queue.yield_number:
            self._enter(queue, request.arrived_s)
        elif len(queue.requests) == 1 and not queue.late:
            queue.start_tag = self._next_start_tag(queue)
            self._enter(queue, request.arrived_s)

    def pop(self) -> Request:
        """Remove and return the next request; treat no request as late."""
        request = self.pop_at(-inf, has_room=True)
        if request is None:
            raise IndexError("pop from an empty queue")
        return request

    def pop_at(self, now: float, *, has_room: bool) -> Request | None:
        """Remove and return the next request; None if all applications yield.

        With `has_room` a yielding application is served if no other has a request.
        """
        queue = self._pop_most_owed()
        while queue is None and self._heads:
            queue = heappop(self._heads)[2]
            if self.scale >= 1:
                break
            queue.move_late_requests(now)
            if queue.yields(self._virtual_time - queue.start_tag):
                queue.yield_number = self._next_number()
                entry = (queue.start_tag, queue.yield_number, queue)
                heappush(self._yielding, entry)
                queue = None
        if queue is None and has_room:
            queue = self._pop_loosest()
        return None if queue is None else self._take(queue, now)

    def _take(self, queue: ClassQueue, now: float) -> Request:
        """Remove, charge and return the next request of a queue."""
        request = queue.take(now, late_last=self.scale < 1)
        self._charge(queue, queue.start_tag, request)
        share_bytes_per_s = queue.weight * self.scale * queue.local_share()
        queue.share_used_until_s = (
            max(queue.share_used_until_s, now - LAG_S)
            + request.cost_bytes / share_bytes_per_s
        )
        if queue.requests or queue.late:
            queue.start_tag = self._backlogged_start_tag(queue)
            self._enter(queue, now)
        return request

    def _enter(self, queue: ClassQueue, now: float) -> None:
        """Put a queue into the heap of start tags.

        A queue that has used up its share is owed nothing: its tag is at least v.
        Otherwise, where the underserved are preferred, its tag is at most v.
        """
        queue.yield_number = 0
        if queue.share_used_until_s > now:
            queue.start_tag = max(queue.start_tag, self._virtual_time)
        elif self._prefers_underserved and self.scale >= 1:
            queue.start_tag = min(queue.start_tag, self._virtual_time)
        heappush(self._heads, (queue.start_tag, self._next_number(), queue))

    def _pop_loosest(self) -> ClassQueue | None:
        """Return the yielding queue with the longest latency bound.

        Its late requests are the least late, and applications with tighter bounds stay
        in time.
        """
        yielding = [
            queue for _, number, queue in self._yielding if queue.yield_number == number
        ]
        if not yielding:
            return None
        queue = max(yielding, key=lambda queue: queue.latency_s)
        queue.yield_number = 0
        return queue

    def _pop_most_owed(self) -> ClassQueue | None:
        """Return the yielding queue that is owed most, if it is more than `LAG_S`.

        Entries of queues that no longer yield are dropped.
        """
        yielding = self._yielding
        while yielding and yielding[0][2].yield_number != yielding[0][1]:
            heappop(yielding)
        if not yielding or self._virtual_time - yielding[0][0] <= LAG_S:
            return None
        queue = heappop(yielding)[2]
        queue.yield_number = 0
        queue.catching_up = self._virtual_time - queue.start_tag > LAG_S
        return queue
