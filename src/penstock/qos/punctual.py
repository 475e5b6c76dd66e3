# SPDX-License-Identifier: MIT
"""Start tags, where requests that are late anyway let the others go first.

Where the storage can give everybody its throughput, an application that has had less
than its share is entitled to the next turn. Where it cannot, somebody waits. If all
wait alike all are late; if some do, the others are in time, and a 95th percentile
leaves out 5 of 100. So there

- a request is *late* when it can no longer be answered in time, and joins the late ones
  of its application; the others of that application go before it;
- an application that has only late ones gives up its turn to others, if they have piled
  up: there are more than come in l_i if it issues t_i;
- what it gives up it is *owed*, unless it has had its share: it keeps its start tag,
  and its next request that can be in time goes before those of all who are owed less.
  One that is owed more than `LAG` seconds of its throughput gives up nothing until it
  has caught up: shares hold, but for that much, and late ones go in batches;
- late ones also go when nobody else is there and the storage has room, and at every
  40th turn of their application, so that none of them starves.

A late request has a new deadline when it goes. Source: beyond papers/5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf
from typing import Final

from penstock.qos.request import Request
from penstock.qos.sfq import StartTags, TaggedQueue
from penstock.qos.slo import Slo

__all__ = ["LAG", "LATE_TURN", "ClassQueue", "LateAwareQueue"]

#: An application may fall behind its share by so much of its throughput (s).
LAG: Final = 1.0
#: Of so many turns of an application its late ones have one: half of what a 95th
#: percentile leaves out.
LATE_TURN: Final = 40
#: Of a latency, what a request may take after its turn and yet not count as late.
_AFTER: Final = 0.5


class ClassQueue(TaggedQueue):
    """The requests of one application: those that can be in time, and the late."""

    __slots__ = ("ahead", "catching_up", "late", "place", "start", "turn", "used")

    def __init__(self, application: str, slo: Slo) -> None:
        super().__init__(application, slo)
        self.late: deque[Request] = deque()
        self.ahead = -inf
        """What a request takes once it has its turn (s); -inf: nothing is late."""
        self.start = 0.0
        """Start tag of its next request."""
        self.used = -inf
        """Until when its share, a throughput, has been used (s)."""
        self.place = 0
        """Number of its place among those who have given up their turn; 0: none."""
        self.catching_up = False
        self.turn = 0
        """Number of turns it has had."""

    def sort_out(self, now: float) -> None:
        """Put those that can no longer be in time among the late."""
        requests = self.requests
        soonest = now + min(self.ahead, _AFTER * self.latency)
        while requests and requests[0].deadline < soonest:
            self.late.append(requests.popleft())

    def gives_up(self, owed: float) -> bool:
        """Tell whether it lets others go first; `owed`: what it is owed by now (s)."""
        if self.requests:
            return False
        self.catching_up = owed > (0.0 if self.catching_up else LAG)
        if self.catching_up:
            return False
        return len(self.late) * self.last > self.weight * self.latency + self.last

    def take(self, now: float, *, late_last: bool) -> Request:
        """Take out the next one; a late one has a new deadline."""
        self.turn += 1
        if self.requests and ((late_last and self.turn % LATE_TURN) or not self.late):
            request = self.requests.popleft()
        else:
            request = self.late.popleft()
            request.deadline = now + self.latency
        return request


class LateAwareQueue(StartTags[ClassQueue]):
    """Requests by start tags, but for those that are late; see the module.

    Parameters
    ----------
    entitles
        Whether one that has had less than its share is entitled to the next turn.
    """

    def __init__(self, slos: Mapping[str, Slo], *, entitles: bool = True) -> None:
        super().__init__(slos, ClassQueue)
        self._entitles = entitles
        self.scale = 1.0
        """What the storage has over the sum of the throughputs; below 1: too little."""
        self._given_up: list[tuple[float, int, ClassQueue]] = []

    def push(self, request: Request) -> None:
        """Take in a request that has just arrived, with its deadline."""
        lane = self.flow_of(request.application)
        lane.requests.append(request)
        self.waiting += 1
        if lane.place:
            self._enter(lane, request.arrived)
        elif len(lane.requests) == 1 and not lane.late:
            lane.start = self._next_start(lane)
            self._enter(lane, request.arrived)

    def pop(self) -> Request:
        """Take out the next one, whether it can be in time or not."""
        request = self.pop_at(-inf, left_over=True)
        if request is None:
            raise IndexError("nothing waits")
        return request

    def pop_at(self, now: float, *, left_over: bool) -> Request | None:
        """Take out the next one; None: nobody goes.

        `left_over`: those who have given up their turn go if there is nobody else.
        """
        lane = self._recalled(LAG)
        while lane is None and self._heads:
            lane = heappop(self._heads)[2]
            if self.scale >= 1:
                break
            lane.sort_out(now)
            if lane.gives_up(self._virtual - lane.start):
                lane.place = self._next_number()
                heappush(self._given_up, (lane.start, lane.place, lane))
                lane = None
        if lane is None and left_over:
            lane = self._loosest()
        return None if lane is None else self._take(lane, now)

    def _take(self, lane: ClassQueue, now: float) -> Request:
        request = lane.take(now, late_last=self.scale < 1)
        self._charge(lane, lane.start, request)
        rate = lane.weight * self.scale * lane.part()
        lane.used = max(lane.used, now - LAG) + request.cost / rate
        if lane.requests or lane.late:
            lane.start = self._own_start(lane)
            self._enter(lane, now)
        return request

    def _enter(self, lane: ClassQueue, now: float) -> None:
        """Give a turn to one that waits: the next, if it is entitled to it.

        It is owed nothing if it has had its share.
        """
        lane.place = 0
        if lane.used > now:
            lane.start = max(lane.start, self._virtual)
        elif self._entitles and self.scale >= 1:
            lane.start = min(lane.start, self._virtual)
        heappush(self._heads, (lane.start, self._next_number(), lane))

    def _loosest(self) -> ClassQueue | None:
        """Return the one with the loosest bound of those who gave up their turn.

        Its late ones are the least late, and whom the others favour stays in time.
        """
        waiting = [lane for _, place, lane in self._given_up if lane.place == place]
        if not waiting:
            return None
        lane = max(waiting, key=lambda lane: lane.latency)
        lane.place = 0
        return lane

    def _recalled(self, lag: float) -> ClassQueue | None:
        """Return the one that gave up its turn and is owed most, if more than `lag`.

        One to whom something came that can be in time is no longer among them.
        """
        given_up = self._given_up
        while given_up and given_up[0][2].place != given_up[0][1]:
            heappop(given_up)
        if not given_up or self._virtual - given_up[0][0] <= lag:
            return None
        lane = heappop(given_up)[2]
        lane.place = 0
        lane.catching_up = self._virtual - lane.start > LAG
        return lane
