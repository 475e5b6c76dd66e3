# SPDX-License-Identifier: MIT
"""Looks, in a thread of its own, for bytes that jobs have moved without control.

What that takes counts in the budgets of the users of the jobs (`Spending.LOOKS`): a job
is only measured after a report, and a user over budget has fewer reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Final

from penstock.live.node.budgets import LOOK_S, Budgets, Spending
from penstock.live.node.local_job import Bypass, LocalJob, find_bypass
from penstock.live.worker import Worker

__all__ = ["BypassMeter", "charge"]

#: How long a measurement may delay the end (s).
_END_S: Final = 2.0


class BypassMeter:
    """Measures the jobs that were reported since the last measurement.

    Parameters
    ----------
    jobs
        Job key -> job; jobs that are not in it any more are forgotten.
    on_found
        Called in the thread with the result of each measurement.
    """

    def __init__(
        self, jobs: Mapping[str, LocalJob], on_found: Callable[[Bypass], None]
    ) -> None:
        self._jobs = jobs
        self._on_found = on_found
        self._reported: set[str] = set()
        self._thread = Worker("bypass")
        self._measurement: Future[Bypass] | None = None

    def note_reported(self, job_keys: Iterable[str]) -> None:
        """Have these jobs measured next."""
        self._reported.update(job_keys)

    def measure(self) -> None:
        """Begin a measurement, unless one is going on."""
        if self._measurement is not None and not self._measurement.done():
            return
        keys, self._reported = self._reported, set()
        jobs = [self._jobs[key] for key in keys if key in self._jobs]
        if jobs:
            lists = [(job, list(job.note.processes)) for job in jobs]
            self._measurement = self._thread.submit(find_bypass, lists)
            self._measurement.add_done_callback(self._on_done)

    def _on_done(self, measurement: Future[Bypass]) -> None:
        if not measurement.cancelled():
            self._on_found(measurement.result())

    def close(self) -> None:
        """Measure nothing more."""
        self._thread.end(_END_S, drops=True)


def charge(budgets: Budgets, bypass: Bypass, now_s: float) -> None:
    """Charge users for the time that the measurement of their jobs took."""
    for user, spent_s in bypass.spent_s.items():
        budgets.spend(user, Spending.LOOKS, now_s, spent_s / LOOK_S)
