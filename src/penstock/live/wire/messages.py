# SPDX-License-Identifier: MIT
"""What programs, agents and controller say to one another.

A message is one byte, the version of this file, then a msgpack array that begins with
the name of the message. What is too long is not read. On a stream each
message is preceded by its length, four bytes, most significant first.

Whatever does not fit is refused with `MessageError`, which has one line to log.
Rates are in bytes per second, volumes in bytes, times in seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from penstock.errors import InputError

__all__ = [
    "FROM_AGENT",
    "FROM_PROGRAM",
    "LARGEST",
    "LARGEST_QUESTION",
    "REPLY",
    "TO_AGENT",
    "VERSION",
    "Admitted",
    "AgentConfig",
    "Answer",
    "Ask",
    "CounterReport",
    "Counts",
    "Decoder",
    "Enter",
    "Explain",
    "FromAgent",
    "FromProgram",
    "GetStatus",
    "Grants",
    "Hello",
    "Hint",
    "JobLeft",
    "JobLine",
    "Join",
    "Message",
    "MessageError",
    "Refused",
    "Register",
    "Replied",
    "Reply",
    "ReportNow",
    "SayHello",
    "SetBandwidth",
    "SetLimit",
    "SetPolicy",
    "StatusDocument",
    "Switch",
    "ToAgent",
    "UserRequest",
    "encode",
    "too_long",
]

VERSION: Final = 3
#: No question of a program is longer (bytes),
LARGEST_QUESTION: Final = 1 << 16
#: and nothing else.
LARGEST: Final = 1 << 26

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
#: A name that a user gives: it is shown in tables, and so on one line.
GivenName = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\A[^\x00-\x1f\x7f]+\Z")
]
Text = Annotated[str, msgspec.Meta(max_length=4096)]
Amount = Annotated[float, msgspec.Meta(ge=0.0)]
Count = Annotated[int, msgspec.Meta(ge=0)]
ModeName = Literal["control", "dry-run", "off"]


class MessageError(InputError):
    """Bytes are not a valid message of this version."""


class Message(msgspec.Struct, array_like=True, tag=True):
    """Base of all messages."""


# --- A program, or an operator, to the agent of the node -----------------------------


class Enter(Message):
    """A process wants to be controlled, as a part of a job."""

    job: GivenName
    """Unique among the jobs of its user."""
    nodes: Count = 0
    """On how many nodes the job runs, if the agent trusts the caller; 0: on as many
    as agents have it."""
    volume: Amount = 0.0
    """Of each of its operations; 0: unknown."""
    folder: Text = ""
    """Working directory: controlled where no prefixes are set."""


class Register(Message):
    """The batch system says that a job runs on this node, until its page is removed."""

    job: GivenName
    user: Count
    group: Count
    """Numbers of the user who owns the job, and of its group."""
    account: Text
    """What the batch system charges for it."""
    nodes: Count
    folder: Text = ""
    """Working directory: controlled where no prefixes are set."""


class Hint(Message):
    """The next operation of a job will move `volume` bytes."""

    job: Name
    volume: Amount


class GetStatus(Message):
    """Ask how everything stands."""


class Explain(Message):
    """Ask why a job has what it has."""

    job: Name


class SetPolicy(Message):
    """Let another policy decide."""

    policy: Text


class SetBandwidth(Message):
    """Share another total bandwidth."""

    bandwidth: Amount


class SetLimit(Message):
    """Never grant a job more; inf: no limit."""

    job: Name
    limit: Amount


class Switch(Message):
    """Switch control on, off, or to a dry run."""

    mode: ModeName


Ask = Hint | GetStatus | Explain | SetPolicy | SetBandwidth | SetLimit | Switch
FromProgram = Enter | Register | Ask


# --- The agent to a program -----------------------------------------------------------


class Admitted(Message):
    """The process may use this page."""

    page: str
    prefixes: list[str]


class Refused(Message):
    """The request was refused."""

    reason: str
    """Why, in one line."""
    retry: bool = False
    """True if the same request may succeed later."""


class Answer(Message):
    """What was asked for, in words."""

    text: str


class JobLine(msgspec.Struct, frozen=True):
    """One job in a `StatusDocument`."""

    job: str
    user: int
    nodes: list[str]
    cap: float
    limit: float | None
    active: bool
    """Whether it has an operation now."""
    waiting: bool
    """Whether one of its calls is held up now."""
    lent: bool
    granted: float
    """Rate that it holds; its cap while it has no operation."""
    demanded: float
    """Rate that it would draw: its cap if it is held up, else what it draws."""
    achieved: float
    """Rate that it draws."""
    volume: float
    """Of its operation, known or supposed."""
    remaining: float
    moved: float
    """Since it was registered."""
    held_up: float
    """Time that its calls were held up, added over callers."""
    age: float
    lost: float
    progress_yield: float
    operations: int
    bypassed: int
    """Set-ups seen of I/O that cannot be controlled."""
    uncontrolled: float
    """Volume that its processes moved and control did not see."""
    staged: float
    """Volume that is in its journals and not in the files yet."""
    why: str


class StatusDocument(Message):
    """How everything stands."""

    mode: str
    policy: str
    bandwidth: float
    node_bandwidth: float | None
    agents: list[str]
    decisions: int
    faults: list[str]
    jobs: list[JobLine]


Reply = Admitted | Refused | Answer | StatusDocument


# --- An agent to the controller -------------------------------------------------------


class Hello(Message):
    """An agent is there and has these jobs, which join next."""

    jobs: list[Name]


class Join(Message):
    """A job has processes on the agent's node."""

    job: Name
    """The user's number, a colon and the name."""
    user: int
    group: Text
    """Its account, else the number of its user's group."""
    nodes: Count
    volume: Amount


