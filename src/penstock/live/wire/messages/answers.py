# SPDX-License-Identifier: MIT
"""Answers of an agent to programs, operators and users."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from penstock.live.wire.messages.message import Message

__all__ = [
    "BandwidthBelief",
    "Delay",
    "HistoryFormat",
    "JobReport",
    "JobStatus",
    "PageAssigned",
    "PastJob",
    "PastJobs",
    "PolicySpan",
    "Refused",
    "Reply",
    "ReportedOperation",
    "RunWithOperations",
    "RunsUnderWay",
    "StatusDocument",
    "StorageStatus",
    "TextAnswer",
    "ThrottledUser",
    "with_job_keys",
]


class PageAssigned(Message):
    """Tell a program which page to map and which folders are controlled."""

    page: str
    """Path of the job's page on this node."""
    prefixes: list[str]
    """Folders whose files are controlled."""


class Refused(Message):
    """Refuse a request."""

    reason: str
    """One line."""
    retry: bool = False
    """True if the same request may succeed later."""
    job_keys: list[str] = msgspec.field(default_factory=list)
    """Job keys in `reason`."""

    def words(self, shown: Callable[[str], str]) -> str:
        """Return the reason with job keys as `shown` returns them."""
        return with_job_keys(self.reason, self.job_keys, shown)


class TextAnswer(Message):
    """Answer a request in words."""

    text: str
    job_keys: list[str] = msgspec.field(default_factory=list)
    """Job keys in `text`."""

    def words(self, shown: Callable[[str], str]) -> str:
        """Return the text with job keys as `shown` returns them."""
        return with_job_keys(self.text, self.job_keys, shown)


def with_job_keys(
    text: str, job_keys: Sequence[str], shown: Callable[[str], str]
) -> str:
    """Return a text with these job keys in it as `shown` returns them."""
    if not job_keys:
        return text
    # Of two keys of which one begins with the other, the longer one counts.
    keys = "|".join(map(re.escape, sorted(job_keys, key=len, reverse=True)))
    return re.sub(rf"(?<!\w)(?:{keys})(?!\w)", lambda key: shown(key[0]), text)


class JobStatus(msgspec.Struct, frozen=True):
    """One job of a `StatusDocument`.

    The quoted names are the keys in ``penstock ctl status --json``; users rely on them.
    """

    job_name: str = msgspec.field(name="job")
    user: int
    """User id."""
    nodes: list[str]
    """Names of the nodes on which it runs."""
    cap: float
    """Most that it can draw."""
    limit: float | None
    """Limit set by an operator; None: no limit."""
    active: bool
    """True if it has an operation now."""
    waiting: bool
    """True if one of its calls is held up now."""
    lent: bool
    """True if a part of its grant is lent to other jobs."""
    grant: float | None = msgspec.field(name="granted")
    """Rate that it may draw now; None: no limit. Without an operation: its cap, or no
    limit if the bandwidth is learnt."""
    demanded: float
    """Rate that it would draw: its cap if it is held up, else the rate it draws."""
    drawn_bytes_per_s: float = msgspec.field(name="achieved")
    """Rate that it draws."""
    volume_bytes: float = msgspec.field(name="volume")
    """Volume of its operation, known or predicted."""
    remaining_bytes: float = msgspec.field(name="remaining")
    """Remaining volume of its operation."""
    moved_bytes: float = msgspec.field(name="moved")
    """Volume moved since it was registered."""
    held_up_s: float = msgspec.field(name="held_up")
    """Time that its calls were held up, added over callers."""
    age_s: float = msgspec.field(name="age")
    """Time since its release."""
    lost_s: float = msgspec.field(name="lost")
    """Time lost to control since its release: in each operation what its grants cost,
    but not more than its calls were held up."""
    progress_yield: float
    """1 - lost time / age."""
    operations: int
    """Operations completed."""
    bypass_setups: int = msgspec.field(name="bypassed")
    """Number of set-ups seen of I/O that cannot be controlled."""
    uncontrolled_bytes: float = msgspec.field(name="uncontrolled")
    """Volume that its processes moved without control."""
    staged_bytes: float = msgspec.field(name="staged")
    """Volume in its journals that is not in the files yet."""
    why: str
    """The explanation that ``penstock ctl explain`` prints."""
    would_hold_up_s: float = msgspec.field(name="would_hold_up", default=0.0)
    """Time for which dry runs would have held up its calls, added over callers."""
    lost_by_grants_s: float = msgspec.field(name="lost_by_grants", default=0.0)
    """What its grants cost, whether its calls were held up or not: what policies
    read."""
    storage: str = ""
    """Name of the storage that it shares; "" if there is only one."""


class BandwidthBelief(msgspec.Struct, frozen=True):
    """A bandwidth that was learnt."""

    bandwidth: float
    why: str
    """What it was concluded from."""
    age_s: float | None = msgspec.field(name="age")
    """Time since it was last confirmed or changed; None: not in this run."""
    lowest: float | None = None
    """Lowest rate that was believed in the minute before the last measurement."""
    highest: float | None = None
    """Highest rate that was believed then."""


class StorageStatus(msgspec.Struct, frozen=True):
    """What is known about one storage."""

    name: str
    """Name of the file system; "" if all jobs share one storage."""
    bandwidth: float | None
    """Bandwidth that its jobs share now; None: not known yet."""
    learns: bool
    """False if the bandwidth was given as a number."""
    doing: str
    """"reads", "writes" or "mixed": what its jobs do, or did last."""
    beliefs: dict[str, BandwidthBelief]
    """What is believed for "reads", "writes" and "mixed"."""
    active_jobs: int = 0
    """Number of jobs that have an operation on it now."""


