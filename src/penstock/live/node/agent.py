# SPDX-License-Identifier: MIT
"""The agent of a node: it keeps the pages of the jobs there.

It makes a page for every job, watches it and reports what changes; it writes into the
page what the controller grants, and renews leases as long as it hears from the
controller. It is never on the path of an I/O call: without it, programs go on.

Runs in an asyncio loop, which the threads of the pages wake.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

from penstock.errors import InputError, PenstockError, UnavailableError
from penstock.live.node.local_job import LocalJob, Note
from penstock.live.node.page import PageError
from penstock.live.staging.drainers import Sweeper, left_behind
from penstock.live.wire.frames import Complaints, Peer
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    AttachProcess,
    ControllerRequest,
    CounterReport,
    FromAgent,
    FromProgram,
    Grants,
    JobCounters,
    JobLeft,
    PageAssigned,
    Refused,
    RegisterJob,
    Reply,
    RequestReport,
    SetPolicy,
    ToAgent,
    UserReply,
    UserRequest,
)

__all__ = ["Agent"]

_LOG: Final = logging.getLogger("penstock.agent")
#: How long a user waits for the controller's answer (s).
_ANSWER_S: Final = 4.0
#: The same for a policy, which may have to be compiled first (s).
_COMPILE_S: Final = 110.0
#: Time between two greetings that are not answered (s).
_GREET_S: Final = 1.0
#: No two looks are closer (s).
_SHORTEST_S: Final = 0.005
#: No user may have more jobs on a node.
_MOST_JOBS: Final = 1000

_T = TypeVar("_T")


class Agent:
    """Serves the pages in one folder.

    Parameters
    ----------
    folder
        Where the pages are; it belongs to this user.
    send
        Sends a message to the controller.
    journals
        Patterns of folders, besides those in memory, where programs may have left
        journals behind.
    clock
        The time (s), monotonic.
    """

    def __init__(
        self,
        folder: Path,
        send: Callable[[FromAgent], None],
        journals: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._send = send
        self._journals = journals
        self._clock = clock
        self._jobs: dict[str, LocalJob] = {}
        self._ends: dict[int, str] = {}
        #: Jobs and processes whose end nobody tells.
        self._unwatched: list[tuple[str, int]] = []
        self._questions: dict[int, asyncio.Future[Reply]] = {}
        self._numbers = count()
        self._terms: AgentConfig | None = None
        self._heard = 0.0
        self._renewed = 0.0
        self._greeted = 0.0
        self._loop = asyncio.get_running_loop()
        self._stirred = asyncio.Event()
        self._complaints = Complaints(_LOG)
        self._bypass_thread = ThreadPoolExecutor(1, "bypass")
        self._bypass_look: Future[None] | None = None
        self._sweeper = Sweeper()
        self.last_job = clock()
        """When there was a job for the last time (s)."""

    # --- The life of an agent ---------------------------------------------------------

    def start(self) -> None:
        """Take up the pages that an agent before has left, and say hello."""
        for path in sorted(self._folder.glob("*.page")):
            job = LocalJob.adopt(path, self._notify)
            if job is not None and job.is_over:
                self._let_go(job)
            elif job is not None:
                self._jobs[job.key] = job
                _LOG.info("job %s goes on", job.key)
                for pid in list(job.note.members):
                    self._watch_end(job, pid)
        self._sweeper.sweep(left_behind(self._journals))
        self._greet()

    def close(self) -> None:
        """Let the jobs go without control; the next agent may take them up again."""
        for job in self._jobs.values():
            job.close()
        for descriptor in self._ends:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
        self._jobs.clear()
        self._ends.clear()
        self._bypass_thread.shutdown(cancel_futures=True)
        self._sweeper.close()

    def look(self) -> None:
        """Report what has changed, and renew the leases; to be called often."""
        now = self._clock()
        if self._terms is None:
            if now - self._greeted > _GREET_S:
                self._greet()
            return
        if beats := now - self._renewed >= self._terms.lease_s / 3.0:
            self._look_after_all(now)
        due = [j for j in self._jobs.values() if j.look_at <= now + _SHORTEST_S]
        if due or beats:
            self._report(due)
        if self._jobs:
            self.last_job = now

    def _look_after_all(self, now: float) -> None:
        self._watch_again()
        for job in [job for job in self._jobs.values() if job.is_over]:
            self._forget(job)
        self._renew(now)
        if self._bypass_look is None or self._bypass_look.done():
            everybody = [(job, list(job.note.members)) for job in self._jobs.values()]
            self._bypass_look = self._bypass_thread.submit(_look_for_bypass, everybody)

    async def rest(self) -> None:
        """Wait until the next look, or until an operation begins."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), self._next_look())
        self._stirred.clear()

    def _next_look(self) -> float:
        """Return how long to wait until the next look (s)."""
        if self._terms is None:
            return _GREET_S
        heartbeat = self._renewed + self._terms.lease_s / 3.0
        at = min([heartbeat, *(job.look_at for job in self._jobs.values())])
        return max(at - self._clock(), _SHORTEST_S)

    def _renew(self, now: float) -> None:
        """Let grants hold for a lease after the controller was last heard."""
        assert self._terms is not None  # noqa: S101 - for the type checker
        self._renewed = now
        left = self._heard + self._terms.lease_s - now
        floor = self._terms.floor
        for job in list(self._jobs.values()) if left > 0.0 else ():
            self._try(job, partial(job.page.renew, left, floor=floor))

    def _report(self, jobs: Iterable[LocalJob]) -> None:
        terms = self._terms
        if terms is None:
            return
        read = [self._try(job, partial(self._counts, job, terms)) for job in jobs]
        counts = [each for each in read if each is not None]
        self._send(CounterReport(counts, len(self._jobs)))

    def _counts(self, job: LocalJob, terms: AgentConfig) -> JobCounters:
        """Return the counters of a job, and note when to look at them next.

        Not later than its operation ends, or pauses, if there are no more calls.
        """
        counts = job.counts(terms.gap_s, reads=terms.reads)
        job.keep_draining()
        pause = terms.report_s if job.is_watched else terms.lease_s / 3.0
        if job.is_watched and counts.quiet_s < terms.gap_s:
            pause = min(pause, terms.gap_s - counts.quiet_s)
        job.look_at = self._clock() + pause
        return counts

    def _try(self, job: LocalJob, use: Callable[[], _T]) -> _T | None:
        """Use the page of a job; if it is spoilt the job is let go, and only this."""
        try:
            return use()
        except PageError as error:
            self._complaints.add(f"job {job.key} is let go: {error}")
            self._forget(job)
            return None

    def _forget(self, job: LocalJob) -> None:
        if self._jobs.pop(job.key, None) is not None:
            self._send(JobLeft(job.key))
            self._let_go(job)

    def _let_go(self, job: LocalJob) -> None:
        """Serve a job no more, and have drained what it has left behind."""
        self._sweeper.sweep(job.leftovers())
        job.close(remove=True)

    # --- What the controller says -----------------------------------------------------

    def receive(self, message: ToAgent) -> None:
        """Do what the controller says."""
        self._heard = self._clock()
        if isinstance(message, Grants):
            # First: whoever wakes up because of the grant looks whether to wait at all.
            for key, stages in message.stages.items():
                if key in self._jobs:
                    job = self._jobs[key]
                    self._try(job, partial(setattr, job.page, "stages", stages))
            for key, rate in message.rates.items():
                if key in self._jobs:
                    job = self._jobs[key]
                    self._try(job, partial(job.page.grant, rate))
        elif isinstance(message, AgentConfig):
            self._terms = message
            for job in list(self._jobs.values()):
                self._try(job, partial(job.apply, message))
            self._renew(self._heard)
            self._stirred.set()
        elif isinstance(message, RequestReport):
            self._report(
                [self._jobs[key] for key in message.job_keys if key in self._jobs]
            )
        elif isinstance(message, UserReply):
            future = self._questions.pop(message.number, None)
            if future is not None and not future.done():
                future.set_result(message.reply)
        else:
            self._greet()

    def _greet(self) -> None:
        self._greeted = self._clock()
        self._send(AgentHello(list(self._jobs)))
        for job in self._jobs.values():
            self._send(job.joining())
            job.look_at = 0.0

    # --- What programs and users want -------------------------------------------------

    async def reply(self, peer: Peer, message: FromProgram) -> Reply:
        """Return the reply to a message of a process on this node."""
        if not isinstance(message, AttachProcess | RegisterJob):
            return await self._asked(peer, message)
        try:
            if isinstance(message, RegisterJob):
                return self._register(peer, message)
            return self._admit(peer, message)
        except (PenstockError, OSError) as error:
            self._complaints.add(
                f"job {message.job_name!r} of user {peer.user}: {error}"
            )
            return Refused(str(error), isinstance(error, UnavailableError))

    async def _asked(self, peer: Peer, question: ControllerRequest) -> Reply:
        number = next(self._numbers)
        future = self._questions[number] = self._loop.create_future()
        self._send(UserRequest(number, peer.user, peer.is_trusted, question))
        try:
            slow = isinstance(question, SetPolicy)
            return await asyncio.wait_for(future, _COMPILE_S if slow else _ANSWER_S)
        except TimeoutError:
            return Refused("the controller does not answer", retry=True)
        finally:
            self._questions.pop(number, None)

    def _admit(self, peer: Peer, message: AttachProcess) -> PageAssigned:
        key = f"{peer.user}:{message.job_name}"
        nodes = message.nodes if peer.is_trusted else 0
        job = self._page_of(
            Note(key, peer.user, peer.group, nodes, message.volume_bytes)
        )
        job.add(peer.pid)
        self._watch_end(job, peer.pid)
        return self._admitted(job, message.folder)

    def _register(self, peer: Peer, message: RegisterJob) -> PageAssigned:
        """Take the batch system's word for whose job it is, if it is its word."""
        if not peer.is_trusted:
            raise InputError("only root may register a job", remedy="penstock run")
        key = f"{message.user}:{message.job_name}"
        job = self._page_of(Note(key, message.user, message.group, message.nodes, 0.0))
        job.register(message.account, message.nodes)
        self._send(job.joining())
        return self._admitted(job, message.folder)

    def _admitted(self, job: LocalJob, folder: str) -> PageAssigned:
        self.last_job = self._clock()
        prefixes = self._known_terms().prefixes or [folder or "/"]
        return PageAssigned(str(job.page.path), prefixes)

    def _page_of(self, note: Note) -> LocalJob:
        """Return the job of a note; one that is not there is made."""
        terms = self._known_terms()
        if note.job in self._jobs:
            return self._jobs[note.job]
        owned = sum(job.note.user == note.user for job in self._jobs.values())
        if owned >= _MOST_JOBS:
            raise UnavailableError(
                f"user {note.user} has {owned} jobs on this node already"
            )
        job = LocalJob.create(self._folder, note, self._notify)
        self._jobs[note.job] = job
        job.apply(terms)
        job.page.renew(terms.lease_s, floor=terms.floor)
        self._send(job.joining())
        # At once: of what a first report counts nobody knows when it was done.
        self._report([job])
        return job

    def _known_terms(self) -> AgentConfig:
        if self._terms is None:
            raise UnavailableError(
                "the controller is not reachable", remedy="try again later"
            )
        return self._terms

    def _notify(self, key: str) -> None:
        """Tell the loop, from the thread of a page, that a phase has begun."""
        # The loop may have been closed: the agent is ending.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._post, key)

    def _post(self, key: str) -> None:
        job = self._jobs.get(key)
        if job is not None:
            self._report([job])
            self._stirred.set()

    # --- The end of processes ---------------------------------------------------------

    def _watch_end(self, job: LocalJob, pid: int) -> None:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self._ended(job.key, pid)
            return
        except OSError:
            # Too many open files, say, which tells nothing of the process.
            self._unwatched.append((job.key, pid))
            return
        self._ends[descriptor] = job.key
        self._loop.add_reader(descriptor, self._on_end, descriptor, job.key, pid)

    def _watch_again(self) -> None:
        """Try once more to watch those that could not be watched."""
        unwatched, self._unwatched = self._unwatched, []
        for key, pid in unwatched:
            if key in self._jobs:
                self._watch_end(self._jobs[key], pid)

    def _on_end(self, descriptor: int, key: str, pid: int) -> None:
        self._loop.remove_reader(descriptor)
        self._ends.pop(descriptor, None)
        os.close(descriptor)
        self._ended(key, pid)

    def _ended(self, key: str, pid: int) -> None:
        job = self._jobs.get(key)
        if job is None:
            return
        job.remove(pid)
        if job.is_over:
            self._report([job])
            self._forget(job)


def _look_for_bypass(jobs: list[tuple[LocalJob, list[int]]]) -> None:
    for job, members in jobs:
        job.look_for_bypass(members)
