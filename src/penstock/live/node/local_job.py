# SPDX-License-Identifier: MIT
"""A job on one node: its page, its processes, and a note beside the page.

The note is a file with all that a later agent needs to reopen the page. A job is over
when all its attached processes have ended; a job that the batch system has registered
is over when its page is removed. Processes that outlive the job run without a limit.

The page file belongs to the user of the job, so its contents may be wrong. A page that
is damaged raises `SharedFileError`.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from penstock.errors import InputError
from penstock.live.node.backing import ClaimedBytes
from penstock.live.node.bypass import ROUNDING_BYTES, WrittenBytes
from penstock.live.node.in_flight import IN_FLIGHT_S, CallsInFlight
from penstock.live.node.pages.page import (
    Announced,
    Bucket,
    Counters,
    IoClass,
    Mode,
    Page,
    PageState,
    Staged,
)
from penstock.live.node.pages.room import PageRoom
from penstock.live.node.pages.shared_file import SharedFileError
from penstock.live.staging.drainers import Drainer, Leftover
from penstock.live.wire.identity import is_operator, process_start_ticks
from penstock.live.wire.messages import (
    AgentConfig,
    JobCounters,
    JobJoined,
    Partition,
)
from penstock.live.wire.subordinates import owner_of

__all__ = ["Bypass", "JobActivity", "JobNote", "LocalJob", "find_bypass"]

_MODES: Final = {"control": Mode.CONTROL, "dry-run": Mode.DRY_RUN, "off": Mode.OFF}


#: Least time between two looks whether the writer of a part has ended (s).
_LOOK_S: Final = 5.0
#: Most processes of one user that are measured at a time; attached ones always are.
_MOST_MEASURED: Final = 2000


class JobNote(msgspec.Struct):
    """The contents of the note beside a page, stored as JSON.

    The quoted names are the keys in the file, which agents of other versions read.
    """

    job_key: str = msgspec.field(name="job")
    """``user id:job name``."""
    user: int
    """User id of the owner."""
    group: int
    """Group id of the owner."""
    nodes: int
    """Number of nodes of the job; 0: unknown."""
    volume_bytes: float = msgspec.field(name="volume")
    """Volume of each operation; 0: unknown."""
    account: str = ""
    """Account that the batch system charges."""
    registered: bool = False
    """True if the batch system decides when the job is over."""
    bell_slot: int = 0
    """Slot of the page in the bell of the user (`Bell`)."""
    processes: dict[int, int] = msgspec.field(default_factory=dict, name="members")
    """Process id -> start of the process (clock ticks after boot)."""
    storage: str = ""
    """Name of the file system of its folder: see `file_system`."""
    priority: float = 0.0
    """Priority that its user has given it."""
    qos: str = ""
    """Quality of service that the batch system has given it."""
    work_s: float = 0.0
    """Time for which it computes between two operations; 0: unknown."""
    history_name: str = ""
    """Name that jobs like it have in the batch system; "": its own name tells."""
    targets: tuple[str, ...] = ()
    """Names of the storage targets that the controller has given it."""
    several_nodes: bool = False
    """True if its user claims more than one node, or the controller has seen it."""


class JobActivity(NamedTuple):
    """What a job on this node has begun and not ended."""

    phases: int
    """Number of announced I/O phases that have not ended."""
    staged_bytes: int
    """Staged data that are not drained."""
    quiet_s: float
    """Time without a call (s)."""
    idle_s: float
    """The same; 0 while a phase is open or data are staged (s)."""


class Bypass(NamedTuple):
    """What a measurement of bypassed control has found, and what it took.

    Parameters
    ----------
    job_keys
        Jobs that have moved more bytes without control than before.
    spent_s
        User id -> processor time for the jobs of this user (s).
    """

    job_keys: list[str]
    spent_s: dict[int, float]


class LocalJob:
    """A job on this node and its page.

    Parameters
    ----------
    note
        The contents of the note.
    page
        The page, open; `close` closes it.
    """

    def __init__(self, note: JobNote, page: Page) -> None:
        self.note = note
        self.page = page
        self.may_operate = True
        """False if no operation is going on and none has just ended."""
        self.report_due_s = inf
        """When its counters are due to be reported (s, monotonic)."""
        self.turn_s = inf
        """When it may be looked at, if it has asked for that; inf: it has not (s)."""
        self.has_staged = False
        """True if its writes were staged: processes of the daemon write them later."""
        self.problem = ""
        """What is wrong with the job and belongs into the log; empty: nothing."""
        self.idle_reports = 0
        """Number of reports since something last happened."""
        self.must_merge = False
        """True if data may be in parts and the job has got a second node."""
        self._in_flight = CallsInFlight()
        self._written = WrittenBytes()
        #: Bytes that the kernel may have counted for controlled calls.
        self._controlled_bytes = 0
        self._uncontrolled_bytes = 0.0
        #: What `measure_bypass` found last. Its thread writes it.
        self._kernel_bytes = 0
        self._claims = ClaimedBytes()
        self._claimed_bytes = 0.0
        #: Number of processes that have ended, and how many of them a check knew of.
        self._ends = self._checked_ends = 0
        self._drainer = Drainer(page.path, note.user, note.group)
        self._staged_bytes, self._drained_bytes, self._drained_s = 0, 0, -inf
        #: True if data may be in parts, and when its parts were last looked at (s).
        self._has_parts, self._looked_s = False, -inf
        self._closed = False

    @classmethod
    def create(
        cls,
        folder: Path,
        note: JobNote,
        room: PageRoom | None = None,
    ) -> Self:
        """Create a page that only the user of the job can map."""
        room = room or PageRoom.of_this_process()
        path = folder / f"{sha256(note.job_key.encode()).hexdigest()[:20]}.page"
        room.remove(path)
        page = Page.create(path, take_spare=partial(room.take_spare, note.user))
        try:
            if note.user != os.geteuid():
                os.chown(path, note.user, note.group)
            page.set_bell(note.user, note.bell_slot)
        except (OSError, SharedFileError):
            page.close()
            _remove(path, room)
            raise
        return cls(note, page)

    @classmethod
    def reopen(cls, path: Path, room: PageRoom | None = None) -> Self | None:
        """Reopen the page; delete it and return None if it is no longer valid."""
        try:
            data = path.with_suffix(".note").read_bytes()
            note = msgspec.json.decode(data, type=JobNote)
            note.processes = {
                pid: start
                for pid, start in note.processes.items()
                if process_start_ticks(pid) == start
            }
            job = cls(note, Page.open(path))
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, InputError):
            _remove(path, room or PageRoom.of_this_process())
            return None
        job.has_staged = True  # a former agent may have ordered it
        return job

    @property
    def key(self) -> str:
        """``user id:job name``."""
        return self.note.job_key

    def joined_message(self) -> JobJoined:
        """Return the message that tells the controller of the job."""
        note = self.note
        group = note.account or str(note.group)
        return JobJoined(
            note.job_key,
            note.user,
            group,
            note.nodes,
            note.volume_bytes,
            note.storage,
            note.priority,
            note.qos,
            note.work_s,
            note.history_name,
            note.targets,
            note.several_nodes,
        )

    @property
    def is_over(self) -> bool:
        """True if all processes have ended, or the batch system removed the page."""
        if self.note.registered:
            return self.page.is_removed
        return not self.note.processes

    # --- Processes --------------------------------------------------------------------

    def add(self, pid: int, start: int) -> None:
        """Add a process to the job; `start`: see `process_start_ticks`."""
        if self.note.processes.get(pid) != start:
            self._written.add(pid, start)
            self.note.processes[pid] = start
            self._save()

    def register(self, account: str, nodes: int) -> None:
        """Record that the batch system has registered the job."""
        self.note.account, self.note.nodes = account, nodes
        self.note.registered = True
        self._save()

    def announce(self, hints: JobNote) -> bool:
        """Take what a program of the job announces; return True if that is new.

        As with nice(1), users may only lower the priority of their jobs.
        """
        note = self.note
        before = self._announced
        note.volume_bytes = hints.volume_bytes or note.volume_bytes
        note.work_s = hints.work_s or note.work_s
        if hints.priority < note.priority or is_operator(note.user):
            note.priority = hints.priority or note.priority
        note.several_nodes = hints.several_nodes or note.several_nodes
        is_new = before != self._announced
        if is_new:
            self._save()
        return is_new

    @property
    def _announced(self) -> tuple[float, float, float, bool]:
        note = self.note
        return note.volume_bytes, note.work_s, note.priority, note.several_nodes

    def remove(self, pid: int, start: int) -> None:
        """Remove a process that has ended, unless another one has its number now.

        What it has left in parts can be merged at once (`orphaned_parts`). `start` is
        when it started (clock ticks after boot).
        """
        self._ends += 1
        self._looked_s = -inf
        processes = self.note.processes
        if processes.get(pid) == start:
            del processes[pid]
            if not self.is_over:
                self._save()

    def _save(self) -> None:
        path = self.page.path.with_suffix(".note")
        fresh = path.with_suffix(".new")
        # If this fails, only a later agent is affected: it cannot reopen the page.
        try:
            fresh.write_bytes(msgspec.json.encode(self.note))
            fresh.replace(path)
        except OSError:
            with suppress(OSError):
                fresh.unlink()

    # --- The page ---------------------------------------------------------------------

    def apply(self, config: AgentConfig, lease_s: float) -> None:
        """Write the configuration of the agent into the page.

        This includes the floor, and a lease of `lease_s` from now for processes that
        cannot map the bell.
        """
        page = self.page
        page.renew(lease_s, floor=config.floor)
        page.gap_s = config.gap_s
        page.share(reads=Bucket.MAIN if config.reads else None)
        page.free_memory(
            cached_reads=config.free_cached_reads,
            absorbed_writes=config.free_absorbed_writes,
        )
        if page.mode != _MODES[config.mode]:
            page.mode = _MODES[config.mode]
        self.may_operate = config.mode != "off"

    def place(self, partition: Partition) -> None:
        """Say on which storage targets its new files are, to the page and the note.

        A later controller, which has to give it targets, learns of them from the note,
        and that the job has more than one node: then the number is 0.
        """
        is_new_node = partition.number == 0 and self.page.partition != 0
        self.page.place(partition)
        self.must_merge = is_new_node and self.page.staged.redirected_bytes > 0
        has_nodes = self.note.several_nodes or partition.number == 0
        if (partition.targets, has_nodes) != (
            self.note.targets,
            self.note.several_nodes,
        ):
            self.note.targets, self.note.several_nodes = partition.targets, has_nodes
            self._save()

    def read_counters(self, gap_s: float, *, reads: bool) -> JobCounters:
        """Return the counters of the page, and update `may_operate`.

        Parameters
        ----------
        gap_s
            Silence that ends an operation (s).
        reads
            Whether reads are controlled; if not, they are not counted.
        """
        classes = (IoClass.WRITE, IoClass.READ) if reads else (IoClass.WRITE,)
        # Before the look at the page: see `_note_bypass`.
        kernel_bytes = self._kernel_bytes
        state = self.page.look()
        calls = [state.calls[kind] for kind in classes]
        self._note_writes(calls[0], state.staged)
        now_s = time.monotonic()
        quiet_s = self._in_flight.quiet_time(calls, now_s, gap_s, self.note.processes)
        self._note_bypass(kernel_bytes, calls[0], quiet_s)
        activity = self._activity(state, quiet_s, now_s)
        # Twice the gap: if the report of the end is lost, another one follows.
        self.may_operate = activity.idle_s < 2.0 * gap_s
        return self._counters(state, calls, activity)

    def _activity(self, state: PageState, quiet_s: float, now_s: float) -> JobActivity:
        """Return what the job has begun and not ended, after `quiet_s` without a call.

        If nothing has happened for long, open phases and staged bytes are ignored: the
        process that was to end them was killed.
        """
        announced = state.announced
        if not (
            state.calls[IoClass.DRAIN].waiting_calls > 0
            or self._was_active(quiet_s, announced, state.staged, now_s)
        ):
            return JobActivity(0, 0, quiet_s, quiet_s)
        phases = max(announced.begun - announced.ended, 0)
        idle_s = 0.0 if phases or self._staged_bytes else quiet_s
        return JobActivity(phases, self._staged_bytes, quiet_s, idle_s)

    def _counters(
        self, state: PageState, calls: list[Counters], activity: JobActivity
    ) -> JobCounters:
        """Return the message with the counters; `calls`: writes, then reads if any."""
        drains, staged = state.calls[IoClass.DRAIN], state.staged
        reads, writes = calls[1:], [calls[0], drains]
        read_bytes, written_bytes, merged_bytes = self._backed_bytes(
            reads, writes, staged
        )
        return JobCounters(
            job_key=self.key,
            operations_begun=state.operations_begun,
            moved_bytes=read_bytes + written_bytes,
            held_up_s=sum(c.held_up_s for c in (*calls, drains)),
            would_hold_up_s=sum(c.would_hold_up_s for c in (*calls, drains)),
            waiting=any(c.waiting_calls for c in calls),
            idle_s=activity.idle_s,
            bypass_setups=state.bypass_setups,
            uncontrolled_bytes=self._uncontrolled_bytes,
            announced_bytes=float(state.announced.volume_bytes),
            phases=activity.phases,
            staged_bytes=float(activity.staged_bytes),
            quiet_s=activity.quiet_s,
            read_bytes=read_bytes,
            written_bytes=written_bytes + merged_bytes,
            unbacked=not self._claims.is_backed,
            read_busy_s=sum(c.busy_s for c in reads),
            written_busy_s=sum(c.busy_s for c in writes),
            processes=self._written.process_count,
            write_calls=calls[0].ended_calls,
            redirected_bytes=float(staged.redirected_bytes),
            merged_bytes=merged_bytes,
            pauses=calls[0].pauses,
            paused_s=calls[0].paused_s,
            can_stage=state.has_journals,
        )

    def _backed_bytes(
        self, reads: list[Counters], writes: list[Counters], staged: Staged
    ) -> tuple[float, ...]:
        """Return the bytes read, written and merged that the page may claim.

        `writes` are the writes of the job and then its drains. Keep the sum of the
        claims, which `measure_bypass` compares with what the kernel has counted. The
        processes of the job do not drain staged data, so drains are not their claim.
        """
        read_bytes = float(sum(c.moved_bytes for c in reads))
        written_bytes = float(sum(c.moved_bytes for c in writes))
        merged_bytes = float(staged.merged_bytes)
        self._claimed_bytes = read_bytes + written_bytes + merged_bytes
        if self.has_staged:
            self._claimed_bytes -= writes[-1].moved_bytes
        return self._claims.credit((read_bytes, written_bytes, merged_bytes))

    def _note_writes(self, writes: Counters, staged: Staged) -> None:
        """Keep what writes moved, and what of it is not in its file yet."""
        self._controlled_bytes = (
            writes.moved_bytes
            + writes.memory_bytes
            + staged.absorbed_bytes
            + staged.merged_bytes
            + ROUNDING_BYTES * writes.ended_calls
        )
        self._staged_bytes = max(staged.absorbed_bytes - staged.drained_bytes, 0)
        self._has_parts = staged.redirected_bytes != staged.merged_bytes
        if staged.refused_files:
            # The details are in the log of the journal folder, which may be missing.
            self.problem = (
                f"job {self.key}: some files cannot be staged and are written directly "
                "(check that its journal folder exists, is writable and has free space)"
            )

    def _was_active(
        self, quiet_s: float, announced: Announced, staged: Staged, now_s: float
    ) -> bool:
        """Return True if a call, an announcement or a drain happened recently."""
        if staged.drained_bytes != self._drained_bytes:
            self._drained_bytes, self._drained_s = staged.drained_bytes, now_s
        latest_s = max(announced.last_s, self._drained_s)
        return min(quiet_s, now_s - latest_s) < IN_FLIGHT_S

    def keep_draining(self, may_start: Callable[[], bool] = lambda: True) -> None:
        """Keep a drainer running as long as data is staged.

        One that has to be started is if `may_start` returns True.
        """
        folder = self.page.journal_folder if self._staged_bytes else None
        if folder is not None and self._drainer.may_start and may_start():
            self._drainer.keep(folder, dict(self.note.processes))

    def measure_bypass(self, processes: Sequence[int], most: float = inf) -> bool:
        """Measure the bytes that the kernel has counted, of at most `most` processes.

        Return True if more of them than before may not have been controlled:
        `read_counters` decides. This takes long if there are many processes; call it in
        a separate thread.
        """
        # Before the kernel is asked: what is claimed later is not judged yet.
        claimed_bytes, ends = self._claimed_bytes, self._ends
        self._kernel_bytes = self._written.measure(processes, most)
        if not is_operator(self.note.user):
            has_ends = ends != self._checked_ends
            certain = bool(processes) and self._written.is_complete and not has_ends
            self._claims.check(
                claimed_bytes, self._written.called_bytes, certain=certain
            )
        self._checked_ends = ends
        known_bytes = self._controlled_bytes + self._uncontrolled_bytes
        return self._kernel_bytes > known_bytes

    def _note_bypass(self, kernel_bytes: int, writes: Counters, quiet_s: float) -> None:
        """Note the bytes that the kernel has counted and control has not.

        The kernel counts the bytes of a call before the page does. So they are compared
        only if `kernel_bytes` was measured before the page was read, and no call was in
        the kernel then: a call in flight waits for its grant, or was killed.
        """
        in_flight = writes.begun_calls - writes.ended_calls - writes.waiting_calls
        if in_flight > 0 and quiet_s == 0.0:
            return
        uncontrolled_bytes = float(kernel_bytes - self._controlled_bytes)
        self._uncontrolled_bytes = max(self._uncontrolled_bytes, uncontrolled_bytes)

    def leftovers(
        self, *, only_orphans: bool = False, merges_living: bool = False
    ) -> list[Leftover]:
        """Return the journal folder that ended processes may have left data in.

        See `Leftover` for the parameters.
        """
        with suppress(SharedFileError, OSError):
            folder, note = self.page.journal_folder, self.note
            if folder is not None:
                owner = (note.user, note.group, self.page.file_id)
                return [Leftover(folder, *owner, only_orphans, merges_living)]
        return []

    def orphaned_parts(self, now_s: float) -> list[Leftover]:
        """Return where to look for parts whose writers have ended.

        Nothing if data are in no part, or after a look within `_LOOK_S`.
        """
        if not self._has_parts or now_s - self._looked_s < _LOOK_S:
            return []
        self._looked_s = now_s
        return self.leftovers(only_orphans=True)

    def close(self, *, remove: bool = False, room: PageRoom | None = None) -> None:
        """Remove the limit and stop serving the page.

        With `remove`, delete the page and its note as well; `room` then watches a page
        that its user still has open.
        """
        if not self._closed:
            with suppress(SharedFileError):
                self.page.grant(inf)
        if remove:
            _unlink(self.page.path)
        if remove and room is not None:
            room.keep_removed(self.note.user, self.page.file)
        self._closed = True
        self.page.close()


def _remove(path: Path, room: PageRoom) -> None:
    """Remove a page of any contents and its note; `room` watches the page."""
    with suppress(OSError):
        room.remove(path)
        _unlink(path)


def _unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
        path.with_suffix(".note").unlink(missing_ok=True)


def find_bypass(
    jobs: list[tuple[LocalJob, list[int]]],
    owner_of: Callable[[int], int] = owner_of,
) -> Bypass:
    """Measure jobs: which of them have moved more bytes without control than before.

    The jobs of one owner share the processes that are measured at a time.
    """
    jobs_of = Counter(owner_of(job.note.user) for job, _ in jobs)
    found: list[str] = []
    spent_s: dict[int, float] = {}
    for job, processes in jobs:
        user, begun_s = job.note.user, time.thread_time()
        share = _MOST_MEASURED / jobs_of[owner_of(user)]
        most = inf if is_operator(user) else share
        if job.measure_bypass(processes, max(most, len(processes))):
            found.append(job.key)
        spent_s[user] = spent_s.get(user, 0.0) + time.thread_time() - begun_s
    return Bypass(found, spent_s)
