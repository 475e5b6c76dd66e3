# SPDX-License-Identifier: MIT
"""A job on one node: its page, its processes, and the note beside the page.

The note is what the next agent needs to take the page up again. A job is over when all
the processes that entered have ended, and one that the batch system has registered when
its page is removed; what it has left behind goes on without control.

The page is the user's: whatever is in it may be wrong, and `PageError` says that it is
no page any more.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Final, Self

import msgspec

from penstock.errors import InputError
from penstock.live.node.bypass import WrittenBytes
from penstock.live.node.page import (
    Announced,
    Bucket,
    Counters,
    IoClass,
    Mode,
    Page,
    PageError,
    Staged,
)
from penstock.live.staging.drainers import Drainer, Leftover
from penstock.live.wire.messages import AgentConfig, JobCounters, JobJoined

__all__ = ["LocalJob", "Note", "started_at"]

#: A call that has been in flight for longer was killed there (s).
_IN_FLIGHT_S: Final = 30.0
#: How long the thread of a page sleeps at most (s).
_SLEEP_S: Final = 1.0
#: How long it rests after a post, whatever its user writes into the page (s).
_REST_S: Final = 0.001
_LOG: Final = logging.getLogger("penstock.agent")
_MODES: Final = {"control": Mode.CONTROL, "dry-run": Mode.DRY_RUN, "off": Mode.OFF}


class Note(msgspec.Struct):
    """What is kept beside a page."""

    job: str
    """The user's number, a colon and the name."""
    user: int
    group: int
    nodes: int
    volume: float
    account: str = ""
    """What the batch system charges for it."""
    registered: bool = False
    """Whether the batch system says when it is over."""
    members: dict[int, int] = {}
    """Process -> when it was started (clock ticks after boot)."""


