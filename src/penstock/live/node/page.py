# SPDX-License-Identifier: MIT
"""The page: what the processes of a job on one node share with the agent.

The layout is that of `penstock.live.node.page_layout`, the equations are in
``native/shim/page.h``. A bucket grants bytes by the curve
``G(t) = G0 + rate (t - t0)`` and
counts the bytes charged to it; the preload library lets a call return when the curve
has reached the call's finish tag. A grant published here continues the curve in force,
so that what a job owes stays owed, and is served at the new rate.

The page never waits and has no lock: one agent writes the grants, any number of
processes count. Times are ``CLOCK_MONOTONIC`` in nanoseconds, rates bytes per second.

Here the page is read and written through its descriptor: its file belongs to the user
of the job, who can shrink it, and who touches mapped memory that has gone from the file
is killed (SIGBUS). A page that is spoilt raises `PageError`; only the kernel looks at
the mapping, at the words to sleep on.
"""

from __future__ import annotations

import ctypes
import errno
import math
import mmap
import os
import stat
import time
from ctypes import Structure, c_uint32, c_uint64
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from penstock.errors import InputError
from penstock.live.node.page_layout import (
    FOLDER_KNOWN,
    MAGIC,
    NO_BUCKET,
    SIZE,
    UNLIMITED,
    VERSION,
    Bucket,
    BucketWords,
    CurveWords,
    IoClass,
    Mode,
    PageWords,
    StagingWords,
    check_word,
    granted_at,
    rate_word,
)

__all__ = [
    "LEASE_MAX_S",
    "Announced",
    "Bucket",
    "Counters",
    "IoClass",
    "Mode",
    "Page",
    "PageError",
    "Staged",
]

#: No lease is longer: the preload library believes none that is.
LEASE_MAX_S: Final = 60.0
#: A gap between calls longer than this ends a phase.
GAP_S: Final = 0.1
#: Unused grant, as a time, that a shorter gap keeps: late wake-ups cost nothing.
CREDIT_S: Final = GAP_S
#: Debt, as a time, that is carried to the next call rather than slept.
SLACK_S: Final = 0.002

_HEARTBEAT_STALE_NS: Final = 200_000_000
_FUTEX_WAIT: Final = 0
_FUTEX_WAKE: Final = 1
_SYS_FUTEX: Final = {"x86_64": 202, "aarch64": 98}.get(os.uname().machine)


class PageError(InputError):
    """A job's page was damaged, by its user or by a full disk."""


@dataclass(frozen=True)
class Counters:
    """What the calls of one class have done since the page was made.

    Parameters
    ----------
    begun_calls, ended_calls
        The difference is in flight (or was killed there).
    moved_bytes
        Bytes that the kernel took or gave.
    held_up_s
        Time that callers were held up, added over callers; in a dry run, the time
        that they would have been.
    waiting_calls
        Callers that sleep now. One that was killed in its sleep is counted as long
        as others sleep too.
    last_active_s, resumed_s
        Monotonic time of the latest activity (a clock tick early, at most), and of the
        first call of this class after a gap; 0 if there was none.
    """

    begun_calls: int
    ended_calls: int
    moved_bytes: int
    held_up_s: float
    waiting_calls: int
    last_active_s: float
    resumed_s: float


@dataclass(frozen=True)
class Staged:
    """What has been staged since the page was made.

    Parameters
    ----------
    absorbed_bytes, drained_bytes
        Bytes written into journals, and from journals into files by these processes;
        those are counted and paced as writes.
    refused_files
        Files that could not be staged: see the log in the folder of the journals.
    """

    absorbed_bytes: int
    drained_bytes: int
    refused_files: int


@dataclass(frozen=True)
class Announced:
    """What the program has said of its I/O phases; see ``native/shim/penstock.h``.

    Parameters
    ----------
    volume_bytes
        Bytes that it said it would move, in all phases so far.
    begun, ended
        Phases; the difference goes on (or its process was killed).
    last_s
        Monotonic time of the latest word; 0 if there was none.
    """

    volume_bytes: int
    begun: int
    ended: int
    last_s: float


