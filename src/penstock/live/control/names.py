# SPDX-License-Identifier: MIT
"""How texts of the controller name jobs: NAME, or UID:NAME where that is needed.

The controller knows users by their numbers and never waits for a user database. So its
texts contain the key of a job where the name alone would not tell which job is meant,
and messages list these keys (`TextAnswer.job_keys`). Commands show them as USER:NAME,
with the user names of their machine; jobs can be given to commands in the same form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from penstock.errors import InputError, PenstockError
from penstock.live.wire.messages import Refused, TextAnswer

__all__ = ["JobNames", "SeveralJobsError", "name_of", "nearest_name", "refusal"]

#: Longer names are near to no other one (characters).
_LONGEST: Final = 64
#: Least part of two near names that is the same at their begins and ends.
_LEAST_SAME: Final = 0.6


def name_of(job_key: str) -> str:
    """Return the name in a job key, UID:NAME."""
    return job_key.partition(":")[2]


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return the known name that is nearest to an unknown one; "" if none is near.

    Names are near if they begin and end alike, as after one typing error.

    RATIONALE: users choose these names, and can have a thousand jobs. With `difflib`,
    whose time grows with the cube of their length, one question took 10 s.
    """
    if not 0 < len(name) <= _LONGEST:
        return ""
    best, most = "", _LEAST_SAME
    for each in known:
        longer, shorter = max(len(each), len(name)), min(len(each), len(name))
        # First what costs nothing: most names are too long or too short.
        if longer > _LONGEST or shorter < most * longer:
            continue
        begin = _same_begin(name, each)
        end = _same_begin(name[::-1], each[::-1])
        part = min(begin + end, shorter) / longer
        if part > most:
            best, most = each, part
    return best


def _same_begin(one: str, other: str) -> int:
    """Return how many characters are the same at the begins of two texts."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


class JobNames:
    """Names of the jobs that one reader sees.

    A job is shown by its key if jobs of several users have its name, or if its name
    could be taken for USER:NAME.
    """

    def __init__(self, job_keys: Iterable[str]) -> None:
        keys = set(job_keys)
        counts = Counter(map(name_of, keys))
        self._by_key = {
            key for key in keys if counts[name_of(key)] > 1 or ":" in name_of(key)
        }

    def shown(self, job_key: str, words: Callable[[str], str] = str) -> str:
        """Return the name of a job, or `words` of its key if it is shown by its key."""
        return words(job_key) if job_key in self._by_key else name_of(job_key)

    def answer(self, text: str) -> TextAnswer:
        """Return an answer that lists the keys in its text."""
        return TextAnswer(text, sorted(key for key in self._by_key if key in text))


class SeveralJobsError(InputError):
    """Jobs of several users have the name that was given."""

    job_keys: Sequence[str] = ()
    """Their keys; a copy from another process has none."""

    def __init__(self, name: str, job_keys: Iterable[str]) -> None:
        self.job_keys = tuple(job_keys)
        super().__init__(
            f"several jobs are called {name!r}",
            remedy=f"name one by its user: {' or '.join(self.job_keys)}",
        )


def refusal(error: PenstockError) -> Refused:
    """Return the refusal of a request that has failed."""
    keys = error.job_keys if isinstance(error, SeveralJobsError) else ()
    return Refused(str(error), job_keys=list(keys))
