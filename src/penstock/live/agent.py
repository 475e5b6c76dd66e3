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
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from penstock.errors import InputError, PenstockError
from penstock.live.local_job import LocalJob, Note
from penstock.live.messages import (
    Admitted,
    Ask,
    Asked,
    Enter,
    FromAgent,
    FromProgram,
    Grants,
    Hello,
    Look,
    Part,
    Refused,
    Replied,
    Reply,
    Report,
    SetPolicy,
    Terms,
    ToAgent,
)
from penstock.live.wire import Peer

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


class Agent:
    """Serves the pages in one folder.

    Parameters
    ----------
    folder
        Where the pages are; it belongs to this user.
    send
        Sends a message to the controller.
    """

    def __init__(self, folder: Path, send: Callable[[FromAgent], None]) -> None:
        self._folder = folder
        self._send = send
        self._jobs: dict[str, LocalJob] = {}
        self._ends: dict[int, str] = {}
        self._questions: dict[int, asyncio.Future[Reply]] = {}
        self._numbers = count()
        self._terms: Terms | None = None
        self._heard = 0.0
        self._renewed = 0.0
        self._greeted = 0.0
        self._loop = asyncio.get_running_loop()
        self._stirred = asyncio.Event()
        self.last_job = time.monotonic()
        """When there was a job for the last time (s)."""

    # --- The life of an agent ---------------------------------------------------------

    def start(self) -> None:
        """Take up the pages that an agent before has left, and say hello."""
        for path in sorted(self._folder.glob("*.page")):
            job = LocalJob.adopt(path, self._notify)
            if job is not None:
                self._jobs[job.key] = job
                _LOG.info("job %s goes on", job.key)
                for pid in list(job.note.members):
                    self._watch_end(job, pid)
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

    def look(self) -> None:
        """Report what has changed, and renew the leases; to be called often."""
        now = time.monotonic()
        if self._terms is None:
            if now - self._greeted > _GREET_S:
                self._greet()
            return
        due = now - self._renewed >= self._terms.lease / 3.0
        watched = [job for job in self._jobs.values() if due or job.is_watched]
        if due:
            for job in watched:
                job.look_for_bypass()
            self._renew(now)
        if watched or due:
            self._report(watched)
        if self._jobs:
            self.last_job = now

    async def rest(self) -> None:
        """Wait until the next look, or until an operation begins."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), self._next_look())
        self._stirred.clear()

    def _next_look(self) -> float:
        """Return how long to wait until the next look (s).

        Not longer than until an operation ends, if there are no more calls.
        """
        terms = self._terms
        if terms is None:
            return _GREET_S
        watched = [job.idle for job in self._jobs.values() if job.is_watched]
        if not watched:
            return terms.lease / 6.0
        ends = [terms.gap - idle for idle in watched if idle < terms.gap]
        return max(min([terms.report, *ends]), _SHORTEST_S)

    def _renew(self, now: float) -> None:
        """Let grants hold for a lease after the controller was last heard."""
        assert self._terms is not None  # noqa: S101 - for the type checker
        self._renewed = now
        left = self._heard + self._terms.lease - now
        for job in self._jobs.values() if left > 0.0 else ():
            job.page.renew(left, floor=self._terms.floor)

    def _report(self, jobs: list[LocalJob]) -> None:
        terms = self._terms
        if terms is not None:
            counts = [job.counts(terms.gap, reads=terms.reads) for job in jobs]
            self._send(Report(counts, len(self._jobs)))

    # --- What the controller says -----------------------------------------------------

    def receive(self, message: ToAgent) -> None:
        """Do what the controller says."""
        self._heard = time.monotonic()
        if isinstance(message, Grants):
            for key, rate in message.rates.items():
                if key in self._jobs:
                    self._jobs[key].page.grant(rate)
        elif isinstance(message, Terms):
            self._terms = message
            for job in self._jobs.values():
                job.apply(message)
            self._renew(self._heard)
            self._stirred.set()
        elif isinstance(message, Look):
            self._report([self._jobs[key] for key in message.jobs if key in self._jobs])
        elif isinstance(message, Replied):
            future = self._questions.pop(message.number, None)
            if future is not None and not future.done():
                future.set_result(message.reply)
        else:
            self._greet()

    def _greet(self) -> None:
        self._greeted = time.monotonic()
        self._send(Hello(list(self._jobs)))
        for job in self._jobs.values():
            self._send(job.joining())
            job.is_watched = True

    # --- What programs and users want -------------------------------------------------

    async def reply(self, peer: Peer, message: FromProgram) -> Reply:
        """Return the reply to a message of a process on this node."""
        if not isinstance(message, Enter):
            return await self._asked(peer, message)
        try:
            return self._admit(peer, message)
        except (PenstockError, OSError) as error:
            _LOG.warning("job %r of user %d: %s", message.job, peer.user, error)
            return Refused(str(error))

    async def _asked(self, peer: Peer, question: Ask) -> Reply:
        number = next(self._numbers)
        future = self._questions[number] = self._loop.create_future()
        self._send(Asked(number, peer.user, peer.is_trusted, question))
        try:
            slow = isinstance(question, SetPolicy)
            return await asyncio.wait_for(future, _COMPILE_S if slow else _ANSWER_S)
        except TimeoutError:
            return Refused("the controller does not answer")
        finally:
            self._questions.pop(number, None)

    def _admit(self, peer: Peer, message: Enter) -> Admitted:
        terms = self._terms
        if terms is None:
            raise InputError("the controller is not there", remedy="try again later")
        key = f"{peer.user}:{message.job}"
        job = self._jobs.get(key) or self._made(key, peer, message, terms)
        job.add(peer.pid)
        self._watch_end(job, peer.pid)
        self.last_job = time.monotonic()
        prefixes = terms.prefixes or [message.folder or "/"]
        return Admitted(str(job.page.path), prefixes)

    def _made(self, key: str, peer: Peer, message: Enter, terms: Terms) -> LocalJob:
        owned = sum(job.note.user == peer.user for job in self._jobs.values())
        if owned >= _MOST_JOBS:
            raise InputError(f"user {peer.user} has {owned} jobs on this node already")
        nodes = message.nodes if peer.is_trusted else 0
        note = Note(key, peer.user, peer.group, nodes, message.volume)
        job = LocalJob.create(self._folder, note, self._notify)
        self._jobs[key] = job
        job.apply(terms)
        job.page.renew(terms.lease, floor=terms.floor)
        self._send(job.joining())
        return job

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
        except OSError:
            self._ended(job.key, pid)
            return
        self._ends[descriptor] = job.key
        self._loop.add_reader(descriptor, self._on_end, descriptor, job.key, pid)

    def _on_end(self, descriptor: int, key: str, pid: int) -> None:
        self._loop.remove_reader(descriptor)
        self._ends.pop(descriptor, None)
        os.close(descriptor)
        self._ended(key, pid)

    def _ended(self, key: str, pid: int) -> None:
        job = self._jobs.get(key)
        if job is None or not job.remove(pid):
            return
        self._report([job])
        self._send(Part(key))
        del self._jobs[key]
        job.close(remove=True)
