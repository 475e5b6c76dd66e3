# SPDX-License-Identifier: MIT
"""Decide whether an open file follows its application to other storage targets.

Rule
    When the targets of an application change, new data of a file that is open goes to
    the new targets only once the file has been open for `REDIRECT_AGE_S`. Until then
    its data stays on its own targets. Files that are opened later are on the new ones.

Why
    Redirected data is written twice: to the new targets, and when it is merged into the
    file. That is worth it only for a file that is written for long. How long a file
    will be open is not known. Most files are closed soon, and one that has been open
    for some time will probably stay open for as long again.

    In particular, the first files of a phase exist before any strategy can know of the
    phase. If two applications begin together, both have opened files on all targets.
    There they share the targets equally, which costs neither of them anything.

The simulator asks `follows`. Live, the controller sends `REDIRECT_AGE_S` to the page of
the job, and the preload library compares the age of each file with it.
"""

from __future__ import annotations

from typing import Final

__all__ = ["REDIRECT_AGE_S", "follows"]

#: Age of a file from which on it is redirected (s).
REDIRECT_AGE_S: Final = 1.5


def follows(opened_s: float, now_s: float) -> bool:
    """Return True if new data of a file that was opened at `opened_s` is redirected."""
    return now_s >= opened_s + REDIRECT_AGE_S
