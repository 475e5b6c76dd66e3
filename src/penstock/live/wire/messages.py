# SPDX-License-Identifier: MIT
"""Messages between programs, the agent of a node, and the controller.

| from | to | messages |
|---|---|---|
| program | agent | `AttachProcess` |
| batch system | agent | `RegisterJob` |
| user, operator | agent | `ControllerRequest`s, which the agent forwards |
| web page | agent | `OnBehalfOf` |
| agent | all of these | `PageAssigned`, `TextAnswer`, `StatusDocument`, `Refused`, |
| | | `PastJobs`, `JobReport` |
| agent | controller | `AgentHello`, `JobJoined`, `JobLeft`, `CounterReport`, |
| | | `UserRequest` |
| controller | agent | `AgentConfig`, `Grants`, `RequestReport`, `RequestHello`, |
| | | `UserReply` |
| mount | controller | `MountReport` |
| controller | mount | `MountCredit` |

A message is encoded as one byte, `VERSION`, followed by a msgpack array that begins
with the name of the message. Bytes that are not a message of this version, or are too
long, raise `MessageError`. On a stream each message is preceded by its length
(`frames`); ZeroMQ keeps the boundaries of messages itself.

A job has a name, chosen by its user, and a key, ``UID:NAME``, which is unique.
Rates, caps, limits and bandwidths are in bytes per second.
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Any, Final, Literal

import msgspec

from penstock.errors import InputError

__all__ = [
    "FROM_AGENT",
    "FROM_PROGRAM",
    "LARGEST_BYTES",
    "LARGEST_REQUEST_BYTES",
    "REPLY",
    "TO_AGENT",
    "TO_MOUNT",
    "VERSION",
    "AgentConfig",
    "AgentHello",
    "AttachProcess",
    "BandwidthBelief",
    "ControllerRequest",
    "CounterReport",
    "Decoder",
    "Delay",
    "ExplainJob",
    "FromAgent",
    "FromProgram",
    "FromUser",
    "GetJobReport",
    "GetStatus",
    "Grants",
    "HintVolume",
    "HistoryFormat",
    "JobCounters",
    "JobJoined",
    "JobLeft",
    "JobReport",
    "JobStatus",
    "ListPastJobs",
    "Message",
    "MessageError",
    "MountCredit",
    "MountReport",
    "MountUse",
    "OnBehalfOf",
    "PageAssigned",
    "Partition",
    "PastJob",
    "PastJobs",
    "Refused",
    "RegisterJob",
    "Reply",
    "ReportedOperation",
    "RequestHello",
    "RequestReport",
    "RunWithOperations",
    "SetBandwidth",
    "SetLimit",
    "SetMode",
    "SetPolicy",
    "StatusDocument",
    "StorageStatus",
    "TextAnswer",
    "ThrottledUser",
    "ToAgent",
    "UserReply",
    "UserRequest",
    "encode",
    "too_long_error",
]

VERSION: Final = 6
#: Longest message of a program or user (bytes).
LARGEST_REQUEST_BYTES: Final = 1 << 16
#: Longest message of an agent or controller (bytes).
LARGEST_BYTES: Final = 1 << 26

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
#: A name that a user chooses. It has no control characters: tables show it in one line.
GivenName = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\A[^\x00-\x1f\x7f]+\Z")
]
Text = Annotated[str, msgspec.Meta(max_length=4096)]
Amount = Annotated[float, msgspec.Meta(ge=0.0)]
Count = Annotated[int, msgspec.Meta(ge=0)]
#: Priority of a job: the higher, the sooner; most jobs have 0.
Priority = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
ModeName = Literal["control", "dry-run", "off"]


class MessageError(InputError):
    """Bytes that are not a message of this version."""


class Message(msgspec.Struct, array_like=True, tag=True):
    """Base of all messages."""


# --- Program, batch system, operator or user to agent ---------------------------------


class AttachProcess(Message):
    """Put the calling process under control as a part of a job."""

    job_name: GivenName
    """Unique among the jobs of the caller's user."""
    nodes: Count = 0
    """Number of nodes of the job, believed only from trusted callers; 0: count the
    agents that serve the job."""
    volume_bytes: Amount = 0.0
    """Volume of each of the job's operations; 0: unknown."""
    folder: Text = ""
    """Working directory of the process, controlled if no prefixes are set."""
    priority: Priority = 0.0
    """Priority of the job. Above 0 it is believed only from trusted callers."""
    work_s: Amount = 0.0
    """Time for which the job computes between two operations; 0: unknown."""


