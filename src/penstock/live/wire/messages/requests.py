# SPDX-License-Identifier: MIT
"""Requests of programs, the batch system, operators and users to an agent."""

from __future__ import annotations

from typing import Annotated

import msgspec

from penstock.live.wire.messages.message import (
    Amount,
    AnnouncedBytes,
    AnnouncedSeconds,
    Count,
    GivenName,
    Message,
    ModeName,
    Name,
    Priority,
    Text,
)

__all__ = [
    "AttachProcess",
    "ControllerRequest",
    "ExplainJob",
    "FromProgram",
    "FromUser",
    "GetJobReport",
    "GetStatus",
    "HintVolume",
    "ListPastJobs",
    "ListUnderWay",
    "OnBehalfOf",
    "RegisterJob",
    "SetBandwidth",
    "SetLimit",
    "SetMode",
    "SetPolicy",
]


class AttachProcess(Message):
    """Put the calling process under control as a part of a job."""

    job_name: GivenName
    """Unique among the jobs of the caller's user."""
    nodes: Count = 0
    """Number of nodes of the job, believed only from trusted callers; 0: count the
    agents that serve the job. From any caller, a number above 1 keeps the job's open
    files from being redirected."""
    volume_bytes: AnnouncedBytes = 0.0
    """Volume of each of the job's operations; 0: unknown."""
    folder: Text = ""
    """Working directory of the process, controlled if no prefixes are set."""
    priority: Priority = 0.0
    """Priority of the job. Above 0 it is believed only from trusted callers."""
    work_s: AnnouncedSeconds = 0.0
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
    history_name: Text = ""
    """Name that jobs like it have in the batch system; "": not known."""


class HintVolume(Message):
    """Announce the volume of a job's next operation."""

    job_name: Name
    """Name or key of the job, as in `ExplainJob` and `SetLimit`."""
    volume_bytes: AnnouncedBytes


class GetStatus(Message):
    """Ask for a `StatusDocument`."""

    explains: bool = True
    """Whether it says of each job why it has its grant; this is half of its cost."""


class ExplainJob(Message):
    """Ask why a job has the grant that it has, or what a past run of it did."""

    job_name: Name
    joined_s: Amount = 0.0
    """When the past run joined (s since 1970); 0: the job that runs, or the last."""


class ListPastJobs(Message):
    """Ask for the `PastJobs` of the archive, the latest ones."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    """How many jobs to return at most."""


class ListUnderWay(Message):
    """Ask for the `RunsUnderWay`: jobs that run, with their present operations."""


class GetJobReport(Message):
    """Ask for the `JobReport` of a run of a job."""

    job_name: Name
    joined_s: Amount = 0.0
    """When the run joined (s since 1970); 0: the last run."""


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
    | ListUnderWay
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
