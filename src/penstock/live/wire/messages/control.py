# SPDX-License-Identifier: MIT
"""Messages between agents and the controller."""

from __future__ import annotations

from typing import Annotated

import msgspec

from penstock.live.wire.messages.answers import (
    JobReport,
    PastJobs,
    Refused,
    StatusDocument,
    TextAnswer,
    ThrottledUser,
)
from penstock.live.wire.messages.message import (
    Amount,
    AnnouncedBytes,
    AnnouncedSeconds,
    Count,
    Counted,
    Message,
    ModeName,
    Name,
    Priority,
    Text,
)
from penstock.live.wire.messages.requests import ControllerRequest

__all__ = [
    "AgentConfig",
    "AgentHello",
    "CounterReport",
    "FromAgent",
    "Grants",
    "JobCounters",
    "JobJoined",
    "JobLeft",
    "Partition",
    "RequestHello",
    "RequestReport",
    "ToAgent",
    "UserReply",
    "UserRequest",
]

# --- Agent to controller --------------------------------------------------------------


class AgentHello(Message):
    """Introduce an agent; a `JobJoined` for each of its jobs follows."""

    job_keys: list[Name]


class JobJoined(Message):
    """Report that a job has processes on the agent's node."""

    job_key: Name
    user: int
    """User id."""
    group: Text
    """Account of the batch system, else the group id of the user."""
    nodes: Count
    """Number of nodes of the job; 0: count the agents."""
    volume_bytes: AnnouncedBytes
    """Volume of each of its operations; 0: unknown."""
    storage: Text = ""
    """Name of the file system of its folder; "": not known."""
    priority: Priority = 0.0
    """Priority that its user or an operator has given it."""
    qos: Text = ""
    """Quality of service that the batch system has given it."""
    work_s: AnnouncedSeconds = 0.0
    """Time for which it computes between two operations; 0: unknown."""
    history_name: Text = ""
    """Name that jobs like it have in the batch system; "": its own name tells."""
    targets: tuple[Text, ...] = ()
    """Names of the storage targets that an earlier controller has given it."""
    several_nodes: bool = False
    """True if its user says that it has more than one node, or an earlier controller
    has seen it: open files of such a job are never redirected."""


class JobLeft(Message):
    """Report that a job has no processes on the agent's node any more."""

    job_key: Name


class JobCounters(msgspec.Struct, frozen=True, array_like=True):
    """Counters of one job on one node, read from its page at one instant."""

    job_key: Name
    operations_begun: int
    """Operations begun, as counted by the preload library (modulo 2^32)."""
    moved_bytes: Counted
    """Volume moved so far."""
    held_up_s: Counted
    """Time that calls were held up, added over callers."""
    waiting: bool
    """True if a call is held up now."""
    idle_s: Amount
    """Time since the last I/O; 0 while a call is in flight, an announced phase is
    open, or staged data is being drained; inf: there was none."""
    bypass_setups: int = 0
    """Number of set-ups seen of I/O that cannot be controlled."""
    uncontrolled_bytes: Counted = 0.0
    """Volume that processes moved without control."""
    announced_bytes: AnnouncedBytes = 0.0
    """Volume that the program has announced so far."""
    phases: Count = 0
    """Phases that the program has announced and not ended."""
    staged_bytes: Counted = 0.0
    """Volume in journals that is not in the files yet."""
    quiet_s: Amount = 0.0
    """Time since the last call of a program; 0 while a call is in flight."""
    read_bytes: Counted = 0.0
    """Volume that calls read from the storage so far; 0 if reads are not controlled.
    `read_bytes` + `written_bytes` = `moved_bytes` + `merged_bytes`."""
    written_bytes: Counted = 0.0
    """Volume that calls and drainers wrote so far, copies from parts included."""
    read_busy_s: Counted = 0.0
    """Time inside reads that reached the storage, added over callers, without the time
    that they were held up."""
    written_busy_s: Counted = 0.0
    """The same for writes, and for syncs and closes of files that were written."""
    would_hold_up_s: Counted = 0.0
    """Time for which a dry run would have held up calls, added over callers."""
    unbacked: bool = False
    """True if processes claimed more bytes than the kernel has counted: what they say
    is doubted, and the claims since then are left out."""
    processes: Count = 0
    """Processes that do the work, without shells and launchers; 0: not counted."""
    write_calls: Count = 0
    """Calls so far that wrote to files directly."""
    redirected_bytes: Counted = 0.0
    """Volume so far of open files that went to parts on other targets, in
    `moved_bytes`."""
    merged_bytes: Counted = 0.0
    """Volume that was copied from parts into files so far: the job has not got ahead by
    it. It is in `written_bytes`, and not in `moved_bytes`."""
    pauses: Count = 0
    """Gaps so far inside announced phases, in which no call began or ended."""
    paused_s: Counted = 0.0
    """Length of these gaps."""
    can_stage: bool = True
    """False if none of its programs has a folder for journals."""


