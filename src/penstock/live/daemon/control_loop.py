# SPDX-License-Identifier: MIT
"""The hub drives a coordinator: the time and messages go in, messages go out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from penstock.errors import InputError, PenstockError
from penstock.live.daemon.history import History
from penstock.live.staging.partitioner import Partitioner
from penstock.live.wire.messages import (
    FromAgent,
    Refused,
    SetPolicy,
    StatusDocument,
    ToAgent,
    UserReply,
    UserRequest,
)

if TYPE_CHECKING:
    from penstock.live.control.coordinator import Coordinator, CoordinatorOutput
    from penstock.live.daemon.prediction import Predictor
    from penstock.policies.policy import Policy

__all__ = ["ControlLoop", "check_usable"]

_LOG: Final = logging.getLogger("penstock.serve")
_PERIODIC: Final = "periodic-greedy-yield"
#: How long another thread waits for a status (s).
_STATUS_S: Final = 2.0
#: When to decide again after a decision that was lost (s).
_AGAIN_S: Final = 1.0


class _Link(Protocol):
    """A way to an agent."""

    def __call__(self, agent: str, message: ToAgent, /) -> None:
        """Send a message to an agent."""


class ControlLoop:
    """Drives a coordinator: gives it the time, and delivers what it says."""

    def __init__(self, coordinator: Coordinator, history: History | None) -> None:
        self.coordinator = coordinator
        self.links: dict[str, Callable[[ToAgent], None]] = {}
        """Agents in this process."""
        self.remote: _Link | None = None
        """The way to all others."""
        self.predict: Predictor | None = None
        """Who predicts the volumes of operations."""
        self.partitioner: Partitioner | None = None
        """Who puts the folders of jobs on targets."""
        self._history = history
        self._loop = asyncio.get_running_loop()
        self._due = False
        self._instant: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._saver = ThreadPoolExecutor(1, "history")
        self._compiler = ThreadPoolExecutor(1, "compiler")

    def hear(self, agent: str, message: FromAgent) -> None:
        """Take a message of an agent; the decision follows when all are heard."""
        # Nothing is imported for those who may not change anything.
        if (
            isinstance(message, UserRequest)
            and message.trusted
            and isinstance(message.request, SetPolicy)
        ):
            self._hear_later(agent, message, message.request.policy)
        else:
            self._hear(agent, message)

    def _hear_later(self, agent: str, asked: UserRequest, policy: str) -> None:
        """Have a policy compiled, in another thread, before it is used."""

        def hear(done: asyncio.Future[None]) -> None:
            error = None if done.cancelled() else done.exception()
            if isinstance(error, InputError):
                self._deliver(agent, UserReply(asked.number, Refused(str(error))))
            else:
                self._hear(agent, asked)

        done = self._loop.run_in_executor(self._compiler, _prepare, policy)
        done.add_done_callback(hear)

    def _hear(self, agent: str, message: FromAgent) -> None:
        try:
            self.coordinator.hear(agent, message, self._now())
        except Exception:  # noqa: BLE001 - the edge of the process
            # Our bug; whatever it is, the other jobs must not suffer from it.
            _LOG.exception("a message of agent %s was lost", agent)
        self._settle_soon()

    def _now(self) -> float:
        """Return the time, which stands still from a message to its decision.

        Else a job would lose the time in between, and those never delayed would not
        tie any more.
        """
        if self._instant is None:
            self._instant = time.monotonic()
        return self._instant

    def _settle_soon(self) -> None:
        if not self._due:
            self._due = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._due = False
        now, self._instant = self._now(), None
        wake = now + _AGAIN_S
        try:
            outcome = self.coordinator.settle(now)
            wake = outcome.wake
            self._carry_out(outcome)
        except Exception:  # noqa: BLE001 - the edge of the process
            _LOG.exception("a decision was lost")
        self._wake_at(wake)

    def _carry_out(self, outcome: CoordinatorOutput) -> None:
        for agent, message in outcome.messages:
            self._deliver(agent, message)
        for change in outcome.changes:
            _LOG.info("%s", change)
        if outcome.left and self._history:
            self._saver.submit(self._history.save, outcome.left)
        if self.partitioner and outcome.moved:
            self.partitioner.move(outcome.moved)
        if self.predict:
            for job in outcome.ended:
                self.predict(job, self.coordinator.operations(job))

    def _wake_at(self, instant: float) -> None:
        if self._timer:
            self._timer.cancel()
        if instant < inf:
            self._timer = self._loop.call_at(instant, self._settle)

    def _deliver(self, agent: str, message: ToAgent) -> None:
        if agent in self.links:
            self.links[agent](message)
        elif self.remote:
            self.remote(agent, message)

    def status_for_thread(self) -> StatusDocument:
        """Return how everything stands; for threads other than the loop's."""
        answer: Future[StatusDocument] = Future()

        def look() -> None:
            answer.set_result(self.coordinator.status(time.monotonic()))

        self._loop.call_soon_threadsafe(look)
        return answer.result(_STATUS_S)

    def save(self) -> None:
        """Keep what all jobs have done."""
        if self._history:
            pasts = self.coordinator.pasts(time.monotonic())
            self._saver.submit(self._history.save, pasts)

    def close(self) -> None:
        """Save once more and stop."""
        self.save()
        self._saver.shutdown()
        self._compiler.shutdown(wait=False)
        if self.partitioner:
            self.partitioner.close()
        if self._timer:
            self._timer.cancel()
        if self._history:
            self._history.close()


def _prepare(policy: str) -> None:
    """Compile a policy, if it can decide here."""
    from penstock.live.control.job_columns import prepare  # noqa: PLC0415 - agents need no compiler
    from penstock.policies import get_policy  # noqa: PLC0415

    found = get_policy(policy)
    check_usable(found)
    # What is wrong with the function itself is said when it is used.
    with suppress(PenstockError):
        prepare(found)


def check_usable(policy: Policy) -> None:
    """Refuse a policy that would wait for something that only a simulation knows."""
    if policy.name != _PERIODIC or "delta=" in policy.label:
        return
    raise InputError(
        "needs its delta: live, the dedicated mode that gives it is not known",
        where=f"policy {policy.label}",
        remedy=f"e.g. {_PERIODIC}:delta=1",
    )
