# SPDX-License-Identifier: MIT
"""Tell calls in flight from calls that will never end.

The page counts calls begun and calls ended. The difference is in flight, or lost: the
process was killed, the thread was cancelled, or the program left the call by
``longjmp``. If the job is silent, unended calls are lost if every thread of the job
waits for something else than a file (``/proc/PID/task/TID/wchan``), or after 30 s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from penstock.live.node.bypass import with_descendants
from penstock.live.node.pages.page import Counters

__all__ = ["IN_FLIGHT_S", "CallsInFlight", "may_be_in_call"]

#: A call that is in flight for longer is taken for lost (s).
IN_FLIGHT_S: Final = 30.0
#: A look at the threads of a job ends after so many; the others may be in a call.
_MOST_THREADS: Final = 64
#: Functions of the kernel in which threads wait for children, time, threads, messages
#: or signals.
_WAITS: Final = re.compile(
    r"do_wait|.*(nanosleep|futex|pipe_read|poll|select|sigsuspend|sigtimedwait).*"
)


class CallsInFlight:
    """Remembers the lost calls of a job."""

    def __init__(self) -> None:
        self._lost = 0

    def quiet_time(
        self,
        calls: Sequence[Counters],
        now_s: float,
        gap_s: float,
        processes: Iterable[int],
    ) -> float:
        """Return the time since the last call (s); 0 while a call is in flight.

        Parameters
        ----------
        calls
            The counters of the classes.
        now_s
            Monotonic time (s).
        gap_s
            Silence that ends an operation (s).
        processes
            The processes of the job; their descendants belong to it as well.
        """
        quiet_s = max(now_s - max(c.last_active_s for c in calls), 0.0)
        if any(c.waiting_calls for c in calls):
            return 0.0
        unended = sum(max(c.begun_calls - c.ended_calls, 0) for c in calls)
        # A call that was taken for lost and has ended was not.
        self._lost = min(self._lost, unended)
        if unended == self._lost:
            return quiet_s
        in_flight = quiet_s < gap_s or may_be_in_call(processes)
        if in_flight and quiet_s < IN_FLIGHT_S:
            return 0.0
        self._lost = unended
        return quiet_s


def may_be_in_call(processes: Iterable[int]) -> bool:
    """Return False if no thread of the processes and their descendants uses a file.

    Return True if that is not known: a thread runs, there are too many threads, or
    there is no process.
    """
    threads = 0
    for pid in with_descendants(processes):
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
        except OSError:
            continue  # the process has ended
        for task in tasks:
            threads += 1
            if threads > _MOST_THREADS or not _waits(task):
                return True
    return threads == 0


def _waits(task: Path) -> bool:
    try:
        return _WAITS.fullmatch((task / "wchan").read_text()) is not None
    except OSError:
        return False
