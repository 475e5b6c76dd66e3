# SPDX-License-Identifier: MIT
"""The control socket of a mount: get its status, set limits and SLOs, stop it.

One command per connection: one line of JSON in each direction. The socket lies in a
folder that only its owner can enter. It is named after the device number of the mount,
which is in the mount table, so that a client finds the socket without touching the
mount.
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
from penstock.mount.limits import Limits
from penstock.mount.points import MountTableEntry, has_ended

__all__ = [
    "CHANGE_S",
    "MAX_MESSAGE_BYTES",
    "ApplicationState",
    "GetMountStatus",
    "MountCommand",
    "MountRefusal",
    "MountStatus",
    "Moved",
    "SchedulerStatus",
    "SetLimits",
    "SetSlo",
    "Stop",
    "all_statuses",
    "decode_command",
    "encode",
    "limits_document",
    "remove_dead_socket",
    "send_command",
    "socket_path",
]

#: Longest message.
MAX_MESSAGE_BYTES: Final = 1 << 20
#: Longest time in which SLOs are replaced: the storage may be asked for its striping.
CHANGE_S: Final = 60.0
#: Longest wait for an answer, beside the time of a change.
_TIMEOUT_S: Final = 10.0
#: A limit in bytes/s; None: no limit.
Rate = Annotated[float, msgspec.Meta(gt=0.0)] | None


class GetMountStatus(msgspec.Struct, tag="status"):
    """Get the status of the mount."""


class SetLimits(msgspec.Struct, tag="limits"):
    """Set limits (bytes/s); limits that are not given do not change."""

    total: Rate | msgspec.UnsetType = msgspec.UNSET
    read: Rate | msgspec.UnsetType = msgspec.UNSET
    write: Rate | msgspec.UnsetType = msgspec.UNSET

    def applied_to(self, limits: Limits) -> Limits:
        """Return `limits` with the given ones replaced."""
        given = msgspec.structs.asdict(self)
        changed = {
            name: inf if rate is None else rate
            for name, rate in given.items()
            if rate is not msgspec.UNSET
        }
        return replace(limits, **changed)


class SetSlo(msgspec.Struct, tag="objectives"):
    """Replace SLOs, rules and default application."""

    document: dict[str, Any]
    """Content of a file for ``--slo``, with the present scheduler and exchange."""


class Stop(msgspec.Struct, tag="stop"):
    """End the mount at once; programs that use it get errors."""


MountCommand = GetMountStatus | SetLimits | SetSlo | Stop


class Moved(msgspec.Struct):
    """Totals of the reads or of the writes."""

    requests: int
    moved_bytes: int = msgspec.field(name="bytes")
    held_up_s: float = msgspec.field(name="waited_s")
    """Sum over all requests."""


class ApplicationState(msgspec.Struct):
    """SLO and service of an application; the window is the last complete one."""

    name: str
    throughput_bytes_per_s: float = msgspec.field(name="throughput")
    """Throughput of its SLO."""
    latency_s: float = msgspec.field(name="latency")
    """Latency bound of its SLO."""
    queued: int
    """Number of requests that wait now."""
    p95_s: float | None
    """95th percentile of the response times in the window; None: no answers."""
    bytes_per_s: float
    """Throughput in the window."""
    requests: int
    """Answered requests in total."""
    moved_bytes: int = msgspec.field(name="bytes")
    """Moved bytes in total."""
    windows: int
    """Number of windows with at least one answer."""
    kept_windows: int = msgspec.field(name="kept")
    """Number of these whose 95th percentile was within the bound."""
    operations: int = 0
    """Metadata requests in total."""
    queued_operations: int = 0
    """Number of metadata requests that wait now."""
    operations_per_s: float | None = msgspec.field(
        name="operations_limit", default=None
    )
    """Limit of its metadata requests; None: no limit."""
    cap_bytes_per_s: float | None = msgspec.field(name="bandwidth_limit", default=None)
    """Limit of its reads and writes; None: no limit."""


class SchedulerStatus(msgspec.Struct):
    """The scheduler of a mount, and the service of applications."""

    scheduler: str
    depth: float | None
    """Maximum number of requests under way; None: no maximum."""
    outstanding: int
    """Number of requests under way."""
    unmet: str
    """Why the SLOs exceed the limit; empty if they do not."""
    applications: list[ApplicationState]
    document: dict[str, Any]
    """Content of the file of ``--slo``."""
    credit: str = ""
    """Where credit comes from, or why there is none; empty: no exchange."""
    metadata_depth: int = 0
    """Maximum number of metadata requests under way."""
    metadata_outstanding: int = 0
    """Number of metadata requests under way."""


class MountStatus(msgspec.Struct, tag="state"):
    """The status of a mount."""

    backing: str
    point: str
    pid: int
    limits: dict[str, Rate]
    """By name: ``total``, ``read``, ``write``."""
    waiting: int
    """Number of requests that wait now."""
    read: Moved
    write: Moved
    metadata: dict[str, int]
    """Number of other requests, by name."""
    scheduling: SchedulerStatus | None = msgspec.field(name="order", default=None)
    """None: no SLOs; requests go first come, first served."""
    waiting_metadata: int = 0
    """Number of other requests that wait now."""
    metadata_waited_s: float = 0.0
    """Time that other requests have waited, added up."""
    backing_id: str = ""
    """`penstock.mount.points.folder_id` of the folder that is mounted."""


class MountRefusal(msgspec.Struct, tag="failure"):
    """Why a command was refused."""

    reason: str


_COMMAND: Final[msgspec.json.Decoder[MountCommand]] = msgspec.json.Decoder(MountCommand)
_ANSWER: Final[msgspec.json.Decoder[MountStatus | MountRefusal]] = msgspec.json.Decoder(
    MountStatus | MountRefusal
)


def limits_document(limits: Limits) -> dict[str, float | None]:
    """Return the limits (bytes/s) by name; None: no limit."""
    values = asdict(limits)
    return {name: None if rate == inf else rate for name, rate in values.items()}


def socket_path(folder: Path, device: str) -> Path:
    """Return the path of the socket of the mount with a device number."""
    return folder / f"{device.replace(':', '-')}.sock"


def decode_command(line: bytes) -> MountCommand:
    """Return the command in a line; raise `InputError` if it is not one."""
    try:
        return _COMMAND.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"not a command for a mount: {error}") from None


def encode(message: Any) -> bytes:
    """Return a message as a line of JSON."""
    return msgspec.json.encode(message) + b"\n"


def send_command(
    folder: Path, entry: MountTableEntry, command: MountCommand
) -> MountStatus:
    """Send a command to a mount; return its status afterwards.

    Raises `UnavailableError` if the mount does not answer, `InputError` if it refuses.
    """
    path = socket_path(folder, entry.device)
    try:
        answer = _send(path, command)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _no_answer(entry, path, error) from None
    if isinstance(answer, MountRefusal):
        raise InputError(answer.reason, where=entry.point)
    return answer


def _no_answer(
    entry: MountTableEntry, path: Path, error: Exception
) -> UnavailableError:
    """Return the error for a mount that does not answer at its socket."""
    if has_ended(entry.point):
        return UnavailableError(
            "the process of the mount has ended without unmounting",
            where=entry.point,
            remedy="mount it again, or remove it with penstock mount --unmount",
        )
    reason = getattr(error, "strerror", None) or str(error)
    return UnavailableError(
        f"the mount does not answer at {path}: {reason}",
        where=entry.point,
        remedy="run as the user who mounted it, with the same --folder",
    )


def remove_dead_socket(folder: Path, entry: MountTableEntry) -> None:
    """Remove the socket of a mount whose process was killed; another one stays."""
    path = socket_path(folder, entry.device)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_S)
        try:
            connection.connect(str(path))
        except ConnectionRefusedError:
            # Nobody listens.
            with suppress(OSError):
                path.unlink()
        except OSError:
            pass


def all_statuses(folder: Path) -> list[MountStatus]:
    """Return the status of every mount with a socket in `folder` that answers."""
    statuses = []
    for path in sorted(folder.glob("*.sock")):
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            answer = _send(path, GetMountStatus())
            if isinstance(answer, MountStatus):
                statuses.append(answer)
    return statuses


def _send(path: Path, command: MountCommand) -> MountStatus | MountRefusal:
    """Send a command to a socket; return the answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        is_change = isinstance(command, SetSlo)
        connection.settimeout(_TIMEOUT_S + (CHANGE_S if is_change else 0.0))
        connection.connect(str(path))
        connection.sendall(encode(command))
        with connection.makefile("rb") as stream:
            return _ANSWER.decode(stream.readline(MAX_MESSAGE_BYTES))
