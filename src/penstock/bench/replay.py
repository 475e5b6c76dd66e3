# SPDX-License-Identifier: MIT
"""Replay a trace as real I/O, with one process per process of the trace.

Time outside I/O is work: after an access a process waits as long as the traced process
did, divided by the speed, and then makes the next access, however long the last one
took. All processes start together. The files are created in one directory, with the
size that the trace reads; writes write zeros.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.workloads.traces import Access, Trace

__all__ = ["Replayed", "replay"]

#: Time from the start of the replay to the first access.
_START_S: Final = 0.2
#: If no process reports progress for this time, the storage has stopped.
_SILENCE_S: Final = 600.0
_HEARTBEAT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """One process in the trace and in its replay."""

    process: int
    read: int
    written: int
    """Bytes."""
    io_s: float
    """Time in I/O, replayed."""
    traced_io_s: float
    """Time in I/O, as recorded."""
    duration_s: float
    """From the common start to the end of its last access."""


def replay(trace: Trace, directory: Path, *, speed: float = 1.0) -> list[Replayed]:
    """Replay a trace in `directory`; return one row per process.

    Parameters
    ----------
    speed
        Work takes the traced time divided by this factor.
    """
    if not speed > 0.0:
        raise InputError(
            f"speed {speed:g} is not positive", remedy="give a number above 0"
        )
    names = _make_files(trace, directory)
    context = multiprocessing.get_context("fork")
    begin = time.monotonic() + _START_S
    running: dict[Connection, tuple[int, ForkProcess]] = {}
    try:
        for process, accesses in trace.by_process().items():
            receiver, sender = context.Pipe(duplex=False)
            arguments = (sender, accesses, names, begin, speed)
            child = context.Process(target=_run_process, args=arguments, daemon=True)
            child.start()
            sender.close()
            running[receiver] = (process, child)
        return sorted(_collect(running), key=lambda done: done.process)
    finally:
        for _, child in running.values():
            child.kill()
            child.join(timeout=_HEARTBEAT_S)


def _make_files(trace: Trace, directory: Path) -> dict[str, Path]:
    """Create every file of the trace; return the path of each."""
    names: dict[str, Path] = {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file in {access.file for access in trace.accesses}:
            # The digest of the path distinguishes two files with the same name.
            digest = sha256(file.encode()).hexdigest()[:8]
            names[file] = directory / f"{digest}-{Path(file).name[-100:]}"
            names[file].touch()
        for file, size in trace.sizes().items():
            if names[file].stat().st_size < size:
                os.truncate(names[file], size)
    except OSError as error:
        raise InputError(
            f"files cannot be created: {error.strerror}",
            where=str(directory),
            remedy="choose a writable folder with enough free space",
        ) from None
    return names


def _collect(running: dict[Connection, tuple[int, ForkProcess]]) -> list[Replayed]:
    """Return the results of all processes; raise `InputError` if one fails or hangs."""
    results = []
    progress_s = time.monotonic()
    waiting = dict(running)
    while waiting:
        readable = wait(list(waiting), timeout=_HEARTBEAT_S)
        ready = [c for c in waiting if c in readable]
        if not ready and time.monotonic() - progress_s > _SILENCE_S:
            raise InputError(
                f"no process has made progress for {_SILENCE_S:g} s",
                remedy="check whether the storage still responds",
            )
        for connection in ready:
            progress_s = time.monotonic()
            process, _ = waiting[connection]
            try:
                message = connection.recv()
            except EOFError:
                raise InputError(f"process {process} of the replay died") from None
            if isinstance(message, str):
                raise InputError(message, where=f"process {process}")
            if message is not None:
                results.append(message)
                del waiting[connection]
    return results


def _run_process(
    connection: Connection,
    accesses: Sequence[Access],
    names: dict[str, Path],
    begin: float,
    speed: float,
) -> None:
    """Replay one process of the trace; send its result or error message."""
    try:
        connection.send(_replay_accesses(connection, accesses, names, begin, speed))
    except OSError as error:
        connection.send(f"{error.filename}: {error.strerror}")


def _replay_accesses(
    connection: Connection,
    accesses: Sequence[Access],
    names: dict[str, Path],
    begin: float,
    speed: float,
) -> Replayed:
    """Make all accesses of a process at their times."""
    zeros = memoryview(bytes(max(access.size for access in accesses)))
    files: dict[str, int] = {}
    moved = {"read": 0, "write": 0}
    io_s, traced_end_s, reported_s = 0.0, 0.0, begin
    next_s = begin
    for access in accesses:
        next_s += max(0.0, access.start - traced_end_s) / speed
        traced_end_s = max(traced_end_s, access.end)
        while (left_s := next_s - time.monotonic()) > 0.0:
            time.sleep(min(left_s, _HEARTBEAT_S))
            reported_s = _report_progress(connection, reported_s)
        if access.file not in files:
            files[access.file] = os.open(names[access.file], os.O_RDWR)
        started_s = time.monotonic()
        try:
            moved[access.operation] += _move(files[access.file], access, zeros)
        except OSError as error:
            error.filename = f"{access.operation} of {access.file} at {access.offset}"
            raise
        next_s = time.monotonic()
        io_s += next_s - started_s
        reported_s = _report_progress(connection, reported_s)
    for descriptor in files.values():
        os.close(descriptor)
    return Replayed(
        process=accesses[0].process,
        read=moved["read"],
        written=moved["write"],
        io_s=io_s,
        traced_io_s=sum(access.end - access.start for access in accesses),
        duration_s=time.monotonic() - begin,
    )


def _report_progress(connection: Connection, reported_s: float) -> float:
    """Send a heartbeat if the last one is old; return the time of the last one."""
    now = time.monotonic()
    if now - reported_s < _HEARTBEAT_S:
        return reported_s
    connection.send(None)
    return now


def _move(descriptor: int, access: Access, zeros: memoryview) -> int:
    """Make one access, in several calls if needed; return the moved bytes."""
    done = 0
    while done < access.size:
        position = access.offset + done
        if access.operation == "read":
            count = len(os.pread(descriptor, access.size - done, position))
        else:
            count = os.pwrite(descriptor, zeros[: access.size - done], position)
        if count == 0:
            break
        done += count
    return done