class RegisterJob(Message):
    """Register a job on behalf of the batch system (trusted callers only).

    The job is over when its page is removed.
    """

    job_name: GivenName
    user: Count
    """User id of the job's owner."""
    group: Count
    """Group id of the job's owner."""
    account: Text
    """Account that the batch system charges for the job."""
    nodes: Count
    """Number of nodes of the job."""
    folder: Text = ""
    """Working directory of the job, controlled if no prefixes are set."""
    qos: Text = ""
    """Quality of service of the job, which the controller may map to a priority."""


class HintVolume(Message):
    """Announce the volume of a job's next operation."""

    job_name: Name
    """Name or key of the job, as in `ExplainJob` and `SetLimit`."""
    volume_bytes: Amount


class GetStatus(Message):
    """Ask for a `StatusDocument`."""

    explains: bool = True
    """Whether it says of each job why it has its grant; this is half of its cost."""


class ExplainJob(Message):
    """Ask why a job has the grant that it has."""

    job_name: Name


class ListPastJobs(Message):
    """Ask for the `PastJobs` of the archive, the latest ones."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    """How many jobs to return at most."""


class GetJobReport(Message):
    """Ask for the `JobReport` of the last run of a job."""

    job_name: Name


class SetPolicy(Message):
    """Replace the policy."""

    policy: Text
    """Name and parameters, as on the command line."""


class SetBandwidth(Message):
    """Replace the total bandwidth that the jobs share."""

    bandwidth: Amount | None
    """None: learn it."""


class SetLimit(Message):
    """Limit the grant of a job."""

    job_name: Name
    limit: Amount
    """inf removes the limit."""


class SetMode(Message):
    """Switch control on, off, or to a dry run."""

    mode: ModeName


#: Messages that the agent forwards to the controller.
ControllerRequest = (
    HintVolume
    | GetStatus
    | ExplainJob
    | ListPastJobs
    | GetJobReport
    | SetPolicy
    | SetBandwidth
    | SetLimit
    | SetMode
)


class OnBehalfOf(Message):
    """Ask as another user, with the rights of that user (trusted callers only).

    The web page asks so for the users who have logged in.
    """

    user: Count
    """User id."""
    request: ControllerRequest


FromUser = AttachProcess | RegisterJob | ControllerRequest
FromProgram = FromUser | OnBehalfOf


# --- Agent to program, operator or user -----------------------------------------------


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


class TextAnswer(Message):
    """Answer a request in words."""

    text: str


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
    storages: list[StorageStatus] = []
    """What is known about each storage."""
    throttled: list[ThrottledUser] = []
    """Users who take too much of the daemons, as far as the reader may see them."""

    def document(self) -> dict[str, Any]:
        """Return the status in the form of ``penstock ctl status --json``."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {"penstock": 1, **msgspec.to_builtins(fields)}


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
    others: list[RunWithOperations] = []
    """Jobs on the same storage meanwhile, for operators only."""
    operation_count: int = 0
    """Number of all operations; `operations` are the last ones."""
    note: str = ""
    """Why the job cannot be simulated with the others; empty if it can."""


Reply = PageAssigned | Refused | TextAnswer | StatusDocument | PastJobs | JobReport


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
    volume_bytes: Amount
    """Volume of each of its operations; 0: unknown."""
    storage: Text = ""
    """Name of the file system of its folder; "": not known."""
    priority: Priority = 0.0
    """Priority that its user or an operator has given it."""
    qos: Text = ""
    """Quality of service that the batch system has given it."""
    work_s: Amount = 0.0
    """Time for which it computes between two operations; 0: unknown."""


class JobLeft(Message):
    """Report that a job has no processes on the agent's node any more."""

    job_key: Name


class JobCounters(msgspec.Struct, frozen=True, array_like=True):
    """Counters of one job on one node, read from its page at one instant."""

    job_key: Name
    operations_begun: int
    """Operations begun, as counted by the preload library (modulo 2^32)."""
    moved_bytes: Amount
    """Volume moved so far."""
    held_up_s: Amount
    """Time that calls were held up, added over callers."""
    waiting: bool
    """True if a call is held up now."""
    idle_s: Amount
    """Time since the last I/O; 0 while a call is in flight, an announced phase is
    open, or staged data is being drained."""
    bypass_setups: int = 0
    """Number of set-ups seen of I/O that cannot be controlled."""
    uncontrolled_bytes: Amount = 0.0
    """Volume that processes moved without control."""
    announced_bytes: Amount = 0.0
    """Volume that the program has announced so far."""
    phases: Count = 0
    """Phases that the program has announced and not ended."""
    staged_bytes: Amount = 0.0
    """Volume in journals that is not in the files yet."""
    quiet_s: Amount = 0.0
    """Time since the last call of a program; 0 while a call is in flight."""
    read_bytes: Amount = 0.0
    """Volume that calls read from the storage so far; 0 if reads are not controlled.
    `read_bytes` + `written_bytes` = `moved_bytes`."""
    written_bytes: Amount = 0.0
    """Volume that calls and drainers wrote so far."""
    read_busy_s: Amount = 0.0
    """Time inside reads that reached the storage, added over callers, without the time
    that they were held up."""
    written_busy_s: Amount = 0.0
    """The same for writes, and for syncs and closes of files that were written."""
    would_hold_up_s: Amount = 0.0
    """Time for which a dry run would have held up calls, added over callers."""
    unbacked: bool = False
    """True if processes claimed more bytes than the kernel has counted: what they say
    is doubted, and the claims since then are left out."""
    processes: Count = 0
    """Processes that do the work, without shells and launchers; 0: not counted."""
    write_calls: Count = 0
    """Calls so far that wrote to files directly."""


