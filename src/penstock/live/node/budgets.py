# SPDX-License-Identifier: MIT
"""What each user may take of a daemon: rates (per second) and holdings (at a time).

The budget is asked before anything is spent on a request: a new connection, a message,
a post, a look at a page, a process to watch. What one user takes too much of is delayed
or refused for this user only. Operators have no budget. A user can use up at most a
quarter of the daemon's descriptors, all users together three quarters: the rest is the
daemon's own and that of operators. What operators hold takes nothing from users.

Nothing here reads a clock: times are passed in, in seconds.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from math import inf
from typing import Final

from penstock.live.wire.identity import is_operator
from penstock.live.wire.messages import ThrottledUser
from penstock.live.wire.subordinates import owner_of

__all__ = ["LOOK_S", "Budgets", "Holding", "Spending", "TokenBucket"]

#: A look at a job that takes longer than this counts for several looks (s).
LOOK_S: Final = 0.0001
#: How long a user is called throttled after the last refusal or delay (s).
_SHOWN_S: Final = 60.0


class Spending(StrEnum):
    """What is limited per second; the value says what was delayed or refused."""

    CONNECTS = "connections were refused: too many per second"
    MESSAGES = "messages were delayed: too many per second"
    LOOKS = "reports of jobs were delayed: too many jobs are active"
    POSTS = "begins of operations were noticed late: too many per second"
    REQUESTS = "requests to the controller were refused: too many per second"
    DRAINS = "drains were started late: too many per second"


class Holding(StrEnum):
    """What is limited at a time; the value says what was refused."""

    CONNECTIONS = "connections were refused: too many are open"
    PROCESSES = "processes were refused: too many are controlled"
    JOBS = "jobs were refused: too many are controlled"
    BYTES = "pages were cut to their size: they were made longer"


#: Tokens per second, and the most that can be saved up.
_RATES: Final = {
    Spending.CONNECTS: (100.0, 1000.0),
    Spending.MESSAGES: (100.0, 1000.0),
    Spending.LOOKS: (1500.0, 1000.0),
    Spending.POSTS: (500.0, 500.0),
    Spending.REQUESTS: (100.0, 1000.0),
    Spending.DRAINS: (5.0, 50.0),
}
_MOST: Final = {
    Holding.CONNECTIONS: 256,
    Holding.PROCESSES: 4096,
    Holding.JOBS: 1000,
    # Pages have the size that the daemon gave them.
    Holding.BYTES: 0,
}


class TokenBucket:
    """Tokens come at a constant rate, and are saved up to a limit.

    `spend` always takes the tokens: a bucket can be in debt. Ask `wait_s` before for
    what can be refused or wait.
    """

    def __init__(self, per_s: float, most: float) -> None:
        self._per_s, self._most = per_s, most
        self._tokens, self._at_s = most, -inf

    @classmethod
    def of(cls, what: Spending) -> TokenBucket:
        """Return the bucket of a user for this spending, full."""
        return cls(*_RATES[what])

    def _fill(self, now_s: float) -> None:
        if now_s > self._at_s:
            tokens = self._tokens + self._per_s * (now_s - self._at_s)
            self._tokens, self._at_s = min(tokens, self._most), now_s

    def wait_s(self, now_s: float, amount: float = 0.0) -> float:
        """Return the time until all debt is paid and `amount` tokens are there (s)."""
        self._fill(now_s)
        return max(amount - self._tokens, 0.0) / self._per_s

    def spend(self, now_s: float, amount: float) -> None:
        """Take `amount` tokens, if need be as debt."""
        self._fill(now_s)
        self._tokens -= amount

    def is_full(self, now_s: float) -> bool:
        """Return True if nothing more can be saved."""
        self._fill(now_s)
        return self._tokens >= self._most


class _UserBudget:
    """The buckets and holdings of one user."""

    def __init__(self) -> None:
        self.buckets: dict[Spending, TokenBucket] = {}
        self.held: Counter[Holding] = Counter()
        #: What was refused or delayed -> how often, and when last (s).
        self.refusals: dict[Spending | Holding, tuple[int, float]] = {}

    def is_unused(self, now_s: float) -> bool:
        return (
            not self.held.total()
            and not self.refusals
            and all(bucket.is_full(now_s) for bucket in self.buckets.values())
        )


class Budgets:
    """The budgets of all users of a node.

    Parameters
    ----------
    descriptors
        How many files the daemon can open.
    owner_of
        Returns the user whose budget a user id has; see `subordinates`.
    """

    def __init__(
        self, descriptors: int, owner_of: Callable[[int], int] = lambda user: user
    ) -> None:
        self._owner_of = owner_of
        self._users: dict[int, _UserBudget] = {}
        #: What all users but operators hold.
        self._held = 0
        self._most_held = descriptors * 3 // 4
        self._most_of_user = descriptors // 4

    @classmethod
    def of_this_process(cls) -> Budgets:
        """Return budgets of the files that this process can open."""
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Read the ranges of containers now, before anybody is served.
        owner_of(0)
        return cls(descriptors, owner_of)

    def owner(self, user: int) -> int:
        """Return the user whose budget a user id has."""
        return self._owner_of(user)

    def _of(self, user: int) -> _UserBudget:
        owner = self._owner_of(user)
        if owner not in self._users:
            self._users[owner] = _UserBudget()
        return self._users[owner]

    def _bucket(self, user: int, what: Spending) -> TokenBucket:
        buckets = self._of(user).buckets
        if what not in buckets:
            buckets[what] = TokenBucket.of(what)
        return buckets[what]

    def take(self, user: int, what: Spending, now_s: float) -> bool:
        """Let a user spend one unit; return False if that is too much."""
        if is_operator(user):
            return True
        bucket = self._bucket(user, what)
        if bucket.wait_s(now_s, 1.0):
            self.refuse(user, what, now_s)
            return False
        bucket.spend(now_s, 1.0)
        return True

    def spend(
        self, user: int, what: Spending, now_s: float, amount: float = 1.0
    ) -> float:
        """Let a user spend `amount`; return how long to wait for it (s)."""
        self.charge(user, what, now_s, amount)
        if wait_s := self.debt_s(user, what, now_s):
            self.refuse(user, what, now_s)
        return wait_s

    def charge(
        self, user: int, what: Spending, now_s: float, amount: float = 1.0
    ) -> None:
        """Let a user pay for what is done in any case: nothing is refused."""
        if not is_operator(user):
            self._bucket(user, what).spend(now_s, amount)

    def debt_s(self, user: int, what: Spending, now_s: float) -> float:
        """Return how long a user has to wait who has spent too much; else 0 (s)."""
        return 0.0 if is_operator(user) else self._bucket(user, what).wait_s(now_s)

    def may_hold(self, user: int, what: Holding, now_s: float) -> bool:
        """Return False, and note it, if one more would be too much for a user."""
        if is_operator(user):
            return True
        held = self._of(user).held
        if (
            held[what] >= _MOST[what]
            or held.total() >= self._most_of_user
            or self._held >= self._most_held
        ):
            self.refuse(user, what, now_s)
            return False
        return True

    def hold(self, user: int, what: Holding, now_s: float) -> bool:
        """Let a user hold one more; return False if that is too much."""
        if not self.may_hold(user, what, now_s):
            return False
        self.keep(user, what)
        return True

    def keep(self, user: int, what: Holding) -> None:
        """Count what a user holds already, whatever the budget."""
        self._count(user, what, 1)

    def release(self, user: int, what: Holding) -> None:
        """Note that a user holds one less."""
        self._count(user, what, -1)

    def _count(self, user: int, what: Holding, more: int) -> None:
        self._of(user).held[what] += more
        if not is_operator(user):
            self._held += more

    def held(self, user: int, what: Holding) -> int:
        """Return how many a user holds."""
        owner = self._owner_of(user)
        return self._users[owner].held[what] if owner in self._users else 0

    def refuse(
        self, user: int, what: Spending | Holding, now_s: float, times: int = 1
    ) -> None:
        """Note that something was refused or delayed."""
        refusals = self._of(user).refusals
        before = refusals.get(what, (0, 0.0))[0]
        refusals[what] = before + times, now_s

    def was_refused(self, user: int, what: Spending | Holding, now_s: float) -> bool:
        """Return True if this was refused to a user in the last minute."""
        _, last_s = self._of(user).refusals.get(what, (0, -inf))
        return not is_operator(user) and now_s - last_s <= _SHOWN_S

    def throttled(self, now_s: float) -> list[ThrottledUser]:
        """Return who was refused what in the last minute; forget unused budgets."""
        for user, budget in list(self._users.items()):
            for what, (_, last_s) in list(budget.refusals.items()):
                if now_s - last_s > _SHOWN_S:
                    del budget.refusals[what]
            if budget.is_unused(now_s):
                del self._users[user]
        return [
            ThrottledUser(user, str(what), times, now_s - last_s)
            for user, budget in sorted(self._users.items())
            for what, (times, last_s) in budget.refusals.items()
        ]
