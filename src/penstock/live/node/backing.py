# SPDX-License-Identifier: MIT
"""Compare the bytes that a job claims with the bytes that the kernel has counted.

The processes of a job write the counters of its page themselves, so they can claim any
volume. The kernel counts what system calls move (``/proc/PID/io``). A claim that the
kernel does not back is not reported: the job has moved nothing, and has no share.

This is a check of plausibility: bytes that went to another place than the storage, even
to ``/dev/null``, back a claim as well. Jobs that the batch system has registered have
no known processes and are believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub
from typing import Final

__all__ = ["ClaimedBytes"]

#: Claims that are larger than what the kernel has counted by less than this are backed:
#: buffered output is claimed before it is written.
_SLACK_BYTES: Final = 1 << 20


class ClaimedBytes:
    """The claims of one job: some may be withheld.

    `check` may be called in another thread than `credit`.
    """

    def __init__(self) -> None:
        self.is_backed = True
        """False if the last claims were not backed."""
        self._checked_bytes = 0.0
        #: Claims that the kernel did not count and that are not held against the job.
        self._forgiven_bytes = 0.0
        #: The highest claims so far. True counters never decrease.
        self._highest: tuple[float, ...] = ()
        self._credited: tuple[float, ...] = ()
        self._withheld: tuple[float, ...] = ()

    def check(
        self, claimed_bytes: float, counted_bytes: float, *, certain: bool
    ) -> None:
        """Compare all claims so far with all bytes that the kernel has counted so far.

        Parameters
        ----------
        claimed_bytes
            All claims so far; read before the kernel was asked.
        counted_bytes
            What the kernel has counted so far.
        certain
            False if processes are unknown or have ended: the kernel's count may be too
            low. Then `is_backed` stays, and the claims are forgiven.
        """
        # A counter that was lowered, e.g. by a job that writes random values, takes no
        # claim back: otherwise the next false claim would be believed until it is
        # checked.
        claimed_bytes = max(claimed_bytes, self._checked_bytes)
        missing_bytes = claimed_bytes - counted_bytes - self._forgiven_bytes
        new_bytes = claimed_bytes - self._checked_bytes
        # Without a new claim there is nothing to judge: a false one stays false.
        if certain and new_bytes > 0.0:
            self.is_backed = missing_bytes <= max(_SLACK_BYTES, new_bytes / 2.0)
        # Each claim is judged once: what is missing now is forgiven, so it is not
        # missed at the next check.
        self._forgiven_bytes += max(missing_bytes, 0.0)
        self._checked_bytes = claimed_bytes

    def credit(self, claims: Sequence[float]) -> tuple[float, ...]:
        """Return the counters that are believed; they never decrease."""
        if not self._credited:
            self._highest = self._credited = self._withheld = (0.0,) * len(claims)
        highest = tuple(map(max, claims, self._highest))
        if highest == self._highest:
            return self._credited
        self._highest = highest
        if self.is_backed:
            # The maximum: the difference is rounded.
            since = map(sub, self._highest, self._withheld)
            self._credited = tuple(map(max, since, self._credited))
        else:
            self._withheld = tuple(map(sub, self._highest, self._credited))
        return self._credited