class ThrottledUser(msgspec.Struct, frozen=True):
    """A user who takes more of a daemon than the budget of one user allows."""

    user: int
    """User id."""
    what: str
    """What was refused or delayed, and why."""
    times: int
    """Number of refusals and delays; it starts again after a minute without one."""
    age_s: float = msgspec.field(name="age")
    """Time since the last refusal or delay."""
    node: str = ""
    """The node; an agent leaves it to the controller to fill it in."""


class StatusDocument(Message):
    """Status of the controller and of the jobs that the reader may see."""

    mode: str
    policy: str
    bandwidth: float | None
    """Total bandwidth that the jobs share; None: not known yet. With several storages,
    that of the first one."""
    node_bandwidth: float | None
    """Bandwidth of one node; None: unlimited."""
    agents: list[str]
    """Names of the nodes with an agent."""
    decisions: int
    """How often the policy was asked."""
    faults: list[str]
    """Latest faults of the policy and the strategy."""
    jobs: list[JobStatus]
    storages: list[StorageStatus] = msgspec.field(default_factory=list)
    """What is known about each storage."""
    throttled: list[ThrottledUser] = msgspec.field(default_factory=list)
    """Users who take too much of the daemons, as far as the reader may see them."""

    def document(self) -> dict[str, Any]:
        """Return the status in the form of ``penstock ctl status --json``."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {"penstock": 1, **msgspec.to_builtins(fields)}


class PolicySpan(msgspec.Struct, frozen=True):
    """A time in which one policy shared the bandwidth of a job.

    The quoted names are the keys in JSON. Instants are seconds since 1970.
    """

    policy: str
    """Name of the policy, ``dry-run``, or ``off`` if control was off."""
    begin_s: float = msgspec.field(name="begin")
    end_s: float | None = msgspec.field(name="end")
    """None: it has not ended."""


class PastJob(msgspec.Struct, frozen=True):
    """A job in the archive, from joining the controller to leaving it.

    The quoted names are the keys in ``penstock history --json``. Instants are seconds
    since 1970.
    """

    job_name: str = msgspec.field(name="job")
    user: int
    """User id."""
    storage: str
    """Name of the storage that it shared; "" if there was only one."""
    nodes: int
    joined_s: float = msgspec.field(name="joined")
    left_s: float | None = msgspec.field(name="left")
    """None: it is still there."""
    cap: float | None
    """Most that it could draw; None: no limit."""
    moved_bytes: float = msgspec.field(name="moved")
    lost_s: float = msgspec.field(name="lost")
    """Time lost to control since it joined."""
    progress_yield: float
    """1 - lost time / age."""
    policy: str
    """Policy in use when it left."""
    limit: float | None = None
    """Lowest limit that an operator set; None: none."""
    policies: list[PolicySpan] = msgspec.field(default_factory=list)
    """All policies that it saw, the first one first; the last ones if it saw many."""
    missing: str = ""
    """What no daemon recorded: "begin", "end" or "both"; "": nothing is missing."""

    @property
    def policy_names(self) -> list[str]:
        """The policies that it saw, each once, the first one first."""
        return list(dict.fromkeys(span.policy for span in self.policies)) or [
            self.policy
        ]


class HistoryFormat(msgspec.Struct, frozen=True):
    """The result that ``penstock history --json`` writes."""

    penstock: Literal[1]
    jobs: list[PastJob]


class PastJobs(Message):
    """Jobs of the archive that the reader may see, oldest first."""

    jobs: list[PastJob]
    shared: float | None = None
    """Bandwidth that was shared in the last operation of the last job; None: not known.
    Volumes are printed in its units."""


class ReportedOperation(msgspec.Struct, frozen=True):
    """An operation in a `JobReport`; the quoted names are keys in its JSON."""

    begin_s: float = msgspec.field(name="begin")
    end_s: float = msgspec.field(name="end")
    moved_bytes: float = msgspec.field(name="moved")
    held_up_s: float = msgspec.field(name="held_up")
    """Time that calls were held up, added over callers."""
    lost_s: float = msgspec.field(name="lost")
    capacity: float | None = msgspec.field(name="shared")
    """Bandwidth that all jobs shared; None: not known."""
    policy: str
    grants: list[tuple[float, float | None]]
    """Instants, and the rate that the job might draw from then on; None: no limit."""


class Delay(msgspec.Struct, frozen=True):
    """Time that a job lost because another job was served."""

    job_name: str = msgspec.field(name="job")
    """"" stands for all jobs that the reader may not see."""
    lost_s: float = msgspec.field(name="lost")
    """Its part of the lost time: in proportion to what it moved meanwhile."""
    moved_bytes: float = msgspec.field(name="moved")
    """What it moved during the operations of the job."""
    user: int | None = None
    """User id; None: jobs of other users."""


class RunWithOperations(msgspec.Struct, frozen=True):
    """A job of the archive with its operations."""

    job: PastJob
    operations: list[ReportedOperation]


class JobReport(Message):
    """What a job did, and why it was not faster."""

    job: PastJob
    operations: list[ReportedOperation]
    delays: list[Delay]
    """Largest loss first."""
    others: list[RunWithOperations] = msgspec.field(default_factory=list)
    """Jobs on the same storage meanwhile, for operators only."""
    operation_count: int = 0
    """Number of all operations; `operations` are the last ones."""
    note: str = ""
    """Why the job cannot be simulated with the others; empty if it can."""


class RunsUnderWay(Message):
    """Jobs that run and have had an operation, each with its present operation."""

    runs: list[RunWithOperations]
    """A job that has no operation now has none here. An operation ends now."""


Reply = (
    PageAssigned
    | Refused
    | TextAnswer
    | StatusDocument
    | PastJobs
    | JobReport
    | RunsUnderWay
)
