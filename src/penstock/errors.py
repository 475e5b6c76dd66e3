# SPDX-License-Identifier: MIT
"""Every error that penstock raises on purpose.

::

    PenstockError
    ├── InputError            the user can mend it: what, where, what to do
    │   └── UnknownNameError  a name that is not in a table; lists the table
    ├── PolicyError           a policy broke its contract during a run
    └── InternalError         our bug: an invariant of penstock does not hold

The command line prints an `InputError` or `PolicyError` as one line and exits
with status 2; an `InternalError` asks for a report and exits with status 70.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

__all__ = [
    "InputError",
    "InternalError",
    "PenstockError",
    "PolicyError",
    "UnknownNameError",
    "reason_of",
]


class PenstockError(Exception):
    """Base of all errors raised on purpose."""


class InputError(PenstockError):
    """Something the user gave cannot be used.

    Parameters
    ----------
    what
        What is wrong, with the offending value.
    where
        File and place, e.g. ``jobs.json: applications[3].phases[7]``.
    remedy
        What to do about it.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{place}{self.what}{advice}"

    def at(self, prefix: str) -> InputError:
        """Return the same error, found inside `prefix` (a file or an outer place)."""
        if not self.where:
            where = prefix.removesuffix(": ")
        elif self.where.startswith("[") or prefix.endswith(": "):
            where = prefix + self.where
        else:
            where = f"{prefix}.{self.where}"
        return InputError(self.what, where=where, remedy=self.remedy)

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process sends its errors back; sub-classes take other arguments.
        return _restored, (type(self), self.what, self.where, self.remedy)


def _restored(kind: type[InputError], what: str, where: str, remedy: str) -> InputError:
    error = kind.__new__(kind)
    InputError.__init__(error, what, where=where, remedy=remedy)
    return error


class UnknownNameError(InputError):
    """A name that is not in its table; the message lists the table."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, where: str = ""
    ) -> None:
        names = sorted(known)
        close = get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        super().__init__(
            f"unknown {kind} {name!r}",
            where=where,
            remedy=f"{hint}known: {', '.join(names) if names else 'none'}",
        )


class PolicyError(PenstockError):
    """A policy broke its contract: rates over a limit, a wake-up in the past."""


class InternalError(PenstockError):
    """An invariant of penstock itself does not hold; please report it."""


def reason_of(error: BaseException) -> str:
    """Return what somebody's code raised, on one line: ``KeyError: 'x'``."""
    return " ".join(f"{type(error).__name__}: {error}".split())