class Page:
    """A page; make one with `Page.create` or `Page.open`.

    The file may be removed while it is served: who has the page keeps it.
    """

    def __init__(self, path: Path, descriptor: int, memory: mmap.mmap) -> None:
        self.path = path
        self._file = descriptor
        # For futexes and tests: to touch it is not safe.
        self._view = PageWords.from_buffer(memory)

    @classmethod
    def create(cls, path: Path, *, mode: Mode = Mode.CONTROL) -> Self:
        """Make a page that only this user can map: no lease, no limit, one bucket."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        page = cls(path, *_mapped(path, flags, fresh=True))
        made = PageWords(version=VERSION, size=SIZE, mode=mode, floor_rate=UNLIMITED)
        made.gap_ns = round(GAP_S * 1e9)
        for place in made.buckets:
            place.curve[0].rate = UNLIMITED
            place.curve[0].check = check_word(place.curve[0])
        page._put(0, made)
        # A process that maps the page before this line finds no page.
        page._put(PageWords.magic.offset, c_uint64(MAGIC))
        return page

    @classmethod
    def open(cls, path: Path) -> Self:
        """Take up a page that exists, e.g. after a restart of the agent."""
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        page = cls(path, *_mapped(path, flags, fresh=False))
        try:
            page._read()
        except PageError:
            page.close()
            raise
        return page

    def _read(self) -> PageWords:
        """Return a copy of the page as it is now."""
        try:
            data = os.pread(self._file, ctypes.sizeof(PageWords), 0)
        except OSError as error:
            raise self._spoilt(error.strerror or str(error)) from None
        if len(data) < ctypes.sizeof(PageWords):
            raise self._spoilt("its file was cut off")
        copy = PageWords.from_buffer_copy(data)
        if (copy.magic, copy.version, copy.size) != (MAGIC, VERSION, SIZE):
            raise self._spoilt(f"not a page of version {VERSION}")
        return copy

    def _put(self, offset: int, words: Any) -> None:
        """Write `words`, something of ctypes, at an offset."""
        try:
            os.pwrite(self._file, words, offset)
        except OSError as error:
            raise self._spoilt(error.strerror or str(error)) from None

    def _spoilt(self, reason: str) -> PageError:
        remedy = "remove it; its user or another version of penstock has changed it"
        return PageError(reason, where=str(self.path), remedy=remedy)

    @property
    def file_id(self) -> tuple[int, int]:
        """Device and inode of its file, by which journals name it."""
        status = os.fstat(self._file)
        return status.st_dev, status.st_ino

    @property
    def is_removed(self) -> bool:
        """Whether its file has no name any more."""
        return os.fstat(self._file).st_nlink == 0

    def close(self) -> None:
        """Let the page go; the file stays, and its lease ends by itself."""
        # The memory is unmapped with the last view of it.
        if self.__dict__.pop("_view", None) is not None:
            os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- What the agent grants ----------------------------------------------------

    @property
    def mode(self) -> Mode:
        """What the preload library does."""
        return Mode(min(self._read().mode, max(Mode)))

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._put(PageWords.mode.offset, c_uint32(mode))
        for bucket in Bucket:
            self._wake(bucket)

    def share(self, *, reads: Bucket | None = Bucket.MAIN) -> None:
        """Let reads draw on the writes' bucket, on their own, or on none (None)."""
        place = PageWords.bucket_of.offset + IoClass.READ * ctypes.sizeof(c_uint32)
        self._put(place, c_uint32(NO_BUCKET if reads is None else reads))

    def renew(self, duration_s: float, *, floor: float = math.inf) -> None:
        """Let the grants hold for `duration_s` seconds from now.

        Afterwards `floor` is granted, in bytes per second, to each bucket.
        """
        if not 0.0 <= duration_s <= LEASE_MAX_S:
            raise InputError(
                f"a lease of {duration_s!r} s",
                remedy=f"give 0 to {LEASE_MAX_S:g} s, and renew it in time",
            )
        end_ns = time.monotonic_ns() + round(duration_s * 1e9)
        # One after the other, for an old lease with a new floor is none the worse.
        self._put(PageWords.floor_rate.offset, c_uint64(rate_word(floor)))
        self._put(PageWords.lease_ns.offset, c_uint64(end_ns))

    def grant(
        self,
        rate: float,
        *,
        bucket: Bucket = Bucket.MAIN,
        credit_s: float = CREDIT_S,
        slack_s: float = SLACK_S,
    ) -> None:
        """Grant `rate` bytes per second from now on; 0 pauses, infinity is no limit.

        The new curve begins where the old one is now, or, if there was no limit, at
        what has been charged: the past is neither owed nor saved. Sleepers are woken
        and look at the new curve.
        """
        word = rate_word(rate)
        finite = 0.0 if math.isinf(rate) else rate
        now = time.monotonic_ns()
        place = self._read().buckets[bucket]
        granted = granted_at(place, now)
        curve = CurveWords(
            from_ns=now,
            granted_bytes=place.charged_bytes if granted is None else granted,
            rate=word,
            credit_bytes=round(finite * credit_s),
            slack_bytes=round(finite * slack_s),
        )
        curve.check = check_word(curve)
        number = place.grant_number + 1
        at = PageWords.buckets.offset + bucket * ctypes.sizeof(BucketWords)
        spare = BucketWords.curve.offset + (number & 1) * ctypes.sizeof(CurveWords)
        self._put(at + spare, curve)
        self._put(at + BucketWords.grant_number.offset, c_uint32(number))
        self._wake(bucket)

    def grant_number(self, bucket: Bucket = Bucket.MAIN) -> int:
        """Return how many grants were published, modulo 2^32."""
        return int(self._read().buckets[bucket].grant_number)

    def granted_bytes(self, bucket: Bucket = Bucket.MAIN) -> int | None:
        """Return what the curve has granted until now, or None without a limit."""
        return granted_at(self._read().buckets[bucket], time.monotonic_ns())

    def charged_bytes(self, bucket: Bucket = Bucket.MAIN) -> int:
        """Return what has been charged; beyond the curve, it is owed."""
        return int(self._read().buckets[bucket].charged_bytes)

    @property
    def stages(self) -> bool:
        """Whether writes are staged, as long as the lease holds."""
        return bool(self._read().staging.mode)

    @stages.setter
    def stages(self, stages: bool) -> None:
        at = PageWords.staging.offset + StagingWords.mode.offset
        self._put(at, c_uint32(stages))

    # --- What the processes did ---------------------------------------------------

    def counters(self, kind: IoClass) -> Counters:
        """Return what the calls of one class have done."""
        line = self._read().classes[kind]
        stale = time.monotonic_ns() - line.heartbeat_ns > _HEARTBEAT_STALE_NS
        return Counters(
            begun_calls=line.begun_calls,
            ended_calls=line.ended_calls,
            moved_bytes=line.moved_bytes,
            held_up_s=line.held_up_ns * 1e-9,
            waiting_calls=0 if stale else line.waiting_calls,
            last_active_s=max(line.last_active_ns, line.resumed_ns) * 1e-9,
            resumed_s=line.resumed_ns * 1e-9,
        )

    @property
    def staged(self) -> Staged:
        """What has been staged."""
        # What is drained first: nothing is seen to be drained before it is absorbed.
        drained = self._read().staging.drained_bytes
        staging = self._read().staging
        return Staged(staging.absorbed_bytes, drained, staging.refused_files)

    @property
    def journal_folder(self) -> Path | None:
        """The folder that programs stage into; None: none that is known, or several."""
        page = self._read()
        if page.staging.folder_state != FOLDER_KNOWN:
            return None
        folder = Path(os.fsdecode(page.folder))
        return folder if folder.is_absolute() else None

    @property
    def announced(self) -> Announced:
        """What the program has said of its I/O phases."""
        # The end first: a phase is never seen to end before it has begun.
        ended = self._read().phases_ended
        page = self._read()
        return Announced(
            page.announced_bytes, page.phases_begun, ended, page.announced_at_ns * 1e-9
        )

    @property
    def attached_processes(self) -> int:
        """Programs that have mapped the page so far."""
        return int(self._read().attached_processes)

    @property
    def bypass_setups(self) -> int:
        """Set-ups seen of I/O that cannot be controlled (io_uring, libaio)."""
        return int(self._read().bypass_setups)

    @property
    def gap_s(self) -> float:
        """Gap between calls, in seconds, that ends a phase."""
        return float(self._read().gap_ns * 1e-9)

    @gap_s.setter
    def gap_s(self, gap_s: float) -> None:
        self._put(PageWords.gap_ns.offset, c_uint64(round(gap_s * 1e9)))

    @property
    def posts(self) -> int:
        """I/O phases begun, modulo 2^32."""
        return int(self._read().posts)

    @property
    def phase_begin_s(self) -> float:
        """Monotonic time of the first call of the present I/O phase."""
        return float(self._read().phase_begin_ns * 1e-9)

    def wait_for_post(self, seen: int, timeout_s: float) -> int:
        """Sleep until `posts` differs from `seen`, or `timeout_s`; return `posts`."""
        limit = _Timespec(int(timeout_s), round(timeout_s % 1.0 * 1e9))
        _futex(self._address(PageWords.posts.offset), _FUTEX_WAIT, seen, limit)
        return self.posts

    def wake_watcher(self) -> None:
        """End the sleep of whoever waits for a post."""
        # Held here: the watcher may close the page meanwhile.
        view = self.__dict__.get("_view")
        if view is not None:
            word = ctypes.addressof(view) + PageWords.posts.offset
            _futex(word, _FUTEX_WAKE, 2**31 - 1, None)

    def _wake(self, bucket: Bucket) -> None:
        offset = PageWords.buckets.offset + bucket * ctypes.sizeof(BucketWords)
        _futex(self._address(offset), _FUTEX_WAKE, 2**31 - 1, None)

    def _address(self, offset: int) -> int:
        return ctypes.addressof(self._view) + offset