def started_at(pid: int) -> int | None:
    """Return when a process was started (clock ticks after boot); None if it ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


class LocalJob:
    """A page that is being served.

    Parameters
    ----------
    on_post
        Called in another thread, with the key of the job, when a phase begins.
    """

    def __init__(self, note: Note, page: Page, on_post: Callable[[str], None]) -> None:
        self.note = note
        self.page = page
        self.is_watched = True
        """Whether it has, or may have, an operation."""
        self.look_at = 0.0
        """When its counters are to be reported next (s)."""
        self._written, self._controlled, self._uncontrolled = WrittenBytes(), 0, 0.0
        self._drainer = Drainer(page.path, note.user, note.group)
        self._staged, self._drained, self._drained_at = 0, 0, -inf
        self._refusal_said = False
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, args=(on_post,), name=page.path.stem, daemon=True
        )
        self._thread.start()

    @classmethod
    def create(cls, folder: Path, note: Note, on_post: Callable[[str], None]) -> Self:
        """Make a page that only the user of the job can map."""
        path = folder / f"{sha256(note.job.encode()).hexdigest()[:20]}.page"
        path.unlink(missing_ok=True)
        page = Page.create(path)
        try:
            if note.user != os.geteuid():
                os.chown(path, note.user, note.group)
        except OSError:
            page.close()
            _remove(path)
            raise
        return cls(note, page, on_post)

    @classmethod
    def adopt(cls, path: Path, on_post: Callable[[str], None]) -> Self | None:
        """Take a page up again; None, and its files go, if it is none any more."""
        try:
            data = path.with_suffix(".note").read_bytes()
            note = msgspec.json.decode(data, type=Note)
            note.members = {
                pid: start
                for pid, start in note.members.items()
                if started_at(pid) == start
            }
            return cls(note, Page.open(path), on_post)
        except (OSError, msgspec.MsgspecError, InputError):
            _remove(path)
            return None

    @property
    def key(self) -> str:
        """The user's number, a colon and the name."""
        return self.note.job

    def joining(self) -> JobJoined:
        """Return the message with which the job joins the controller."""
        note = self.note
        group = note.account or str(note.group)
        return JobJoined(note.job, note.user, group, note.nodes, note.volume)

    @property
    def is_over(self) -> bool:
        """Whether it has no process any more, or the batch system says so."""
        if self.note.registered:
            return self.page.is_removed
        return not self.note.members

    # --- Processes --------------------------------------------------------------------

    def add(self, pid: int) -> None:
        """Count a process as a part of the job."""
        start = started_at(pid)
        if start is not None:
            self.note.members[pid] = start
            self._save()

    def register(self, account: str, nodes: int) -> None:
        """Note what the batch system knows of the job."""
        self.note.account, self.note.nodes = account, nodes
        self.note.registered = True
        self._save()

    def remove(self, pid: int) -> None:
        """Note the end of a process."""
        if self.note.members.pop(pid, None) is not None and not self.is_over:
            self._save()

    def _save(self) -> None:
        path = self.page.path.with_suffix(".note")
        fresh = path.with_suffix(".new")
        # Without its note the page is lost at the next restart, but nothing else.
        with suppress(OSError):
            fresh.write_bytes(msgspec.json.encode(self.note))
            fresh.replace(path)

    # --- The page ---------------------------------------------------------------------

    def apply(self, terms: AgentConfig) -> None:
        """Let these terms hold."""
        page = self.page
        page.gap_s = terms.gap_s
        page.share(reads=Bucket.MAIN if terms.reads else None)
        if page.mode != _MODES[terms.mode]:
            page.mode = _MODES[terms.mode]
        self.is_watched = terms.mode != "off"

    def counts(self, gap: float, *, reads: bool) -> JobCounters:
        """Return the counters; a job that is idle for long is not watched any more.

        `gap` is the time without I/O that ends an operation (s).
        """
        classes = (IoClass.WRITE, IoClass.READ) if reads else (IoClass.WRITE,)
        posts = self.page.posts
        drains = self.page.counters(IoClass.DRAIN)
        calls = [self.page.counters(kind) for kind in classes]
        said, staged = self.page.announced, self.page.staged
        self._controlled = calls[0].moved_bytes + staged.absorbed_bytes
        self._staged = max(staged.absorbed_bytes - staged.drained_bytes, 0)
        self._note_refusals(staged.refused_files)
        now = time.monotonic()
        quiet = _quiet(calls, now)
        lives = drains.waiting_calls > 0 or self._stirs(quiet, said, staged, now)
        phases = max(said.begun - said.ended, 0) if lives else 0
        left = self._staged if lives else 0
        idle = 0.0 if phases or left else quiet
        # Twice: a report that is lost must not be the one that tells of the end.
        self.is_watched = idle < 2.0 * gap
        return JobCounters(
            job_key=self.key,
            posts=posts,
            moved_bytes=float(sum(c.moved_bytes for c in (*calls, drains))),
            held_up_s=sum(c.held_up_s for c in (*calls, drains)),
            waiting=any(c.waiting_calls for c in calls),
            idle_s=idle,
            bypassed=self.page.bypass_setups,
            uncontrolled_bytes=self._uncontrolled,
            announced_bytes=float(said.volume_bytes),
            phases=phases,
            staged_bytes=float(left),
            quiet_s=quiet,
        )

    def _stirs(self, quiet: float, said: Announced, staged: Staged, now: float) -> bool:
        """Return whether a call, a word or a drain was seen of late.

        A process that was killed in a phase never ends it, nor drains what it staged.
        """
        if staged.drained_bytes != self._drained:
            self._drained, self._drained_at = staged.drained_bytes, now
        return min(quiet, now - said.last_s, now - self._drained_at) < _IN_FLIGHT_S

    def _note_refusals(self, refused: int) -> None:
        """Say once that files cannot be staged: where it is said why may be missing."""
        if refused and not self._refusal_said:
            self._refusal_said = True
            _LOG.warning(
                "job %s writes files through that cannot be staged: is its folder for "
                "journals there, with room, and may it be written?",
                self.key,
            )

    def keep_draining(self) -> None:
        """Have what is staged drained beside the programs."""
        folder = self.page.journal_folder if self._staged else None
        if folder is not None:
            self._drainer.keep(folder)

    def look_for_bypass(self, members: Iterable[int]) -> None:
        """Compare what the kernel counts with what control has seen.

        For a thread of its own: there may be many processes.
        """
        written = self._written.look(members)
        self._uncontrolled = max(self._uncontrolled, float(written - self._controlled))

    def leftovers(self) -> list[Leftover]:
        """Return what its processes may have left behind when they have ended."""
        with suppress(PageError, OSError):
            folder, note = self.page.journal_folder, self.note
            if folder is not None:
                return [Leftover(folder, note.user, note.group, self.page.file_id)]
        return []

    def close(self, *, remove: bool = False) -> None:
        """Grant everything and serve the page no more; its thread unmaps it."""
        if not self._over.is_set():
            with suppress(PageError):
                self.page.grant(inf)
        if remove:
            _remove(self.page.path)
        self._over.set()
        self.page.wake_watcher()

    def _watch(self, on_post: Callable[[str], None]) -> None:
        page = self.page
        try:
            seen = page.posts, page.announced.ended
            while not self._over.is_set():
                now = page.wait_for_post(seen[0], _SLEEP_S), page.announced.ended
                if now != seen and not self._over.is_set():
                    seen = now
                    on_post(self.key)
                    self._over.wait(_REST_S)
        except PageError:
            on_post(self.key)
        self._over.wait()
        page.close()


def _quiet(calls: Sequence[Counters], now: float) -> float:
    """Return for how long there was no call (s); 0 while one is in flight."""
    quiet = max(now - max(c.last_active_s for c in calls), 0.0)
    in_flight = (
        any(c.begun_calls > c.ended_calls for c in calls) and quiet < _IN_FLIGHT_S
    )
    return 0.0 if in_flight or any(c.waiting_calls for c in calls) else quiet


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
        path.with_suffix(".note").unlink(missing_ok=True)
