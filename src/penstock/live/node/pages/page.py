# SPDX-License-Identifier: MIT
"""The page: the memory that the processes of a job share with the agent of their node.

``native/shim/page.h`` defines the page: the layout, the equations of pacing, and which
side writes which word; `penstock.live.node.pages.page_layout` has the same layout. This
module is the agent's side. It publishes grants, leases and modes, and reads counters.

A bucket grants bytes along the curve ``G(t) = G0 + rate (t - t0)`` and counts the bytes
charged to it. The preload library lets a call return when the curve has reached the
finish tag of the call. A new grant continues the curve in force, so the debt of a job
stays and is served at the new rate.

The page is a `SharedFile`: its user can damage it, which raises `SharedFileError`.

Times are ``CLOCK_MONOTONIC``. Rates are in bytes per second; the page scales them.
"""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable
from ctypes import c_uint32, c_uint64
from pathlib import Path
from struct import Struct
from typing import Any, Final, NamedTuple, Self

from penstock.live.node.pages.page_layout import (
    FOLDER_KNOWN,
    FOLDER_UNKNOWN,
    LEASE_MAX_S,
    MAGIC,
    NO_BUCKET,
    PART_FOLDER_BYTES,
    PART_ROOTS_BYTES,
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
    lease_end_ns,
    rate_word,
)
from penstock.live.node.pages.shared_file import SharedFile, SharedFileError
from penstock.live.wire.messages import Partition

__all__ = [
    "LEASE_MAX_S",
    "Announced",
    "Bucket",
    "Counters",
    "IoClass",
    "Mode",
    "Page",
    "PageState",
    "Staged",
]

#: Silence that ends an operation (s), on a page without an agent. An agent writes its
#: own value into the page: the setting `gap` of the daemon, by default 50 ms.
GAP_S: Final = 0.1
#: Unused grant that a call may use, as a time (s): neither a late wake-up nor a call of
#: another job that the storage serves first costs bandwidth (1 MiB at 5 MB/s: 0.2 s).
CREDIT_S: Final = 0.25
#: Debt that is carried over to the next call instead of slept, as a time (s).
SLACK_S: Final = 0.002

#: No job moves more on one node: 10 GB/s for three years. A larger counter is false.
_MOST_BYTES: Final = 1 << 60
#: A waiting call renews its heartbeat every 20 ms; with an older one it was killed.
_HEARTBEAT_STALE_NS: Final = 200_000_000
#: A file is this old at most, as the page has it.
_LONGEST_AGE_MS: Final = 2**32 - 1
#: `ClassWords`, all words at once: a look at a page reads every one of them.
_CLASS: Final = Struct("=16Q")


class Counters(NamedTuple):
    """The counters of one class of calls since the page was created.

    Parameters
    ----------
    begun_calls, ended_calls
        Numbers of calls. The difference is in flight, or was killed during the call.
    moved_bytes
        Bytes that the kernel took from calls or gave to them.
    memory_bytes
        The same for calls that did not reach the storage (`Page.free_memory`); they are
        not part of `moved_bytes`.
    busy_s
        Time inside calls that reached the storage, summed over callers (s), without
        the time that they were held up. Syncs and closes count as writing.
    held_up_s
        Time that calls were held up, summed over callers (s).
    would_hold_up_s
        Time for which a dry run would have held them up, summed over callers (s).
    waiting_calls
        Calls that wait now. A call that was killed while it waited is counted as long
        as other calls wait.
    last_active_s, resumed_s
        Monotonic time of the latest activity (it may lag by one clock tick), and of the
        first call after a gap (s); 0 if there was none.
    pauses, paused_s
        Number of gaps inside phases that the program has announced, in which no call
        began or ended, and their length (s).
    """

    begun_calls: int
    ended_calls: int
    moved_bytes: int
    memory_bytes: int
    busy_s: float
    held_up_s: float
    would_hold_up_s: float
    waiting_calls: int
    last_active_s: float
    resumed_s: float
    pauses: int = 0
    paused_s: float = 0.0


class Staged(NamedTuple):
    """The counters of staging since the page was created.

    Parameters
    ----------
    absorbed_bytes, drained_bytes
        Bytes written into journals, and from journals into files. Draining is counted
        and paced as writing.
    refused_files
        Files that could not be staged; the log in the journal folder says why.
    redirected_bytes, merged_bytes
        Bytes written into parts, and copied from parts into files. The former count as
        moved, the latter do not; both are paced.
    """

    absorbed_bytes: int
    drained_bytes: int
    refused_files: int
    redirected_bytes: int = 0
    merged_bytes: int = 0