class _Timespec(Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_SYSCALL: Final = ctypes.CDLL(None).syscall


def _futex(address: int, operation: int, value: int, limit: _Timespec | None) -> None:
    # Refused by the kernel this only costs time: both sides look again on their own.
    # Nor does it mind a page that was cut off.
    if _SYS_FUTEX is not None:
        _SYSCALL(
            ctypes.c_long(_SYS_FUTEX),
            ctypes.c_void_p(address),
            ctypes.c_long(operation),
            ctypes.c_long(value),
            None if limit is None else ctypes.byref(limit),
        )


def _mapped(path: Path, flags: int, *, fresh: bool) -> tuple[int, mmap.mmap]:
    """Return the descriptor and the memory of a page."""
    descriptor = -1
    try:
        descriptor = os.open(path, flags, 0o600)
        if fresh:
            # Every block is there from now on: a full disk cannot kill who counts.
            os.posix_fallocate(descriptor, 0, SIZE)
        _refuse_other_files(path, os.fstat(descriptor))
        return descriptor, mmap.mmap(descriptor, SIZE)
    except BaseException as error:
        if descriptor >= 0:
            os.close(descriptor)
        if isinstance(error, OSError):
            raise _unmappable(path, error) from error
        raise


def _unmappable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot map the page: {os.strerror(error.errno or 0)}",
        where=str(path),
        remedy=_REMEDIES.get(error.errno or 0, "check the path"),
    )


_REMEDIES: Final = {
    errno.EEXIST: "another agent serves it, or remove it",
    errno.ENOENT: "make its folder first",
    errno.EACCES: "it belongs to another user",
    errno.ENOSPC: "free some space",
}


def _refuse_other_files(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_size != SIZE:
        raise InputError(
            f"not a page: it is no file of {SIZE} bytes",
            where=str(path),
            remedy="remove it",
        )
