# SPDX-License-Identifier: MIT
"""The socket of a mount: ask how it stands, set limits and objectives, stop it.

One question per connection, one line of JSON each way. The socket lies in a folder
that only its owner can enter and is named after the device of the mount, which the
mount table tells: it is found without touching the mount.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from penstock.errors import InputError, UnavailableError
from penstock.mount.limiter import Limits
from penstock.mount.points import Mounted

__all__ = [
    "LARGEST",
    "ApplicationState",
    "GetMountStatus",
    "MountRefusal",
    "MountStatus",
    "Moved",
    "Question",
    "SchedulerStatus",
    "SetLimits",
    "SetObjectives",
    "Stop",
    "ask",
    "ask_all",
    "decode_question",
    "encode",
    "limits_document",
    "socket_path",
]

#: Bytes of a message.
LARGEST: Final = 1 << 20
#: Longest wait for an answer (s).
_LIMIT_S: Final = 10.0
#: Bytes/s; None: no limit.
Rate = Annotated[float, msgspec.Meta(gt=0.0)] | None


class GetMountStatus(msgspec.Struct, tag="status"):
    """Ask how the mount stands."""


class SetLimits(msgspec.Struct, tag="limits"):
    """Set limits (bytes/s); those that are not named stay."""

    total: Rate | msgspec.UnsetType = msgspec.UNSET
    read: Rate | msgspec.UnsetType = msgspec.UNSET
    write: Rate | msgspec.UnsetType = msgspec.UNSET

    def applied(self, limits: Limits) -> Limits:
        """Return `limits` with these set."""
        given = msgspec.structs.asdict(self)
        changed = {
            name: inf if rate is None else rate
            for name, rate in given.items()
            if rate is not msgspec.UNSET
        }
        return replace(limits, **changed)


class SetObjectives(msgspec.Struct, tag="objectives"):
    """Promise something else from now on."""

    document: dict[str, Any]
    """As in the file of ``--slo``; its scheduler must be the present one."""


class Stop(msgspec.Struct, tag="stop"):
    """End at once: whoever uses the mount gets errors."""


Question = GetMountStatus | SetLimits | SetObjectives | Stop


class Moved(msgspec.Struct):
    """What has passed, in one direction."""

    requests: int
    bytes: int
    waited_s: float
    """Sum of the times that requests have waited."""


class ApplicationState(msgspec.Struct):
    """How an application is served; figures of a window are of the last complete."""

    name: str
    throughput: float
    """What it is promised (bytes/s),"""
    latency: float
    """and within which time (s)."""
    queued: int
    """Requests that wait now."""
    p95_s: float | None
    """95th percentile of the response times in a window (s); None: no requests."""
    bytes_per_s: float
    """Throughput in a window."""
    requests: int
    """Answers so far."""
    bytes: int
    """Bytes so far."""
    windows: int
    """Windows with answers so far,"""
    kept: int
    """and those of them whose 95th percentile kept the bound."""


class SchedulerStatus(msgspec.Struct):
    """Who decides the order of requests, and how it stands."""

    scheduler: str
    depth: float | None
    """Requests that may be under way at a time; None: any number."""
    outstanding: int
    """Requests that are under way."""
    unmet: str
    """Why not all objectives can be met; empty: they can."""
    applications: list[ApplicationState]
    document: dict[str, Any]
    """As in the file of ``--slo``."""


class MountStatus(msgspec.Struct, tag="state"):
    """How a mount stands."""

    backing: str
    point: str
    pid: int
    limits: dict[str, Rate]
    """Of ``total``, ``read`` and ``write``."""
    waiting: int
    """Requests that wait now."""
    read: Moved
    write: Moved
    metadata: dict[str, int]
    """Other requests, by name."""
    order: SchedulerStatus | None = None
    """None: first come, first served."""


class MountRefusal(msgspec.Struct, tag="failure"):
    """Why a question has no answer."""

    reason: str


_QUESTION: Final[msgspec.json.Decoder[Question]] = msgspec.json.Decoder(Question)
_ANSWER: Final[msgspec.json.Decoder[MountStatus | MountRefusal]] = msgspec.json.Decoder(
    MountStatus | MountRefusal
)


def limits_document(limits: Limits) -> dict[str, float | None]:
    """Return limits (bytes/s) by name; None: no limit."""
    values = asdict(limits)
    return {name: None if rate == inf else rate for name, rate in values.items()}


def socket_path(folder: Path, device: str) -> Path:
    """Return the socket of the mount with a device number."""
    return folder / f"{device.replace(':', '-')}.sock"


def decode_question(line: bytes) -> Question:
    """Return the question that a line holds."""
    try:
        return _QUESTION.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"not a question: {error}") from None


def encode(message: Any) -> bytes:
    """Return a message as a line."""
    return msgspec.json.encode(message) + b"\n"


def ask(folder: Path, mounted: Mounted, question: Question) -> MountStatus:
    """Return the answer of a mount."""
    path = socket_path(folder, mounted.device)
    try:
        answer = _answer(path, question)
    except (OSError, msgspec.MsgspecError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnavailableError(
            f"does not answer at {path}: {reason}",
            where=mounted.point,
            remedy="run as the user who mounted it, and with the same --folder",
        ) from None
    if isinstance(answer, MountRefusal):
        raise InputError(answer.reason, where=mounted.point)
    return answer


def ask_all(folder: Path) -> list[MountStatus]:
    """Return how all mounts stand that have their sockets here and answer."""
    found = []
    for path in sorted(folder.glob("*.sock")):
        with suppress(OSError, msgspec.MsgspecError):
            answer = _answer(path, GetMountStatus())
            if isinstance(answer, MountStatus):
                found.append(answer)
    return found


def _answer(path: Path, question: Question) -> MountStatus | MountRefusal:
    return _ANSWER.decode(_exchange(path, encode(question)))


def _exchange(path: Path, line: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_LIMIT_S)
        connection.connect(str(path))
        connection.sendall(line)
        with connection.makefile("rb") as stream:
            return stream.readline(LARGEST)
