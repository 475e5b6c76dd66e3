# SPDX-License-Identifier: MIT
"""The main loop of live control: messages and the time go in, messages go out.

`ControlLoop._run` holds the loop. It drives a `Coordinator`, which is pure: it has no
clock, no I/O and no threads. Messages of agents, in this process or on other nodes,
enter the loop by `ControlLoop.receive`; its own messages leave it by `links`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from penstock.errors import InputError, PenstockError
from penstock.live.archive.answers import ArchiveAnswers
from penstock.live.archive.questions import ArchiveAnswer, ArchiveQueue
from penstock.live.archive.recorder import ArchiveRecorder
from penstock.live.control.past import on_other_clock
from penstock.live.daemon.history import History
from penstock.live.daemon.learnt import LearntBandwidths
from penstock.live.daemon.limits import SavedLimits
from penstock.live.node.budgets import Budgets, Spending
from penstock.live.staging.partitioner import Partitioner
from penstock.live.wire.messages import (
    ExplainJob,
    FromAgent,
    GetJobReport,
    JobJoined,
    JobLeft,
    ListPastJobs,
    ListUnderWay,
    Partition,
    Refused,
    SetPolicy,
    StatusDocument,
    TextAnswer,
    ToAgent,
    UserReply,
    UserRequest,
)
from penstock.live.wire.subordinates import owner_of
from penstock.live.worker import Worker

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.live.control.coordinator import Coordinator
    from penstock.live.control.output import CoordinatorOutput
    from penstock.live.control.past import CompletedOperation, JobRun
    from penstock.live.daemon.job_folders import JobFolders
    from penstock.live.daemon.prediction import Predictor
    from penstock.policies.policy import Policy

__all__ = ["ControlLoop", "check_usable"]

_LOG: Final = logging.getLogger("penstock.serve")
#: How long another thread waits for a status (s).
_STATUS_S: Final = 2.0
#: When to decide again after a turn that failed (s).
_RETRY_S: Final = 1.0
#: How long saving may delay the end (s).
_SAVE_S: Final = 30.0
#: What each job that a user sees adds to the cost of a request of this user.
_SEEN_JOB_COST: Final = 0.2
_TOO_MANY: Final = Refused("you send too many requests; try again later", retry=True)

_T = TypeVar("_T")


class _RemoteLink(Protocol):
    """Sends messages to agents on other nodes."""

    def __call__(self, agent: str, message: ToAgent, /) -> None:
        """Send a message to an agent."""


class ControlLoop:
    """Drives a coordinator: gives it messages and the time, and sends its messages.

    Call `start` once to run the loop, and `close` at the end.
    """

    def __init__(self, coordinator: Coordinator, history: History | None) -> None:
        self.coordinator = coordinator
        self.links: dict[str, Callable[[ToAgent], None]] = {}
        """Agent in this process -> function that sends a message to it."""
        self.remote: _RemoteLink | None = None
        """Sends messages to all other agents."""
        self.predict: Predictor | None = None
        """Predicts the volumes of operations."""
        self.partitioner: Partitioner | None = None
        """Assigns the folders of jobs to storage targets."""
        self.folders: JobFolders | None = None
        """Gives targets to jobs of which only the folder is known."""
        self.learnt: LearntBandwidths | None = None
        """Keeps the bandwidths that were learnt."""
        self.limits: SavedLimits | None = None
        """Keeps the limits that operators have set."""
        self.archive: ArchiveRecorder | None = None
        """Keeps what jobs did."""
        #: What is archived next.
        self._completed: list[tuple[JobRun, CompletedOperation]] = []
        self._left_runs: list[JobRun] = []
        self._history = history
        self._inbox: deque[tuple[str, FromAgent]] = deque()
        self._work = asyncio.Event()
        self._first_arrival_s: float | None = None
        self._wake_s = inf
        self._task: asyncio.Task[None] | None = None
        self._saver = Worker("history")
        self._compiler = Worker("compiler")
        self._budgets = Budgets.of_this_process()
        self._questions = ArchiveQueue(owner_of)
        coordinator.throttled = self._budgets.throttled

    # --- The loop ---------------------------------------------------------------------

    def start(self) -> None:
        """Run the loop in a task; a turn that fails is logged, and the loop goes on."""
        if self.partitioner:
            loop = asyncio.get_running_loop()
            self.partitioner.on_moved = partial(
                self._in_loop, loop, self._set_partition
            )
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._restart)

    def _restart(self, task: asyncio.Task[None]) -> None:
        """Start the loop again after an error: one bug must not stop all jobs.

        A message that cannot be processed is lost. Messages behind it are processed at
        once; a decision that failed is taken again after `_RETRY_S`.
        """
        if not task.cancelled():
            _LOG.error("a turn of the control loop failed", exc_info=task.exception())
            self.start()

    async def _run(self) -> None:
        """Run the control loop.

        One turn does the following, in this order:

        1. wait for a message, or for the instant at which the coordinator wants to be
           woken;
        2. fix the time of the turn;
        3. give all messages that have arrived to the coordinator;
        4. let the coordinator take ONE decision;
        5. send its messages, save the history of jobs that left, and ask the predictor
           about operations that ended.
        """
        # This `while` is the main loop of live control: every decision is taken here.
        while True:
            await self._wait()
            now = self._begin_turn()
            while self._inbox:
                agent, message = self._inbox.popleft()
                self.coordinator.receive(agent, message, now)
            self._work.clear()
            output = self.coordinator.decide(now)
            self._wake_s = output.wake
            self._carry_out(output)

    async def _wait(self) -> None:
        """Wait until there is work, but not longer than until `_wake_s`."""
        if self._work.is_set():
            # Let other messages arrive: they become part of the same turn.
            await asyncio.sleep(0)
            return
        when = None if self._wake_s == inf else self._wake_s
        with suppress(TimeoutError):
            async with asyncio.timeout_at(when):
                await self._work.wait()

    def _begin_turn(self) -> float:
        """Return the time of the turn: that of its first message, or else now.

        Messages and the decision on them have the same time. Otherwise a job would lose
        the time in between, and jobs that were never delayed would no longer tie.
        """
        now = self._first_arrival_s
        if now is None:
            now = time.monotonic()
        self._first_arrival_s = None
        # Valid if the turn fails; a turn that succeeds replaces it.
        self._wake_s = now + _RETRY_S
        return now

    def _carry_out(self, output: CoordinatorOutput) -> None:
        for agent, message in output.messages:
            self._send(agent, message)
        for change in output.changes:
            _LOG.info("%s", change)
        if output.changes:
            # A limit must survive a controller that is killed.
            self.save()
        if self.archive:
            self._completed += output.completed
            self._left_runs += output.left_runs
        if output.left and self._history:
            self._in_saver(self._history.save, output.left | output.learnt)
        if self.partitioner:
            for job_key in output.left:
                self.partitioner.forget(job_key)
            if output.retargeted:
                self.partitioner.move(output.retargeted)
        if self.predict:
            for job_key in output.ended:
                self.predict(job_key, self.coordinator.operations(job_key))

    def _send(self, agent: str, message: ToAgent) -> None:
        if agent in self.links:
            self.links[agent](message)
        elif self.remote:
            self.remote(agent, message)

    # --- Input ------------------------------------------------------------------------

    def receive(self, agent: str, message: FromAgent) -> None:
        """Put a message of an agent into the loop."""
        if isinstance(message, UserRequest) and not self._may_ask(message):
            self._send(agent, UserReply(message.number, _TOO_MANY))
        elif isinstance(message, UserRequest) and (
            found := self._about_folder(message)
        ):
            self._send(agent, UserReply(message.number, found))
        elif isinstance(message, UserRequest) and self._is_about_past(message):
            self._answer_from_archive(agent, message)
        # Do not import or compile policies on behalf of untrusted users.
        elif (
            isinstance(message, UserRequest)
            and message.trusted
            and isinstance(message.request, SetPolicy)
        ):
            self._compile_first(agent, message, message.request.policy)
        else:
            self._put(agent, message)

    def _may_ask(self, message: UserRequest) -> bool:
        """Return False if a user asks too much, on all nodes together.

        An agent limits what a user asks on its node only.
        """
        if message.trusted:
            return True
        user, now_s = message.user, time.monotonic()
        if not self._budgets.take(user, Spending.REQUESTS, now_s):
            return False
        cost = _SEEN_JOB_COST * len(self.coordinator.seen_by(message))
        self._budgets.charge(user, Spending.REQUESTS, now_s, cost)
        return True

    def _put(self, agent: str, message: FromAgent) -> None:
        if isinstance(message, JobJoined):
            _LOG.debug("job %s joins on node %s", message.job_key, agent)
        elif isinstance(message, JobLeft):
            _LOG.debug("job %s leaves node %s", message.job_key, agent)
        if self._first_arrival_s is None:
            self._first_arrival_s = time.monotonic()
        self._inbox.append((agent, message))
        self._work.set()

    def _about_folder(self, message: UserRequest) -> TextAnswer | None:
        """Return the answer to a request about a job known by its folder, or None."""
        request = message.request
        if self.folders is None or not isinstance(request, ExplainJob):
            return None
        if self.coordinator.has_job(request.job_name, message):
            return None
        user = None if message.trusted else message.user
        return self.folders.explanation(request.job_name, user)

    def _in_loop(
        self, loop: asyncio.AbstractEventLoop, act: Callable[..., object], *what: object
    ) -> None:
        """Call `act` in the thread of the loop, unless the loop is closed."""
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(act, *what)

    def _set_partition(self, job_key: str, partition: Partition) -> None:
        self.coordinator.set_partition(job_key, partition)
        self._work.set()

    def _is_about_past(self, message: UserRequest) -> bool:
        """Return True if the archive answers a request, and not the coordinator."""
        request = message.request
        if isinstance(request, ExplainJob) and self.archive:
            runs_now = self.coordinator.has_job(request.job_name, message)
            return bool(request.joined_s) or not runs_now
        return isinstance(request, ListPastJobs | ListUnderWay | GetJobReport)

    def _answer_from_archive(self, agent: str, message: UserRequest) -> None:
        """Read the archive in another thread, then send the answer."""
        if self.archive is None:
            reason = "nothing is archived: the setting `archive` is none"
            self._send(agent, UserReply(message.number, Refused(reason)))
            return
        prepare = partial(self._prepare_answer, self.archive.folder, message)
        done = self._questions.ask(message, prepare)
        done.add_done_callback(partial(self._send_answer, agent, message.number))

    def _prepare_answer(
        self, folder: Path, message: UserRequest
    ) -> Callable[[], ArchiveAnswer]:
        """Return what reads the answer, with what only the coordinator knows."""
        # What has just ended is archived first.
        self.save_operations()
        saved = self._saver.submit(lambda: None)
        jobs = self.coordinator.seen_by(message)
        running = [job.name for job in jobs]
        request = message.request
        if isinstance(request, ExplainJob):
            # The answer is about this job only.
            jobs = [job for job in jobs if request.job_name in (job.key, job.name)]
        now_s, offset_s = time.monotonic(), time.time() - time.monotonic()
        present = [job.under_way(now_s) for job in jobs if job.has_operated]

        def read() -> ArchiveAnswer:
            under_way = [on_other_clock(*each, offset_s) for each in present]
            saved.result()
            answers = ArchiveAnswers(folder, running=running, under_way=under_way)
            return answers.answer(message)

        return read

    def _send_answer(
        self, agent: str, number: int, done: asyncio.Future[ArchiveAnswer]
    ) -> None:
        if done.cancelled():
            return
        if error := done.exception():
            _LOG.error("the archive was not read", exc_info=error)
            answer: Any = Refused("the archive cannot be read; see the log")
        else:
            answer = done.result()
        self._send(agent, UserReply(number, answer))

    def _compile_first(self, agent: str, message: UserRequest, policy: str) -> None:
        """Compile a policy in another thread before the request reaches the loop."""
        done = asyncio.wrap_future(self._compiler.submit(_compile, policy))
        done.add_done_callback(partial(self._compiled, agent, message))

    def _compiled(
        self, agent: str, message: UserRequest, done: asyncio.Future[None]
    ) -> None:
        error = None if done.cancelled() else done.exception()
        if isinstance(error, InputError):
            self._send(agent, UserReply(message.number, Refused(str(error))))
        else:
            self._put(agent, message)

    # --- Status, history, end ---------------------------------------------------------

    def status_reader(self) -> Callable[[], StatusDocument]:
        """Return a function that other threads may call to read the status.

        It is read without explanations, for the loop takes no decision meanwhile.
        """
        loop = asyncio.get_running_loop()

        def read() -> StatusDocument:
            answer: Future[StatusDocument] = Future()

            def put() -> None:
                status = self.coordinator.status(time.monotonic(), explains=False)
                answer.set_result(status)

            loop.call_soon_threadsafe(put)
            return answer.result(_STATUS_S)

        return read

    def save(self) -> None:
        """Save the history of all jobs, and what was learnt, in another thread."""
        # This also forgets the budgets of users who ask nothing any more.
        self._budgets.throttled(time.monotonic())
        if self._history:
            histories = self.coordinator.histories(time.monotonic())
            self._in_saver(self._history.save, histories)
        if self.limits:
            self._in_saver(self.limits.save, self.coordinator.limits())
        if self.learnt:
            self._in_saver(self.learnt.save, self.coordinator.learnt())

    def save_operations(self) -> None:
        """Archive the operations that have ended since the last call."""
        completed, runs = self._completed, self._left_runs
        if self.archive is None or not (completed or runs):
            return
        self._completed, self._left_runs = [], []
        add = self.archive.add
        self._in_saver(lambda what: add(*what), (completed, runs))

    def retry_folders(self) -> None:
        """Try again to put folders of jobs on their targets, if it is time."""
        if self.partitioner:
            self.partitioner.retry(time.monotonic())

    def note_alive(self) -> None:
        """Let the archive note that this daemon records now."""
        if self.archive:
            self._saver.submit(self.archive.note_alive).add_done_callback(_log_failure)

    def close_days(self) -> None:
        """Let the archive move the days that are over to Parquet files."""
        if self.archive:
            self._saver.submit(self.archive.close_days).add_done_callback(_log_failure)

    def _in_saver(self, save: Callable[[_T], None], what: _T) -> None:
        """Call `save` in the thread of the saver; a failure is logged."""
        self._saver.submit(save, what).add_done_callback(_log_failure)

    def close(self) -> None:
        """Stop the loop and save the history of all jobs, as far as files answer."""
        _LOG.debug("the controller stops")
        if self._task:
            self._task.cancel()
        self.save()
        if self.archive:
            output = self.coordinator.stop(time.monotonic())
            self._completed += output.completed
            self._left_runs += output.left_runs
            self.save_operations()
            self.note_alive()
        for kept in (self._history, self.archive):
            if kept:
                self._saver.submit(kept.close).add_done_callback(_log_failure)
        self._compiler.end(0.0, drops=True)
        self._questions.close()
        if self.partitioner:
            self.partitioner.close()
        if not self._saver.end(_SAVE_S):
            _LOG.warning(
                "the end does not wait any longer for the files of histories and of "
                "the archive: they do not answer"
            )


def _log_failure(saved: Future[None]) -> None:
    error = None if saved.cancelled() else saved.exception()
    if error is not None:
        _LOG.error("what is known was not saved", exc_info=error)


def _compile(policy: str) -> None:
    """Compile a policy by its name; raise `InputError` if it cannot be used live."""
    from penstock.live.control.rates.job_columns import prepare  # noqa: PLC0415 - agents need no compiler
    from penstock.policies import get_policy  # noqa: PLC0415

    bound_policy = get_policy(policy)
    check_usable(bound_policy)
    # Errors in the policy's code are reported when the controller uses the policy.
    with suppress(PenstockError):
        prepare(bound_policy)


def check_usable(policy: Policy) -> None:
    """Raise `InputError` if a policy needs what only a simulation knows."""
    from penstock.policies.policy import Knowledge  # noqa: PLC0415 - as above

    parameter = policy.needs.get(Knowledge.DEDICATED_EVENTS)
    if parameter is None:
        return
    raise InputError(
        f"needs the parameter {parameter}: its default is derived from the "
        "dedicated mode, which is not known live",
        where=f"policy {policy.label}",
        remedy=f"e.g. {policy.name}:{parameter}=1",
    )