class CounterReport(Message):
    """Report the counters of jobs; an empty report is a heartbeat."""

    counters: list[JobCounters]
    job_count: Count
    """Number of jobs that the agent serves, to detect lost messages."""
    throttled: list[ThrottledUser] = msgspec.field(default_factory=list)
    """Users who lately took more of the agent than their budgets allow."""


class UserRequest(Message):
    """Forward the request of a user of the agent's node."""

    number: int
    """Number of the request, repeated in the `UserReply`."""
    user: int
    """User id, from the kernel."""
    trusted: bool
    """True if the user is root or runs the agent."""
    request: ControllerRequest


FromAgent = AgentHello | JobJoined | JobLeft | CounterReport | UserRequest


# --- Controller to agent --------------------------------------------------------------


class AgentConfig(Message):
    """Configure all pages of an agent."""

    mode: ModeName
    prefixes: list[str]
    """Folders whose files are controlled; empty: each job's working directory."""
    gap_s: Amount
    """Silence that ends an operation."""
    report_s: Amount
    """Time between two reports of a job's counters during an operation."""
    lease_s: Amount
    """How long grants hold after the last message of the controller."""
    floor: Amount
    """Rate that each job may draw when the lease has ended."""
    reads: bool
    """True if reads draw on the grant."""
    free_cached_reads: bool = False
    """True if reads that do not reach the storage are neither charged nor held up."""
    free_absorbed_writes: bool = False
    """The same for writes that memory takes."""


class Partition(msgspec.Struct, frozen=True, array_like=True):
    """The storage targets that new files of a job go to."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
    """The same number means the same targets; 0: not known."""
    folder: str
    """The folder of the job. New data of files that are open go to files there."""
    slots: Annotated[int, msgspec.Meta(ge=0, lt=2**32)] = 0
    """Number of sub-folders 0, 1, ... that lead to targets; 0: the folder itself."""
    roots: tuple[str, ...] = ()
    """Folders, as the kernel names them, that hold the files of the job."""
    targets: tuple[Text, ...] = ()
    """Names of the targets."""
    redirect_age_s: Amount = 0.0
    """Younger open files are not redirected: see `penstock.staging.redirection` (s)."""


class Grants(Message):
    """Set the grants of jobs on the agent's node; empty grants are a heartbeat."""

    rates: dict[str, Amount]
    """Job key -> rate on this node."""
    stages: dict[str, bool] = msgspec.field(default_factory=dict)
    """Job key -> whether its writes are staged, where that has changed."""
    partitions: dict[str, Partition] = msgspec.field(default_factory=dict)
    """Job key -> storage targets of its new files, where they have changed."""


class RequestReport(Message):
    """Ask for a report at once: the operations of these jobs should be complete."""

    job_keys: list[Name]


class RequestHello(Message):
    """Ask an unknown agent, or one whose messages were lost, for an `AgentHello`."""


class UserReply(Message):
    """Answer the `UserRequest` of this number."""

    number: int
    reply: Refused | TextAnswer | StatusDocument | PastJobs | JobReport


ToAgent = AgentConfig | Grants | RequestReport | RequestHello | UserReply
