# SPDX-License-Identifier: MIT
"""What a job has done, in the form in which it is archived.

The controller counts times in seconds of its own clock, the archive in seconds since
1970. Volumes are in bytes, rates in bytes per second.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

__all__ = [
    "DRY_RUN",
    "MOST_GRANTS",
    "OFF",
    "CompletedOperation",
    "GrantTrace",
    "JobRun",
    "PolicyTrace",
    "missing_words",
    "on_other_clock",
]

#: Archived instead of a policy if nobody was held up: what storage did by itself.
DRY_RUN: Final = "dry-run"
#: Archived instead of a policy for the time in which control was off.
OFF: Final = "off"
#: Changes of the policy that are kept of one run, the last ones.
_MOST_POLICIES: Final = 20
#: Grants that are kept of one operation.
MOST_GRANTS: Final = 8


class JobRun(msgspec.Struct, frozen=True, kw_only=True):
    """A job, from the instant at which it joined to the one at which it left."""

    job_key: str
    user: int
    """User id."""
    storage: str
    """Name of the storage that it shared; "" if there is only one."""
    nodes: int
    joined_s: float
    left_s: float | None
    """None: it has not left yet."""
    lost_s: float
    """Time lost since it joined."""
    moved_bytes: float
    """Volume moved since it joined."""
    cap: float
    """Most that it could draw; infinite if it had no limit."""
    policy: str
    """Policy in use at the end; `DRY_RUN` in a dry run."""
    policies: tuple[tuple[float, str], ...] = ()
    """Instants, and the policy in use from then on; (): only `policy` is known."""
    limit: float = inf
    """Lowest limit that an operator set; infinite: none. Time that this limit costs
    does not count as lost."""
    missing: str = ""
    """What no daemon recorded: "begin", "end" or "both"; "": nothing is missing."""

    @property
    def name(self) -> str:
        """The name that its user gave it."""
        return self.job_key.partition(":")[2]

    def progress_yield(self, now_s: float) -> float:
        """Return 1 - lost / age when it left, or now if it has not left."""
        age_s = (now_s if self.left_s is None else self.left_s) - self.joined_s
        return max(1.0 - self.lost_s / age_s, 0.0) if age_s > 0.0 else 1.0


class CompletedOperation(NamedTuple):
    """An operation of a job."""

    begin_s: float
    end_s: float
    moved_bytes: float
    held_up_s: float
    """Time that calls were held up, added over callers."""
    lost_s: float
    """Time lost in this operation, as users see it: see `loss_spans`."""
    capacity: float
    """Bandwidth that all jobs shared when it ended; infinite if it was not known."""
    policy: str
    grants: tuple[tuple[float, float], ...]
    """Instants and rates: the job might draw this rate from this instant on."""


def missing_words(missing: str) -> list[str]:
    """Return what is missing in a run (`JobRun.missing`), in sentences."""
    words = []
    if missing in ("begin", "both"):
        words.append(
            "A daemon was started while it ran: what it did before is not in this run."
        )
    if missing in ("end", "both"):
        words.append(
            "The daemon was killed while it ran: what it did after its last archived "
            "operation is not in this run."
        )
    return words


def on_other_clock(
    run: JobRun, operation: CompletedOperation | None, offset_s: float
) -> tuple[JobRun, CompletedOperation | None]:
    """Return a run and an operation with all instants later by `offset_s`."""
    moved = replace(
        run,
        joined_s=run.joined_s + offset_s,
        left_s=None if run.left_s is None else run.left_s + offset_s,
        policies=tuple((at_s + offset_s, name) for at_s, name in run.policies),
    )
    if operation is None:
        return moved, None
    return moved, operation._replace(
        begin_s=operation.begin_s + offset_s,
        end_s=operation.end_s + offset_s,
        grants=tuple((at_s + offset_s, rate) for at_s, rate in operation.grants),
    )


@dataclass(slots=True)
class PolicyTrace:
    """The policies that a run has seen, at most `_MOST_POLICIES` of them."""

    steps: list[tuple[float, str]] = field(default_factory=list)
    """Instants and policies."""

    def add(self, now: float, policy: str) -> None:
        """Record that `policy` is in use from now on; it may be `DRY_RUN` or `OFF`."""
        if self.steps and self.steps[-1][1] == policy:
            return
        if self.steps and self.steps[-1][0] == now:
            self.steps.pop()
            self.add(now, policy)
            return
        self.steps.append((now, policy))
        del self.steps[:-_MOST_POLICIES]

    @property
    def last(self) -> str:
        """The policy in use, or the one before control was switched off."""
        named = [policy for _, policy in self.steps if policy != OFF]
        return named[-1] if named else OFF


@dataclass(slots=True)
class GrantTrace:
    """The grants of one operation, at most `MOST_GRANTS` of them.

    When there are more, the shortest interval is merged with the one before it; the
    merged rate is their mean over time. So the volume that was granted stays the same.
    """

    steps: list[tuple[float, float]] = field(default_factory=list)
    """Instants and rates."""

    def add(self, now: float, rate: float) -> None:
        """Record that the rate is `rate` from now on."""
        if self.steps and self.steps[-1][1] == rate:
            return
        if self.steps and self.steps[-1][0] == now:
            self.steps.pop()
        self.steps.append((now, rate))
        if len(self.steps) > MOST_GRANTS:
            self._merge_shortest()

    def _merge_shortest(self) -> None:
        lengths = [
            later[0] - earlier[0]
            for earlier, later in zip(self.steps, self.steps[1:], strict=False)
        ]
        # The first interval has none before it: it is merged with the second one.
        shortest = min(range(len(lengths)), key=lengths.__getitem__)
        first = max(shortest - 1, 0)
        begin_s, rate = self.steps[first]
        next_rate = self.steps[first + 1][1]
        length, next_length = lengths[first], lengths[first + 1]
        mean = (rate * length + next_rate * next_length) / (length + next_length)
        self.steps[first : first + 2] = [(begin_s, mean)]
