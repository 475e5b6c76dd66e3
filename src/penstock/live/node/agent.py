# SPDX-License-Identifier: MIT
"""The agent of a node: it serves the pages of the jobs on the node.

The agent creates a page for every job, reads its counters and reports them to the
controller. It writes the controller's grants into the page, and renews the leases as
long as it receives messages from the controller. The agent is never on the path of an
I/O call: if it dies, the leases end and programs run without a limit.

The agent runs in an asyncio loop. One thread waits for posts (calls that begin an
operation) in the pages of all jobs and then wakes the loop (`bells`). Idle jobs cost
next to nothing: their leases are renewed by one write for each user, and their counters
are read more and more rarely.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from typing import Final, TypeVar

from penstock.errors import InputError, PenstockError, UnavailableError
from penstock.live.node.budgets import LOOK_S, Budgets, Holding, Spending
from penstock.live.node.bypass_meter import BypassMeter, charge
from penstock.live.node.file_system import storage_name
from penstock.live.node.job_drains import JobDrains
from penstock.live.node.local_job import Bypass, JobNote, LocalJob
from penstock.live.node.pages.bell import Bell
from penstock.live.node.pages.bells import Bells
from penstock.live.node.pages.room import PageRoom
from penstock.live.node.pages.shared_file import SharedFileError
from penstock.live.node.processes import WatchedProcesses
from penstock.live.node.report_schedule import ReportSchedule
from penstock.live.wire.frames import Peer, WarningLog
from penstock.live.wire.identity import process_start_ticks
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    AttachProcess,
    ControllerRequest,
    CounterReport,
    FromAgent,
    FromUser,
    Grants,
    JobCounters,
    JobLeft,
    PageAssigned,
    Refused,
    RegisterJob,
    Reply,
    RequestReport,
    SetPolicy,
    ThrottledUser,
    ToAgent,
    UserReply,
    UserRequest,
)

__all__ = ["Agent"]

_LOG: Final = logging.getLogger("penstock.agent")
#: How long a user waits for the controller's answer (s).
_ANSWER_S: Final = 4.0
#: The same for a change of policy, which may have to be compiled first (s).
_COMPILE_S: Final = 110.0
#: How long a program that joins waits for the first grant of its job (s). If the
#: controller is slower, the program starts without a limit.
_FIRST_GRANT_S: Final = 1.0
#: Time between two greetings until the controller answers (s).
_HELLO_S: Final = 1.0
#: Least time between two updates (s).
_UPDATE_S: Final = 0.005
#: What a request costs of its user's budget for messages: a new job, and each job of
#: the user in a status. Any other message costs 1.
_NEW_JOB_COST: Final = 4.0
_LISTED_JOB_COST: Final = 0.2

_T = TypeVar("_T")


class Agent:
    """Serves the pages in one folder.

    Call `start` once; then call `update` and await `wait_until_due` in a loop. Pass the
    messages of the controller to `receive`, and those of programs to `reply`.

    Parameters
    ----------
    folder
        Folder of the pages; it belongs to this user.
    send
        Sends a message to the controller.
    journals
        Patterns of folders, besides those in memory, where programs may have left
        journals behind.
    clock
        Returns the monotonic time (s).
    budgets
        What each user may take of the agent.
    spares
        Folder of files for new jobs while the file system is full; None: there is none.
    """

    def __init__(
        self,
        folder: Path,
        send: Callable[[FromAgent], None],
        journals: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
        budgets: Budgets | None = None,
        spares: Path | None = None,
    ) -> None:
        self._folder = folder
        self._send = send
        self._journals = journals
        self._clock = clock
        self.budgets = budgets or Budgets.of_this_process()
        """What each user may take of the agent."""
        #: Who was over budget at the last heartbeat.
        self._throttled: list[ThrottledUser] = []
        #: Job key -> job.
        self._jobs: dict[str, LocalJob] = {}
        self._room = PageRoom(self.budgets, spares)
        self._bells = Bells(folder, self._on_ring, room=self._room)
        self._schedule = ReportSchedule(self._jobs, self.budgets)
        self._processes = WatchedProcesses(self.budgets, self._note_end)
        #: Key of a job without a grant -> set when the first one is in its page.
        self._ungranted: dict[str, asyncio.Event] = {}
        #: Number of a forwarded request -> its reply.
        self._replies: dict[int, asyncio.Future[Reply]] = {}
        self._request_numbers = count()
        #: None until the controller has answered.
        self._config: AgentConfig | None = None
        #: Times of the last message received, lease renewal and greeting (s).
        self._received_s = 0.0
        self._renewed_s = 0.0
        self._greeted_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._complaints = WarningLog(_LOG)
        self._bypass = BypassMeter(
            self._jobs, partial(self._call_in_loop, self._note_bypass)
        )
        self._drains = JobDrains(self.budgets)
        self.last_job_s = clock()
        """When the agent last had a job (s)."""

    # --- Start, loop, end -------------------------------------------------------------

    def start(self) -> None:
        """Reopen the pages of a former agent, and greet the controller."""
        for path in sorted(self._folder.glob("*.page")):
            job = LocalJob.reopen(path, self._room)
            if job is not None and job.is_over:
                self._release(job)
            elif job is not None:
                self._continue(job)
        self._bells.remove_unused()
        self._room.prepare()
        self._drains.search(self._journals)
        self._greet()

    def _continue(self, job: LocalJob) -> None:
        """Serve the job of a former agent."""
        note = job.note
        try:
            self._bells.get(note.user, note.group).jobs[note.bell_slot] = job.key
        except (PenstockError, OSError) as error:
            self._complaints.add(f"job {job.key} is not controlled: {error}", note.user)
            self._release(job)
            return
        self._jobs[job.key] = job
        self.budgets.keep(note.user, Holding.JOBS)
        _LOG.info("job %s continues", job.key)
        for pid, start in list(note.processes.items()):
            self._processes.add(job.key, note.user, pid, start)

    def close(self) -> None:
        """Leave the jobs without a limit; a later agent may reopen their pages."""
        self._bells.close()
        for job in self._jobs.values():
            job.close()
        self._processes.close()
        self._jobs.clear()
        self._room.close()
        self._bypass.close()
        self._drains.close()

    def update(self) -> None:
        """Report the jobs that are due, renew leases, remove jobs that are over."""
        now_s = self._clock()
        if self._config is None:
            if now_s - self._greeted_s > _HELLO_S:
                self._greet()
            return
        if heartbeat := now_s - self._renewed_s >= self._config.lease_s / 3.0:
            self._maintain_jobs(now_s)
        due = self._schedule.take_due(now_s + _UPDATE_S)
        if due or heartbeat:
            self._report(due)
        if self._jobs:
            self.last_job_s = now_s

    def _maintain_jobs(self, now_s: float) -> None:
        self._processes.retry(self._jobs)
        for user, times in self._bells.take_late_posts().items():
            self.budgets.refuse(user, Spending.POSTS, now_s, times)
        self._throttled = self.budgets.throttled(now_s)
        for job in [job for job in self._jobs.values() if job.is_over]:
            self._remove(job)
        pages = [(job.note.user, job.page.file) for job in self._jobs.values()]
        self._room.cut([*pages, *self._bells.files()], now_s)
        self._renew(now_s)
        self._bypass.measure()

    # --- When to report ---------------------------------------------------------------

    async def wait_until_due(self) -> None:
        """Wait until the next update is due, or until an operation begins."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), self._time_until_due())
        self._changed.clear()

    def _time_until_due(self) -> float:
        """Return the time until the next update is due (s)."""
        if self._config is None:
            return _HELLO_S
        heartbeat_s = self._renewed_s + self._config.lease_s / 3.0
        due_s = min(heartbeat_s, self._schedule.next_s())
        return max(due_s - self._clock(), _UPDATE_S)

    # --- Leases and reports -----------------------------------------------------------

    def _renew(self, now_s: float) -> None:
        """Extend the leases to one lease time after the controller's last message.

        The pages of active jobs are renewed, too: a process may not have mapped the
        bell.
        """
        assert self._config is not None  # noqa: S101 - for the type checker
        self._renewed_s = now_s
        left_s = self._lease_left_s(self._config, now_s)
        if not left_s:
            return
        for user, problem in self._bells.renew(left_s):
            self._complaints.add(problem, user)
        floor = self._config.floor
        for job in [job for job in self._jobs.values() if job.may_operate]:
            self._use_page(job, partial(job.page.renew, left_s, floor=floor))

    def _lease_left_s(self, config: AgentConfig, now_s: float) -> float:
        """Return for how long grants still hold if the controller says nothing (s)."""
        return max(self._received_s + config.lease_s - now_s, 0.0)

    def _report(self, jobs: Iterable[LocalJob]) -> None:
        config = self._config
        if config is None:
            return
        counters = [
            self._use_page(job, partial(self._read_counters, job, config))
            for job in jobs
        ]
        readable = [each for each in counters if each is not None]
        self._bypass.note_reported(each.job_key for each in readable)
        self._send(CounterReport(readable, len(self._jobs), self._throttled))

    def _read_counters(self, job: LocalJob, config: AgentConfig) -> JobCounters:
        """Return the counters of a job, and set when to read them next."""
        begun_s = self._clock()
        counters = job.read_counters(config.gap_s, reads=config.reads)
        self._drains.keep(job, begun_s)
        if job.problem:
            self._complaints.add(job.problem, job.note.user)
        looks = (self._clock() - begun_s) / LOOK_S
        if looks > 1.0:
            self.budgets.spend(job.note.user, Spending.LOOKS, begun_s, looks - 1.0)
        self._schedule.put_next(job, counters.quiet_s, config, self._clock())
        return counters

    def _note_bypass(self, bypass: Bypass) -> None:
        """Report jobs again of which more bytes were not controlled."""
        charge(self.budgets, bypass, self._clock())
        self._report_again(bypass.job_keys)

    def _report_again(self, job_keys: list[str]) -> None:
        """Report jobs in which something has moved, and look at them often again."""
        jobs = [self._jobs[key] for key in job_keys if key in self._jobs]
        for job in jobs:
            job.idle_reports = 0
        if jobs:
            self._report(jobs)
            self._changed.set()

    def _use_page(self, job: LocalJob, use: Callable[[], _T]) -> _T | None:
        """Return the result of `use`; if the page is damaged, remove only this job."""
        try:
            return use()
        except SharedFileError as error:
            self._complaints.add(
                f"job {job.key} is not controlled any more, its page is damaged: "
                f"{error}",
                job.note.user,
            )
            self._remove(job)
            return None

    def _remove(self, job: LocalJob) -> None:
        if self._jobs.pop(job.key, None) is not None:
            self._send(JobLeft(job.key))
            self._end_wait(job.key)
            self._release(job)
            self._bells.free(job.note.user, job.note.bell_slot)
            self.budgets.release(job.note.user, Holding.JOBS)
            self._processes.remove(job.key, job.note.processes)

    def _release(self, job: LocalJob) -> None:
        """Remove the page of a job, and drain the journals that the job left behind."""
        self._drains.sweep(job, self._clock())
        job.close(remove=True, room=self._room)

    # --- Messages of the controller ---------------------------------------------------

    def receive(self, message: ToAgent) -> None:
        """Carry out a message of the controller."""
        self._received_s = self._clock()
        if isinstance(message, Grants):
            self._apply_grants(message)
        elif isinstance(message, AgentConfig):
            self._config = message
            for job in list(self._jobs.values()):
                self._use_page(job, partial(job.apply, message, message.lease_s))
            self._renew(self._received_s)
            self._changed.set()
        elif isinstance(message, RequestReport):
            self._report(
                [self._jobs[key] for key in message.job_keys if key in self._jobs]
            )
        elif isinstance(message, UserReply):
            reply = self._replies.pop(message.number, None)
            if reply is not None and not reply.done():
                reply.set_result(message.reply)
        else:
            self._greet()

    def _apply_grants(self, message: Grants) -> None:
        # Staging first: a call that the new grant wakes then sees whether to stage.
        for job, stages in self._known(message.stages):
            job.has_staged = True
            self._use_page(job, partial(setattr, job.page, "stages", stages))
        for job, partition in self._known(message.partitions):
            self._use_page(job, partial(job.place, partition))
            if job.must_merge:
                self._drains.merge_living(job)
        for job, rate in self._known(message.rates):
            self._use_page(job, partial(job.page.grant, rate))
            self._end_wait(job.key)

    def _known(self, orders: Mapping[str, _T]) -> list[tuple[LocalJob, _T]]:
        jobs = self._jobs
        return [(jobs[key], order) for key, order in orders.items() if key in jobs]

    def _greet(self) -> None:
        self._greeted_s = self._clock()
        self._send(AgentHello(list(self._jobs)))
        for job in self._jobs.values():
            self._send(job.joined_message())
            self._schedule.put(job, 0.0)

    # --- Messages of programs and users -----------------------------------------------

    async def reply(self, peer: Peer, message: FromUser) -> Reply:
        """Return the reply to a message of a process on this node.

        A user who asks too much has to wait. Raise `UnavailableError` if that would
        take longer than the user waits for an answer.
        """
        user, now_s = peer.user, self._clock()
        if self.budgets.debt_s(user, Spending.MESSAGES, now_s) > _ANSWER_S:
            raise UnavailableError(
                "you send too many requests", remedy="try again in some seconds"
            )
        cost = self._cost(peer, message)
        if wait_s := self.budgets.spend(user, Spending.MESSAGES, now_s, cost):
            await asyncio.sleep(wait_s)
        if not isinstance(message, AttachProcess | RegisterJob):
            return await self._forward(peer, message)
        try:
            if isinstance(message, RegisterJob):
                job = self._register(peer, message)
            else:
                job = self._attach(peer, message)
            await self._wait_for_grant(job)
            return self._assign_page(job, message.folder)
        except (PenstockError, OSError) as error:
            self._complaints.add(
                f"job {message.job_name!r} of user {peer.user}: {error}", peer.user
            )
            return Refused(str(error), isinstance(error, UnavailableError))

    def _cost(self, peer: Peer, message: FromUser) -> float:
        """Return what a message costs."""
        if isinstance(message, AttachProcess):
            is_new = f"{peer.user}:{message.job_name}" not in self._jobs
            return _NEW_JOB_COST if is_new else 1.0
        return 1.0 + _LISTED_JOB_COST * self.budgets.held(peer.user, Holding.JOBS)

    async def _forward(self, peer: Peer, request: ControllerRequest) -> Reply:
        """Return the controller's reply to a request."""
        number = next(self._request_numbers)
        reply = self._replies[number] = self._loop.create_future()
        self._send(UserRequest(number, peer.user, peer.is_trusted, request))
        try:
            slow = isinstance(request, SetPolicy)
            return await asyncio.wait_for(reply, _COMPILE_S if slow else _ANSWER_S)
        except TimeoutError:
            return Refused("the controller does not answer", retry=True)
        finally:
            self._replies.pop(number, None)

    async def _wait_for_grant(self, job: LocalJob) -> None:
        """Wait until a new job has a grant: without one its calls are not limited.

        If the controller is silent, nobody waits: no grant would hold.
        """
        event = self._ungranted.get(job.key)
        if event and self._lease_left_s(self._current_config(), self._clock()):
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), _FIRST_GRANT_S)

    def _end_wait(self, job_key: str) -> None:
        """Let programs go on that wait for the first grant of a job."""
        if event := self._ungranted.pop(job_key, None):
            event.set()

    def _attach(self, peer: Peer, message: AttachProcess) -> LocalJob:
        job_key = f"{peer.user}:{message.job_name}"
        start = process_start_ticks(peer.pid)
        if start is None or peer.start not in (None, start):
            raise UnavailableError(
                "the process that asks has ended", remedy="let it run until the answer"
            )
        if not self._processes.may_add(peer.user, peer.pid, self._clock()):
            raise UnavailableError(
                f"user {peer.user} has too many processes under control on this node",
                remedy="wait until some of them end",
            )
        nodes = message.nodes if peer.is_trusted else 0
        # As with nice(1), users may only lower the priority of their jobs.
        highest = inf if peer.is_trusted else 0.0
        note = JobNote(
            job_key,
            peer.user,
            peer.group,
            nodes,
            message.volume_bytes,
            storage=storage_name(message.folder),
            priority=min(message.priority, highest),
            work_s=message.work_s,
            # Believed from all: it takes nothing from others.
            several_nodes=message.nodes > 1,
        )
        job = self._find_or_create(note)
        if job.announce(note):
            self._send(job.joined_message())
        job.add(peer.pid, start)
        self._processes.add(job.key, peer.user, peer.pid, start)
        return job

    def _register(self, peer: Peer, message: RegisterJob) -> LocalJob:
        """Register a job on behalf of the batch system (trusted peers only)."""
        if not peer.is_trusted:
            raise InputError(
                "only root may register a job", remedy="start it with penstock run"
            )
        job_key = f"{message.user}:{message.job_name}"
        job = self._find_or_create(
            JobNote(
                job_key,
                message.user,
                message.group,
                message.nodes,
                0.0,
                storage=storage_name(message.folder),
                qos=message.qos,
                history_name=message.history_name,
            ),
            registers=True,
        )
        job.register(message.account, message.nodes)
        self._send(job.joined_message())
        return job

    def _assign_page(self, job: LocalJob, folder: str) -> PageAssigned:
        self.last_job_s = self._clock()
        prefixes = self._current_config().prefixes or [folder or "/"]
        return PageAssigned(str(job.page.path), prefixes)

    def _find_or_create(self, note: JobNote, *, registers: bool = False) -> LocalJob:
        """Return the job of a note; create it if it does not exist.

        A job that is registered needs no budget.
        """
        config = self._current_config()
        if note.job_key in self._jobs:
            return self._jobs[note.job_key]
        if registers:
            self.budgets.keep(note.user, Holding.JOBS)
        elif self.budgets.was_refused(note.user, Holding.BYTES, self._clock()):
            raise UnavailableError(
                f"user {note.user} has made pages longer", remedy="wait for a minute"
            )
        elif not self.budgets.hold(note.user, Holding.JOBS, self._clock()):
            raise UnavailableError(
                f"user {note.user} has too many jobs on this node",
                remedy="wait until one of them ends",
            )
        try:
            bell = self._bells.get(note.user, note.group)
            job = self._create(note, bell)
        except (PenstockError, OSError):
            self.budgets.release(note.user, Holding.JOBS)
            raise
        self._jobs[note.job_key] = job
        self._ungranted[note.job_key] = asyncio.Event()
        # The bell is that of all jobs of the user: a new job must not extend their
        # leases if the controller is silent.
        left_s = self._lease_left_s(config, self._clock())
        job.apply(config, left_s)
        if left_s:
            bell.renew(left_s)
        self._send(job.joined_message())
        # At once: the controller takes the first report of a job as its zero point.
        self._report([job])
        return job

    def _create(self, note: JobNote, bell: Bell) -> LocalJob:
        note.bell_slot = bell.take_slot(note.job_key)
        try:
            return LocalJob.create(self._folder, note, self._room)
        except (PenstockError, OSError):
            self._bells.free(note.user, note.bell_slot)
            raise

    def _current_config(self) -> AgentConfig:
        if self._config is None:
            raise UnavailableError(
                "the controller is not reachable", remedy="try again later"
            )
        return self._config

    def _on_ring(self, bell: Bell, slots: list[int]) -> None:
        """Have the jobs of these slots reported; called in the thread of the bells."""
        self._call_in_loop(self._report_posts, bell, slots)

    def _report_posts(self, bell: Bell, slots: list[int]) -> None:
        """Report jobs that have posted, at their turns if their user is over budget."""
        now_s = self._clock()
        keys = [bell.jobs[slot] for slot in slots if slot in bell.jobs]
        posted = [self._jobs[key] for key in keys if key in self._jobs]
        may_look = self._schedule.may_look
        self._report_again([job.key for job in posted if may_look(job, now_s)])

    def _call_in_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """Have the loop call a function; for other threads."""
        # RuntimeError: the loop is closed, the agent is ending.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    # --- The end of processes ---------------------------------------------------------

    def _note_end(self, job_key: str, pid: int, start: int) -> None:
        job = self._jobs.get(job_key)
        if job is None:
            return
        job.remove(pid, start)
        self._drains.sweep_orphans(job, self._clock())
        if job.is_over:
            self._report([job])
            self._remove(job)
