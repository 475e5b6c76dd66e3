# SPDX-License-Identifier: MIT
"""Lending: who does not use its grant keeps what it draws, and the others get the rest.

A job is *frugal* if for `LEND_AFTER_S` it has drawn less than `LEND_BELOW` of its
grant, and nobody in it was held up; or if it is known to pause in the midst of an
operation. It keeps what it draws, with some headroom. At the first report that it was
held up, or that the pause is over, it has its grant back.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from penstock.live.control.job_columns import JobColumns

__all__ = ["LEND_AFTER_S", "LEND_FLOOR", "Lender", "Usage"]

#: A job must have been frugal for this long before its grant is lent (s).
LEND_AFTER_S: Final = 0.4
#: It is frugal if it draws less than this part of its grant.
LEND_BELOW: Final = 0.8
#: It keeps what it draws times this,
LEND_HEADROOM: Final = 1.25
#: and at least this part of its cap.
LEND_FLOOR: Final = 0.01


@dataclass(slots=True)
class Usage:
    """What a job makes of its grant."""

    since: float = 0.0
    """Begin of the time over which its draw is measured (s)."""
    drawn: float = 0.0
    """What it has moved since then (bytes),"""
    granted: float = 0.0
    """and what it could have (bytes)."""
    usable: float = inf
    """What it draws, with headroom, if it is frugal (bytes/s)."""
    pauses: bool = False

    def measure_anew(self, now: float) -> None:
        """Forget what it drew before."""
        self.since, self.drawn, self.granted = now, 0.0, 0.0


class Lender:
    """Finds out who is frugal, and lends what they leave.

    Parameters
    ----------
    lends
        False to leave unused what a job does not use of its grant.
    """

    def __init__(self, books: JobColumns, *, lends: bool) -> None:
        self._books = books
        self._lends = lends
        self._frugal: dict[int, Usage] = {}

    def __contains__(self, number: int) -> bool:
        """Tell whether the job with this number is frugal."""
        return number in self._frugal

    def give_back(self, number: int, usage: Usage) -> None:
        """Let a job have its whole grant again."""
        self._frugal.pop(number, None)
        usage.usable, usage.pauses = inf, False

    def watch(
        self, number: int, usage: Usage, now: float, *, held_up: bool, pauses: bool
    ) -> None:
        """Find out whether a job uses its grant."""
        if held_up or (usage.pauses and not pauses):
            if self._frugal.pop(number, None):
                usage.usable = inf
                self._books.touch()
            usage.measure_anew(now)
        if pauses and usage.pauses:
            return
        usage.pauses = pauses
        elapsed = now - usage.since
        if not self._lends or (elapsed < LEND_AFTER_S and not pauses):
            return
        if pauses or usage.drawn < LEND_BELOW * usage.granted:
            floor = LEND_FLOOR * float(self._books.program.cap[number])
            drawn = 0.0 if pauses else usage.drawn / elapsed
            usage.usable = max(LEND_HEADROOM * drawn, floor)
            self._frugal[number] = usage
            self._books.touch()
        usage.measure_anew(now)

    def share_out(self, wake: float, capacity: float) -> None:
        """End a decision: as the policy wants it, but for what the frugal leave.

        The policy shares that among the others; several times, since with more to share
        another may get more than it uses.
        """
        books, fixed = self._books, dict[int, float]()
        if not self._thrifty(fixed):
            books.end_decision(wake)
            return
        active, wake = books.active(), inf
        while more := self._thrifty(fixed):
            fixed |= more
            rest = [i for i in active if i not in fixed]
            if rest:
                left = max(capacity - sum(fixed.values()), 0.0)
                wake = books.ask_again(rest, left)
        books.end_lending(active, fixed, wake)

    def _thrifty(self, fixed: dict[int, float]) -> dict[int, float]:
        """Return who else is about to get more than it uses, and what it uses."""
        wanted = self._books.state.wanted
        return {
            number: usage.usable
            for number, usage in self._frugal.items()
            if number not in fixed and wanted[number] > usage.usable
        }
