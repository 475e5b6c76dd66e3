# SPDX-License-Identifier: MIT
"""Under which names histories of jobs are saved, and which one a new job gets.

A job continues the history of its own key. The jobs of a batch system have numbers as
names, which no later job has: what they teach is saved under the name that their user
has given them in the batch system as well, for the next job of this name. Several of
them may run at a time, so age and lost time are not passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.live.control.rates.jobs import JobHistory
from penstock.live.wire.messages import JobJoined

__all__ = ["for_namesakes", "history_key", "namesake_past", "past_of"]


def history_key(user: int, name: str) -> str:
    """Return the key for jobs of this name in the batch system.

    It is never the key of a job, which has a colon behind the number of the user.
    """
    return f"{user}/{name}"


def past_of(
    message: JobJoined, recall: Callable[[str], JobHistory | None], now: float
) -> JobHistory | None:
    """Return what is known of a job that joins; None: nothing.

    Parameters
    ----------
    recall
        Returns what was saved under a key, or None.
    """
    own = recall(message.job_key)
    if own is not None and own.is_of_use:
        return own
    namesake = namesake_past(message, recall, now)
    if own is None or namesake is None:
        return namesake or own
    # It has done nothing yet, and the controller was restarted.
    return replace(
        namesake,
        release_s=own.release_s,
        lost_s=own.lost_s,
        shown_lost_s=own.shown_lost_s,
    )


def namesake_past(
    message: JobJoined, recall: Callable[[str], JobHistory | None], now: float
) -> JobHistory | None:
    """Return what earlier jobs of the same name in the batch system teach.

    Unlike `past_of` it does not ask for the history of the job itself: that of a job
    that runs is saved again and again, even if it has done nothing yet.
    """
    if not message.history_name:
        return None
    namesake = recall(history_key(message.user, message.history_name))
    return namesake.for_new_run(now) if namesake else None


def for_namesakes(user: int, name: str, history: JobHistory) -> dict[str, JobHistory]:
    """Return what a job teaches to later jobs of its name in the batch system, by key.

    Nothing if it has no such name, or has done nothing.
    """
    if not name or not history.is_of_use:
        return {}
    return {history_key(user, name): replace(history, is_lasting=True)}
