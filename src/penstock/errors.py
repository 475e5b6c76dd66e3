# SPDX-License-Identifier: MIT
"""The exceptions that penstock raises on purpose.

This is the tree of all exception classes of the package. A class without a module
in brackets is defined here::

    PenstockError
    ├── InputError            never: the input is wrong; the same call fails again
    │   ├── UnknownNameError  a name is not in its table; the message lists the table
    │   ├── MissingExtraError a package of an extra is not installed
    │   ├── MessageError      bytes are not a valid message (live.wire.messages.message)
    │   ├── SeveralJobsError  a name is that of several jobs (live.control.names)
    │   ├── SubFolderError    sub-folders left out (live.staging.drivers.driver)
    │   └── SharedFileError   a page or a bell is damaged (live.node.pages.shared_file)
    ├── UnavailableError      not now: the same call may succeed later
    ├── PolicyError           a plug-in failed or broke its contract
    ├── NoRowsError           a claim has no rows to look at (experiments.claims)
    ├── RegionSplitError      starts a simulation over (sim.buffers.regions)
    └── InternalError         a bug: an invariant of penstock does not hold

Every error says what is wrong (``what``), where (``where``) and what to do
(``remedy``). The command line prints an error as one line and exits with status 2;
for an `InternalError` it asks for a report and exits with status 70.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final, Self, TypeVar

__all__ = [
    "InputError",
    "InternalError",
    "MissingExtraError",
    "PenstockError",
    "PolicyError",
    "UnavailableError",
    "UnknownNameError",
    "plain_mismatch",
    "reason_of",
]

_E = TypeVar("_E", bound="PenstockError")


class PenstockError(Exception):
    """Base class of all errors that penstock raises on purpose.

    Parameters
    ----------
    what
        What is wrong, with the offending value.
    where
        File and place, e.g. ``jobs.json: applications[3].phases[7]``.
    remedy
        What the user can do about it.
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

    def at(self, prefix: str) -> Self:
        """Return an error of the same class whose place lies inside `prefix`.

        `prefix` is an outer place (``applications[3]``), or a file or option with a
        colon and a blank at its end (``jobs.json: ``).
        """
        if not self.where:
            where = prefix.removesuffix(": ")
        elif self.where.startswith("[") or prefix.endswith(": "):
            where = prefix + self.where
        else:
            where = f"{prefix}.{self.where}"
        return _rebuild(type(self), self.what, where, self.remedy)

    def __reduce__(self) -> tuple[Any, ...]:
        # Worker processes send errors back pickled. Subclasses have other
        # constructors, so the copy is made from the three texts.
        return _rebuild, (type(self), self.what, self.where, self.remedy)


def _rebuild(kind: type[_E], what: str, where: str, remedy: str) -> _E:
    """Return an error of class `kind` without calling the constructor of `kind`."""
    error = kind.__new__(kind)
    PenstockError.__init__(error, what, where=where, remedy=remedy)
    return error


class InputError(PenstockError):
    """The user's input cannot be used; the same call will fail again."""


class UnknownNameError(InputError):
    """A name is not in its table; the message lists the table."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, where: str = ""
    ) -> None:
        names = sorted(known)
        # A figure may be named without its paper: fig2 is p1-fig2 or p2-fig2.
        longer = [known_name for known_name in names if known_name.endswith(f"-{name}")]
        close = longer or get_close_matches(name, names, n=1)
        hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        super().__init__(
            f"unknown {kind} {name!r}",
            where=where,
            remedy=f"{hint}known: {', '.join(names) if names else 'none'}",
        )


#: Package that an extra installs -> the extra. Those of the base are not here.
_EXTRAS: Final = {
    **dict.fromkeys(("numpy", "numba", "llvmlite", "scipy", "polars"), "sim"),
    "matplotlib": "plots",
    "darshan": "import",
    "ftio": "ftio",
    **dict.fromkeys(("dask", "distributed", "dask_jobqueue"), "dask"),
    **dict.fromkeys(("starlette", "uvicorn"), "web"),
}


class MissingExtraError(InputError):
    """A package that an extra installs is missing; the message says how to get it."""

    def __init__(self, package: str, extra: str, *, where: str = "") -> None:
        super().__init__(
            f"the Python package {package} is not installed",
            where=where,
            remedy=f"pip install 'penstock[{extra}]'",
        )

    @classmethod
    def of(
        cls, error: ModuleNotFoundError, *, where: str = "", whole: str = "sim"
    ) -> MissingExtraError | None:
        """Return the error for a failed import; None if no extra has the package.

        `whole` is an extra that contains ``sim`` and all that the call needs: it is
        named in place of ``sim``, so that nothing else is missing afterwards.
        """
        package = (error.name or "").partition(".")[0]
        extra = _EXTRAS.get(package)
        if extra is None:
            return None
        return cls(package, whole if extra == "sim" else extra, where=where)


class UnavailableError(PenstockError):
    """A service does not answer or is busy; the same call may succeed later."""


class PolicyError(PenstockError):
    """A policy, algorithm, strategy or scheduler failed or broke its contract."""


class InternalError(PenstockError):
    """An invariant of penstock itself does not hold; please report it."""


def reason_of(error: BaseException) -> str:
    """Return the class and the message of `error` on one line: ``KeyError: 'x'``."""
    return " ".join(f"{type(error).__name__}: {error}".split())


#: Types as the decoders name them -> the same in words.
_TYPE_WORDS: Final = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table of keys",
    "null": "nothing",
}
_PATTERN: Final = re.compile(r"`?str`? matching regex .*")
_NOT_EMPTY: Final = re.compile(r"`?str`? of length >= 1\b")
_LENGTH: Final = re.compile(r"`?str`? of length (>=|<=) (\d+)")
_BOUND: Final = re.compile(r" (>=|<=) ([\d.]+)")
_BOUND_WORDS: Final = {">=": "at least", "<=": "at most"}
_TYPES: Final = re.compile(rf"`?\b({'|'.join(_TYPE_WORDS)})\b`?(?: \| )?")


def plain_mismatch(text: str) -> str:
    """Return what a decoder says of a wrong value, in words for users.

    "Expected `int` >= 1, got `str`" becomes "expected a whole number of at least 1, got
    a text".
    """
    words = _PATTERN.sub("a text without control characters", text)
    words = _NOT_EMPTY.sub("a text that is not empty", words)
    words = _LENGTH.sub(
        lambda match: f"a text of {_BOUND_WORDS[match[1]]} {match[2]} characters", words
    )
    words = _BOUND.sub(
        lambda match: f" of {_BOUND_WORDS[match[1]]} {float(match[2]):g}", words
    )
    words = _TYPES.sub(
        lambda match: _TYPE_WORDS[match[1]] + " or " * match[0].endswith("| "), words
    )
    words = words.replace("`", "")
    words = words.replace("Object contains unknown field", "unknown key")
    words = words.replace("Object missing required field", "missing key")
    return words[:1].lower() + words[1:]
