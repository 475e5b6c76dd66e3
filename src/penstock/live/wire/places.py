# SPDX-License-Identifier: MIT
"""Bounds on what is done at a time: for all users, and for one user.

A user who asks without a pause must not keep others out. Operators are bound only by
the total.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.errors import UnavailableError
from penstock.live.wire.identity import is_operator
from penstock.live.wire.subordinates import owner_of

__all__ = ["Places"]


class Places:
    """A number of places, of which one user may take only some; threads can share it.

    Parameters
    ----------
    total
        Places of all users.
    of_user
        Places that one user can take at a time.
    refusal
        What a user is told who gets none.
    owner_of
        Returns the user in whose name a user id takes places; see `subordinates`.
    """

    def __init__(
        self,
        total: float,
        of_user: int,
        refusal: str,
        owner_of: Callable[[int], int] = owner_of,
    ) -> None:
        self._total = total
        self._of_user = of_user
        self._refusal = refusal
        self._owner_of = owner_of
        self._lock = threading.Lock()
        #: Owner -> places taken; None -> those of operators.
        self._taken: Counter[int | None] = Counter()

    @contextmanager
    def taken(self, user: int | None) -> Iterator[None]:
        """Take a place during the block; see `take`."""
        self.take(user)
        try:
            yield
        finally:
            self.release(user)

    def take(self, user: int | None) -> None:
        """Take a place for a user, None: for an operator, until `release`.

        Raises
        ------
        UnavailableError
            If there is none now.
        """
        owner = self._owner(user)
        with self._lock:
            is_full = self._taken.total() >= self._total
            has_most = owner is not None and self._taken[owner] >= self._of_user
            if is_full or has_most:
                raise UnavailableError(self._refusal, remedy="try again later")
            self._taken[owner] += 1

    def release(self, user: int | None) -> None:
        """Give back a place that this user has taken."""
        owner = self._owner(user)
        with self._lock:
            self._taken[owner] -= 1
            if not self._taken[owner]:
                del self._taken[owner]

    def _owner(self, user: int | None) -> int | None:
        return None if user is None or is_operator(user) else self._owner_of(user)