class JobLeft(Message):
    """A job has no processes there any more."""

    job: Name


class Counts(msgspec.Struct, frozen=True, array_like=True):
    """The counters of a job on a node; see `penstock.live.control.phases.Sample`."""

    job: Name
    posts: int
    volume: Amount
    held_up: Amount
    waiting: bool
    idle: Amount
    bypassed: int = 0
    uncontrolled: Amount = 0.0
    announced: Amount = 0.0
    phases: Count = 0
    staged: Amount = 0.0
    quiet: Amount = 0.0
    """Time since the latest call of a program (s); 0 while one is in flight."""


class CounterReport(Message):
    """Counters that matter; also the sign that the agent is alive."""

    counts: list[Counts]
    jobs: Count
    """How many jobs the agent has."""


class UserRequest(Message):
    """A question of a user of the agent's node."""

    number: int
    user: int
    trusted: bool
    question: Ask


FromAgent = Hello | Join | JobLeft | CounterReport | UserRequest


# --- The controller to an agent -------------------------------------------------------


class AgentConfig(Message):
    """What holds for all pages of the agent."""

    mode: ModeName
    prefixes: list[str]
    gap: Amount
    """Gap that ends an operation."""
    report: Amount
    """Time between two reports."""
    lease: Amount
    """How long grants hold without a further sign."""
    floor: Amount
    """What is granted afterwards."""
    reads: bool
    """Whether reads draw on the grant."""


class Grants(Message):
    """Rates on the agent's node, by job; also the sign of life."""

    rates: dict[str, Amount]
    stages: dict[str, bool] = {}
    """Whether the job's writes are staged, where that has changed."""


class ReportNow(Message):
    """Report on these jobs at once: their operations should be complete."""

    jobs: list[Name]


class SayHello(Message):
    """The controller does not know the agent, which must say hello again."""


class Replied(Message):
    """The answer to a question."""

    number: int
    reply: Refused | Answer | StatusDocument


ToAgent = AgentConfig | Grants | ReportNow | SayHello | Replied


# --- Bytes ----------------------------------------------------------------------------

_ENCODER: Final = msgspec.msgpack.Encoder()


def encode(message: Message) -> bytes:
    """Return a message as bytes."""
    return bytes([VERSION]) + _ENCODER.encode(message)


def too_long(size_bytes: int) -> MessageError:
    """Return the error for a message of that length."""
    return MessageError(f"a message of {size_bytes} bytes is too long")


class Decoder:
    """Makes messages of given kinds from bytes."""

    def __init__(self, kinds: Any, largest: int) -> None:
        self.largest = largest
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(kinds)

    def __call__(self, data: bytes) -> Any:
        """Return the message in `data`, or raise `MessageError`."""
        if len(data) > self.largest:
            raise too_long(len(data))
        if not data or data[0] != VERSION:
            spoken = f"version {data[0]}" if data else "nothing"
            raise MessageError(
                f"the other side speaks {spoken}, not version {VERSION}",
                remedy="use the same penstock on both sides",
            )
        try:
            return self._decoder.decode(memoryview(data)[1:])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise MessageError(f"not a message: {error}") from None


FROM_PROGRAM: Final = Decoder(FromProgram, LARGEST_QUESTION)
REPLY: Final = Decoder(Reply, LARGEST)
FROM_AGENT: Final = Decoder(FromAgent, LARGEST)
TO_AGENT: Final = Decoder(ToAgent, LARGEST)