class Announced(NamedTuple):
    """Phases that the program has announced; see ``native/shim/penstock.h``.

    Parameters
    ----------
    volume_bytes
        Announced volume of all phases so far.
    begun, ended
        Numbers of phases. The difference is under way, or its process was killed.
    last_s
        Monotonic time of the latest announcement (s); 0 if there was none.
    """

    volume_bytes: int
    begun: int
    ended: int
    last_s: float


class PageState(NamedTuple):
    """What the processes have written into a page.

    Parameters
    ----------
    operations_begun
        Number of operations begun, modulo 2^32.
    calls
        The counters of each class of calls, by `IoClass`.
    announced
        The phases that the program has announced.
    staged
        The counters of staging.
    bypass_setups
        Number of set-ups seen of io_uring and libaio, which cannot be controlled.
    has_journals
        Whether a process has a folder for journals.
    """

    operations_begun: int
    calls: tuple[Counters, ...]
    announced: Announced
    staged: Staged
    bypass_setups: int
    has_journals: bool


class Page:
    """A page; get one with `Page.create` or `Page.open`.

    If the file is removed, this object and the processes that map it can still use it.
    """

    def __init__(self, file: SharedFile) -> None:
        self.path = file.path
        self.file = file
        # Only for tests: reading it may raise SIGBUS.
        self._view = PageWords.from_address(file.address)

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        mode: Mode = Mode.CONTROL,
        take_spare: Callable[[Path, int], bool] = lambda _path, _size_bytes: False,
    ) -> Self:
        """Create a page that only this user can map: no lease, no limit, one bucket.

        See `SharedFile.create` for `take_spare`.
        """
        page = cls(SharedFile.create(path, SIZE, "page", take_spare))
        words = PageWords(version=VERSION, size=SIZE, mode=mode, floor_rate=UNLIMITED)
        words.gap_ns = round(GAP_S * 1e9)
        for bucket in words.buckets:
            bucket.curve[0].rate = UNLIMITED
            bucket.curve[0].check = check_word(bucket.curve[0])
        page._write(0, words)
        # The magic number last: until then, a process does not take it for a page.
        page._write(PageWords.magic.offset, c_uint64(MAGIC))
        return page

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing page, e.g. after a restart of the agent."""
        page = cls(SharedFile.open(path, SIZE, "page"))
        try:
            page._read()
        except SharedFileError:
            page.close()
            raise
        return page

    def _read(self) -> PageWords:
        """Return a copy of the page.

        Each word is right by itself; two words may be from different instants.
        """
        copy = PageWords.from_buffer_copy(self.file.read(ctypes.sizeof(PageWords)))
        if (copy.magic, copy.version, copy.size) != (MAGIC, VERSION, SIZE):
            raise self.file.damaged(f"not a page of version {VERSION}")
        return copy

    def _write(self, offset: int, words: Any) -> None:
        """Write `words`, a ctypes object, at an offset."""
        self.file.write(offset, words)

    @property
    def file_id(self) -> tuple[int, int]:
        """Device and inode of the file; journals refer to the page by these."""
        status = self.file.status
        return status.st_dev, status.st_ino

    @property
    def is_removed(self) -> bool:
        """True if no file has its name any more, or another one.

        The number of links does not tell: the user of a page can make more of them.
        The inode does: no other file gets it while this one is open.
        """
        try:
            named = self.path.lstat()
        except FileNotFoundError:
            return True
        return not os.path.samestat(named, self.file.status)

    def close(self) -> None:
        """Close the page; the file stays, and its lease ends by itself."""
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Words that the agent writes ----------------------------------------------

    @property
    def mode(self) -> Mode:
        """What the preload library does with calls."""
        return Mode(min(self._read().mode, max(Mode)))

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._write(PageWords.mode.offset, c_uint32(mode))

    def share(self, *, reads: Bucket | None = Bucket.MAIN) -> None:
        """Set the bucket that reads draw on; None: reads are not paced."""
        place = PageWords.bucket_of.offset + IoClass.READ * ctypes.sizeof(c_uint32)
        self._write(place, c_uint32(NO_BUCKET if reads is None else reads))

    def free_memory(self, *, cached_reads: bool, absorbed_writes: bool) -> None:
        """Set which calls are not charged because memory serves or takes them."""
        for word, free in (
            (PageWords.free_cached_reads, cached_reads),
            (PageWords.free_absorbed_writes, absorbed_writes),
        ):
            self._write(word.offset, c_uint32(free))

    def set_bell(self, user: int, slot: int) -> None:
        """Set the bell by which processes wake the agent (`Bell`); slot 0: none."""
        self._write(PageWords.bell_user.offset, c_uint32(user))
        self._write(PageWords.bell_slot.offset, c_uint32(slot))

    def renew(self, duration_s: float, *, floor: float = math.inf) -> None:
        """Let the grants hold for `duration_s` from now on.

        Afterwards each bucket is granted `floor` (bytes/s). For processes that have
        mapped the bell of the page, the lease of the bell holds instead.
        """
        end_ns = lease_end_ns(duration_s)
        # Two writes are enough: the old lease with the new floor does no harm.
        self._write(PageWords.floor_rate.offset, c_uint64(rate_word(floor)))
        self._write(PageWords.lease_ns.offset, c_uint64(end_ns))

    def grant(
        self,
        rate: float,
        *,
        bucket: Bucket = Bucket.MAIN,
        credit_s: float = CREDIT_S,
        slack_s: float = SLACK_S,
    ) -> None:
        """Grant `rate` (bytes/s) from now on; 0 pauses, infinity is no limit.

        The new curve continues the old one. If there was no limit, it starts at the
        bytes charged so far: no debt, no credit. Waiting calls see it within 20 ms.

        Parameters
        ----------
        rate
            The granted rate (bytes/s).
        bucket
            The bucket that is granted.
        credit_s, slack_s
            Credit and slack, as times at this rate (s); see ``native/shim/page.h``.
        """
        scaled_rate = rate_word(rate)
        finite_rate = 0.0 if math.isinf(rate) else rate
        now_ns = time.monotonic_ns()
        words = self._read().buckets[bucket]
        granted_bytes = granted_at(words, now_ns)
        curve = CurveWords(
            from_ns=now_ns,
            granted_bytes=(
                words.charged_bytes if granted_bytes is None else granted_bytes
            ),
            rate=scaled_rate,
            credit_bytes=round(finite_rate * credit_s),
            slack_bytes=round(finite_rate * slack_s),
        )
        curve.check = check_word(curve)
        number = words.grant_number + 1
        offset = PageWords.buckets.offset + bucket * ctypes.sizeof(BucketWords)
        spare = BucketWords.curve.offset + (number & 1) * ctypes.sizeof(CurveWords)
        self._write(offset + spare, curve)
        self._write(offset + BucketWords.grant_number.offset, c_uint32(number))

    def grant_number(self, bucket: Bucket = Bucket.MAIN) -> int:
        """Return the number of grants published so far, modulo 2^32."""
        return int(self._read().buckets[bucket].grant_number)

    def granted_bytes(self, bucket: Bucket = Bucket.MAIN) -> int | None:
        """Return the bytes granted until now, G(now); None without a limit."""
        return granted_at(self._read().buckets[bucket], time.monotonic_ns())

    def charged_bytes(self, bucket: Bucket = Bucket.MAIN) -> int:
        """Return the bytes charged; those beyond `granted_bytes` are debt."""
        return int(self._read().buckets[bucket].charged_bytes)

    @property
    def stages(self) -> bool:
        """True if writes are to be staged as long as the lease holds."""
        return bool(self._read().staging.mode)

    @stages.setter
    def stages(self, stages: bool) -> None:
        offset = PageWords.staging.offset + StagingWords.mode.offset
        self._write(offset, c_uint32(stages))

    @property
    def partition(self) -> int:
        """Number of the storage targets of the job's new files; 0: not known."""
        return int(self._read().staging.partition)

    def place(self, partition: Partition) -> None:
        """Say on which storage targets new files are: open ones are redirected there.

        Nothing is redirected if the paths do not fit into the page, and no file before
        it has the age of the partition.
        """
        staging, now = PageWords.staging.offset, self._read()
        folder = os.fsencode(partition.folder)
        roots = b":".join(map(os.fsencode, partition.roots))
        fits = len(folder) < PART_FOLDER_BYTES and len(roots) < PART_ROOTS_BYTES
        before = (now.part_folder, now.part_roots, now.staging.part_slots)
        number = staging + StagingWords.partition.offset
        if fits and before != (folder, roots, partition.slots):
            # The number is 0 meanwhile. A process that read it before compares it again
            # after it has read the other words.
            self._write(number, c_uint32(0))
            for offset, text, room in (
                (PageWords.part_folder.offset, folder, PART_FOLDER_BYTES),
                (PageWords.part_roots.offset, roots, PART_ROOTS_BYTES),
            ):
                self._write(offset, ctypes.create_string_buffer(text, room))
            slots = staging + StagingWords.part_slots.offset
            self._write(slots, c_uint32(partition.slots))
        age = staging + StagingWords.redirect_age_ms.offset
        age_ms = min(partition.redirect_age_s * 1e3, _LONGEST_AGE_MS)
        self._write(age, c_uint32(round(age_ms)))
        self._write(number, c_uint32(partition.number if fits else 0))

    # --- Words that the processes write -------------------------------------------

    def look(self) -> PageState:
        """Return what the processes have written."""
        # "Memory ordering" in page.h: `phases_ended` and `drained_bytes` come first,
        # so that they never exceed `phases_begun` and `absorbed_bytes`. An operation is
        # never reported before the bytes of the one that it follows.
        first, page = self._read(), self._read()
        now_ns, lines, staging = time.monotonic_ns(), page.classes, page.staging
        calls = tuple(_counters(words, now_ns) for words in _CLASS.iter_unpack(lines))
        staged = Staged(
            staging.absorbed_bytes,
            first.staging.drained_bytes,
            staging.refused_files,
            staging.redirected_bytes,
            staging.merged_bytes,
        )
        self._check_volumes(calls, staged)
        announced_s = page.announced_at_ns * 1e-9
        return PageState(
            first.operations_begun,
            calls,
            Announced(
                page.announced_bytes, page.phases_begun, first.phases_ended, announced_s
            ),
            staged,
            page.bypass_setups,
            staging.folder_state != FOLDER_UNKNOWN,
        )

    def _check_volumes(self, calls: tuple[Counters, ...], staged: Staged) -> None:
        """Refuse volumes that nobody can have moved."""
        most_bytes = max(
            staged.absorbed_bytes,
            staged.redirected_bytes,
            staged.merged_bytes,
            *[counters.moved_bytes for counters in calls],
        )
        if most_bytes > _MOST_BYTES:
            raise self.file.damaged(f"says that {most_bytes:.1e} bytes were moved")

    def counters(self, kind: IoClass) -> Counters:
        """Return the counters of one class of calls."""
        return self.look().calls[kind]

    @property
    def staged(self) -> Staged:
        """The counters of staging."""
        return self.look().staged

    @property
    def journal_folder(self) -> Path | None:
        """The folder of the journals; None if there is none or more than one."""
        page = self._read()
        if page.staging.folder_state != FOLDER_KNOWN:
            return None
        folder = Path(os.fsdecode(page.folder))
        return folder if folder.is_absolute() else None

    @property
    def announced(self) -> Announced:
        """The phases that the program has announced."""
        return self.look().announced

    @property
    def gap_s(self) -> float:
        """Silence that ends an operation (s)."""
        return float(self._read().gap_ns * 1e-9)

    @gap_s.setter
    def gap_s(self, gap_s: float) -> None:
        self._write(PageWords.gap_ns.offset, c_uint64(round(gap_s * 1e9)))

    @property
    def operations_begun(self) -> int:
        """Number of operations begun, modulo 2^32."""
        return self.look().operations_begun


def _counters(words: tuple[int, ...], now_ns: int) -> Counters:
    """Return the counters of one class of calls from its words (`ClassWords`)."""
    begun, ended, moved, memory, busy_ns, last_active_ns = words[:6]
    held_up_ns, waiting, heartbeat_ns, resumed_ns, would_ns, pauses, paused_ns = words[
        8:15
    ]
    is_stale = now_ns - heartbeat_ns > _HEARTBEAT_STALE_NS
    return Counters(
        begun,
        ended,
        moved,
        memory,
        busy_ns * 1e-9,
        held_up_ns * 1e-9,
        would_ns * 1e-9,
        0 if is_stale else waiting,
        max(last_active_ns, resumed_ns) * 1e-9,
        resumed_ns * 1e-9,
        pauses,
        paused_ns * 1e-9,
    )
