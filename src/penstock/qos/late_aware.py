# SPDX-License-Identifier: MIT
"""The requests of one application, late ones last while the storage is short.

`ClassQueue` is a queue of `penstock.qos.promises.PromiseQueue`. There, s is the
measured capacity of the storage divided by the sum of the throughputs t_i.

While s >= 1 the storage can keep all promises, and nothing is treated as late.

While s < 1 some requests must be late. If all applications wait equally, all are
late. So some requests wait longer, and the others are in time: a 95th percentile
ignores 5 % of the requests. The rules are:

1. A request is *late* when it can no longer be answered before its deadline. It moves
   to the late queue of its application, behind the requests that can be in time.
2. An application that has only late requests *yields* its turn, if they have piled up:
   if their cost exceeds t_i l_i plus one request; within l_i no more arrives while
   the application keeps to t_i.
3. A yielding application keeps its promise clock and its start tag, so the service
   that it missed is owed to it: its next request that can be in time goes before those
   of applications that are owed less. An application that is owed more than `LAG_S`
   seconds of its throughput does not yield until it has caught up. So shares hold
   except for `LAG_S`, and late requests are sent in batches.
4. Late requests are also sent when no other application has a request and the storage
   has room, and in every `LATE_TURN`-th turn of their application. So none starves.

A late request gets a new deadline, now + l_i, when it is sent.

Source: not in two-level scheduling; this is our extension for ``overload=hold``.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Final

from penstock.qos.request import Request
from penstock.qos.sfq import TaggedQueue
from penstock.qos.slo import Slo

__all__ = ["LAG_S", "LATE_TURN", "ClassQueue"]

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
        *("at_storage", "busy_since_s", "catching_up", "completed_s", "favoured_s"),
        *("late", "lower_level_s", "number", "pause_until_s", "promise_s", "report_s"),
        *("short", "start_tag", "trial_since_s", "trial_tag", "turns"),
        *("wants_until_s", "yielding"),
    )

    def __init__(self, application: str, slo: Slo) -> None:
        super().__init__(application, slo)
        self.late: deque[Request] = deque()
        self.lower_level_s = -inf
        """Mean time of its requests in the lower level; -inf: no request is late."""
        self.start_tag = 0.0
        """Start tag of its next request."""
        self.number = 0
        """Serial number of its valid entries in the heaps of `PromiseQueue`."""
        self.yielding = self.catching_up = False
        self.turns = 0
        """Number of requests taken."""
        self.promise_s = -inf
        """R_i: until when its service keeps its promise."""
        self.short = False
        """It is owed too much, or was and is still owed."""
        self.at_storage = 0
        """Requests that were taken and are not complete."""
        self.busy_since_s = self.completed_s = -inf
        """Since when it has always had a request; time of its last completion."""
        self.report_s = 0.0
        """Service in the last report from elsewhere, in seconds of its throughput."""
        self.wants_until_s = -inf
        """Until when the last report that it wants more elsewhere is valid."""
        self.favoured_s = self.trial_since_s = self.pause_until_s = -inf
        """When requests were last held for it; its trial; its pause."""
        self.trial_tag = 0.0
        """Its finish tag at the begin of the trial."""

    def is_active(self, now: float, think_s: float) -> bool:
        """Return True if it has a request at the storage or will issue one soon."""
        return self.at_storage > 0 or now < self.completed_s + think_s

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
