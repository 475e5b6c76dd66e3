# SPDX-License-Identifier: MIT
"""Messages between programs, the agent of a node, and the controller.

| from | to | messages |
|---|---|---|
| program | agent | `AttachProcess` |
| batch system | agent | `RegisterJob` |
| user, operator | agent | `ControllerRequest`s, which the agent forwards |
| web page | agent | `OnBehalfOf` |
| agent | all of these | `PageAssigned`, `TextAnswer`, `StatusDocument`, `Refused`, |
| | | `PastJobs`, `JobReport`, `RunsUnderWay` |
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

from penstock.live.wire.messages.answers import (
    BandwidthBelief,
    Delay,
    HistoryFormat,
    JobReport,
    JobStatus,
    PageAssigned,
    PastJob,
    PastJobs,
    PolicySpan,
    Refused,
    Reply,
    ReportedOperation,
    RunsUnderWay,
    RunWithOperations,
    StatusDocument,
    StorageStatus,
    TextAnswer,
    ThrottledUser,
    with_job_keys,
)
from penstock.live.wire.messages.control import (
    AgentConfig,
    AgentHello,
    CounterReport,
    FromAgent,
    Grants,
    JobCounters,
    JobJoined,
    JobLeft,
    Partition,
    RequestHello,
    RequestReport,
    ToAgent,
    UserReply,
    UserRequest,
)
from penstock.live.wire.messages.encoding import (
    FROM_AGENT,
    FROM_PROGRAM,
    REPLY,
    TO_AGENT,
    TO_MOUNT,
    Decoder,
    encode,
    too_long_error,
)
from penstock.live.wire.messages.message import (
    LARGEST_BYTES,
    LARGEST_REQUEST_BYTES,
    VERSION,
    Message,
    MessageError,
    ModeName,
)
from penstock.live.wire.messages.mounts import MountCredit, MountReport, MountUse
from penstock.live.wire.messages.requests import (
    AttachProcess,
    ControllerRequest,
    ExplainJob,
    FromProgram,
    FromUser,
    GetJobReport,
    GetStatus,
    HintVolume,
    ListPastJobs,
    ListUnderWay,
    OnBehalfOf,
    RegisterJob,
    SetBandwidth,
    SetLimit,
    SetMode,
    SetPolicy,
)

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
    "ListUnderWay",
    "Message",
    "MessageError",
    "ModeName",
    "MountCredit",
    "MountReport",
    "MountUse",
    "OnBehalfOf",
    "PageAssigned",
    "Partition",
    "PastJob",
    "PastJobs",
    "PolicySpan",
    "Refused",
    "RegisterJob",
    "Reply",
    "ReportedOperation",
    "RequestHello",
    "RequestReport",
    "RunWithOperations",
    "RunsUnderWay",
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
    "with_job_keys",
]
