# SPDX-License-Identifier: MIT
"""Replay a trace as real I/O: one process for every process of the trace.

Time outside I/O is work: after an access a process waits as long as the traced one did,
divided by the speed, and then makes the next access, however long the last one took.
All start together. Files are made under one directory and given the size that is read
of them; what is written is zeros.
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

#: Between the last start of a process and the first access of any (s).
_START_S: Final = 0.2
#: No process of a replay is silent for longer, unless the storage has stopped.
_SILENCE_S: Final = 600.0
_HEARTBEAT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one process did in the trace and in its replay."""

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
    """Carry out a trace in `directory`; return what happened, by process.

    Parameters
    ----------
    speed
        Work is so many times shorter than it was.
    """
    if not speed > 0.0:
        raise InputError(f"speed {speed:g} is not positive")
    names = _make_files(trace, directory)
    context = multiprocessing.get_context("fork")
    begin = time.monotonic() + _START_S
    running: dict[Connection, tuple[int, ForkProcess]] = {}
    try:
        for process, accesses in trace.by_process().items():
            ours, theirs = context.Pipe(duplex=False)
            arguments = (theirs, accesses, names, begin, speed)
            child = context.Process(target=_work, args=arguments, daemon=True)
            child.start()
            theirs.close()
            running[ours] = (process, child)
        return sorted(_collect(running), key=lambda done: done.process)
    finally:
        for _, child in running.values():
            child.kill()
            child.join(timeout=_HEARTBEAT_S)


def _make_files(trace: Trace, directory: Path) -> dict[str, Path]:
    """Make every file of the trace; return where each is."""
    names: dict[str, Path] = {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file in {access.file for access in trace.accesses}:
            # Two files of one name are told apart by their paths' digests.
            digest = sha256(file.encode()).hexdigest()[:8]
            names[file] = directory / f"{digest}-{Path(file).name[-100:]}"
            names[file].touch()
        for file, size in trace.sizes().items():
            if names[file].stat().st_size < size:
                os.truncate(names[file], size)
    except OSError as error:
        raise InputError(
            f"files cannot be made there: {error.strerror}",
            where=str(directory),
            remedy="name a folder with room, that you can write",
        ) from None
    return names


def _collect(running: dict[Connection, tuple[int, ForkProcess]]) -> list[Replayed]:
    """Wait for what the processes say; a silent or dead one ends the replay."""
    results = []
    heard = time.monotonic()
    waiting = dict(running)
    while waiting:
        spoken = wait(list(waiting), timeout=_HEARTBEAT_S)
        ready = [c for c in waiting if c in spoken]
        if not ready and time.monotonic() - heard > _SILENCE_S:
            raise InputError(
                f"no process has made progress for {_SILENCE_S:g} s",
                remedy="does the storage answer?",
            )
        for connection in ready:
            heard = time.monotonic()
            process, _ = waiting[connection]
            try:
                said = connection.recv()
            except EOFError:
                raise InputError(f"process {process} of the replay died") from None
            if isinstance(said, str):
                raise InputError(said, where=f"process {process}")
            if said is not None:
                results.append(said)
                del waiting[connection]
    return results


def _work(
    connection: Connection,
    accesses: Sequence[Access],
    names: dict[str, Path],
    begin: float,
    speed: float,
) -> None:
    """Be one process of the trace."""
    try:
        connection.send(_carry_out(connection, accesses, names, begin, speed))
    except OSError as error:
        connection.send(f"{error.filename}: {error.strerror}")


def _carry_out(
    connection: Connection,
    accesses: Sequence[Access],
    names: dict[str, Path],
    begin: float,
    speed: float,
) -> Replayed:
    zeros = memoryview(bytes(max(access.size for access in accesses)))
    files: dict[str, int] = {}
    moved = {"read": 0, "write": 0}
    in_io, before, told = 0.0, 0.0, begin
    ready = begin
    for access in accesses:
        ready += max(0.0, access.start - before) / speed
        before = max(before, access.end)
        while (left := ready - time.monotonic()) > 0.0:
            time.sleep(min(left, _HEARTBEAT_S))
            told = _tell(connection, told)
        if access.file not in files:
            files[access.file] = os.open(names[access.file], os.O_RDWR)
        started = time.monotonic()
        try:
            moved[access.operation] += _move(files[access.file], access, zeros)
        except OSError as error:
            error.filename = f"{access.operation} of {access.file} at {access.offset}"
            raise
        ready = time.monotonic()
        in_io += ready - started
        told = _tell(connection, told)
    for descriptor in files.values():
        os.close(descriptor)
    return Replayed(
        process=accesses[0].process,
        read=moved["read"],
        written=moved["write"],
        io_s=in_io,
        traced_io_s=sum(access.end - access.start for access in accesses),
        duration_s=time.monotonic() - begin,
    )


def _tell(connection: Connection, told: float) -> float:
    """Say now and then that there is progress; return when it was said."""
    now = time.monotonic()
    if now - told < _HEARTBEAT_S:
        return told
    connection.send(None)
    return now


def _move(descriptor: int, access: Access, zeros: memoryview) -> int:
    """Make one access, in as many calls as it takes; return the bytes moved."""
    done = 0
    while done < access.size:
        place = access.offset + done
        if access.operation == "read":
            count = len(os.pread(descriptor, access.size - done, place))
        else:
            count = os.pwrite(descriptor, zeros[: access.size - done], place)
        if count == 0:
            break
        done += count
    return done