class CounterReport(Message):
    """Report the counters of jobs; an empty report is a heartbeat."""

    counters: list[JobCounters]
    job_count: Count
    """Number of jobs that the agent serves, to detect lost messages."""
    throttled: list[ThrottledUser] = []
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


class Grants(Message):
    """Set the grants of jobs on the agent's node; empty grants are a heartbeat."""

    rates: dict[str, Amount]
    """Job key -> rate on this node."""
    stages: dict[str, bool] = {}
    """Job key -> whether its writes are staged, where that has changed."""
    partitions: dict[str, Partition] = {}
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


# --- Mount to controller and back -----------------------------------------------------


class MountUse(msgspec.Struct, frozen=True, array_like=True):
    """What an application has used of a mount since the mount started.

    The fields are those of `penstock.qos.ApplicationUse`.
    """

    sent_bytes: Amount
    done_bytes: Amount
    busy_s: Amount
    blocked: Count
    slack: Amount = inf


class MountReport(Message):
    """Report what the applications of a mount have used: totals, not increments."""

    storage: Name
    """Mounts that name the same storage share it."""
    run: Name
    """Random name of the run of the mount; its totals start at 0."""
    number: Count
    """Number of the report in the run; older reports are ignored."""
    promises: dict[Name, Amount]
    """Application -> promised throughput."""
    uses: dict[Name, MountUse]


class MountCredit(Message):
    """Answer the reports of a mount: rates for applications ahead of their share."""

    run: Name
    """The run of the mount that this is for."""
    controller: Name
    """Random name of the run of the controller."""
    number: Count
    """Number of the decision in the run of the controller."""
    rates: dict[str, Amount]
    """Application -> most that it may draw here; not named: no limit."""
    lease_s: Amount
    """How long the rates hold."""
    elsewhere: dict[str, Amount]
    """Application -> bytes served by mounts of other storages since this one joined."""
    parts: dict[str, Amount] = {}
    """Application -> part of its service on this storage that is at this mount."""
    slack: Amount = inf
    """Least slack factor of all applications at other mounts of this storage."""
    conflicts: list[Text] = []
    """Promises of this mount that contradict those of other mounts, in words."""


# --- Bytes ----------------------------------------------------------------------------

_ENCODER: Final = msgspec.msgpack.Encoder()


def encode(message: Message) -> bytes:
    """Return a message as bytes."""
    return bytes([VERSION]) + _ENCODER.encode(message)


def too_long_error(size_bytes: int) -> MessageError:
    """Return the error for a message of this size."""
    return MessageError(f"a message of {size_bytes} bytes is too long")


class Decoder:
    """Decodes messages of given kinds.

    Parameters
    ----------
    kinds
        Union of the kinds of messages to accept.
    largest_bytes
        Size of the longest message to accept.
    """

    def __init__(self, kinds: Any, largest_bytes: int) -> None:
        self.largest_bytes = largest_bytes
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(kinds)

    def __call__(self, data: bytes) -> Any:
        """Return the message in `data`, or raise `MessageError`."""
        if len(data) > self.largest_bytes:
            raise too_long_error(len(data))
        if not data or data[0] != VERSION:
            version = f"of version {data[0]}" if data else "empty"
            raise MessageError(
                f"a message is {version}, not of version {VERSION}",
                remedy="use the same version of penstock on both sides",
            )
        try:
            return self._decoder.decode(memoryview(data)[1:])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise MessageError(f"not a message: {error}") from None


FROM_PROGRAM: Final = Decoder(FromProgram, LARGEST_REQUEST_BYTES)
REPLY: Final = Decoder(Reply, LARGEST_BYTES)
FROM_AGENT: Final = Decoder(FromAgent | MountReport, LARGEST_BYTES)
TO_AGENT: Final = Decoder(ToAgent, LARGEST_BYTES)
TO_MOUNT: Final = Decoder(MountCredit, LARGEST_BYTES)
