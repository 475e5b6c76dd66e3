# SPDX-License-Identifier: MIT
"""Bounds on what is done at a time: of all readers, and of one user.

A user who asks without a pause must not keep others out. Operators are bound only by
the total.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import UnavailableError
from penstock.web.readers import Reader

__all__ = ["Places"]


class Places:
    """A number of places, of which one user may take only some.

    Parameters
    ----------
    total
        Places of all readers.
    of_user
        Places that one user can take at a time.
    refusal
        What a reader is told who gets none.
    """

    def __init__(self, total: int, of_user: int, refusal: str) -> None:
        self._total = total
        self._of_user = of_user
        self._refusal = refusal
        self._taken: Counter[int | None] = Counter()

    @contextmanager
    def taken(self, reader: Reader) -> Iterator[None]:
        """Take a place during the block; raise `UnavailableError` if there is none."""
        self.check(reader)
        self._taken[reader.user] += 1
        try:
            yield
        finally:
            self._taken[reader.user] -= 1
            if not self._taken[reader.user]:
                del self._taken[reader.user]

    def check(self, reader: Reader) -> None:
        """Raise `UnavailableError` if there is no place for a reader now."""
        is_bound = reader.user is not None
        if self._taken.total() >= self._total or (
            is_bound and self._taken[reader.user] >= self._of_user
        ):
            raise UnavailableError(self._refusal, remedy="try again later")
