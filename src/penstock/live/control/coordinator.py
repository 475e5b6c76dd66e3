# SPDX-License-Identifier: MIT
"""The coordinator: messages of agents go in, messages to agents come out.

It finds the operations in the counters (`phases`), tells the controller, and splits a
job's rate over the nodes on which the operation goes on. Like the controller it has no
clock and no I/O: the server and the tests drive it.

All messages of one instant are heard first, then `settle` takes one decision.
A job without operation may draw its cap on every node: its next operation begins at
once, and the decision follows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Final

from penstock.errors import InputError, PenstockError, UnavailableError
from penstock.live.control.controller import Controller
from penstock.live.control.jobs import JobHistory
from penstock.live.control.phases import PastOperation, PhaseWatch, Sample, VolumeGuess
from penstock.live.control.records import AgentRecord, Draw, JobRecord
from penstock.live.control.stager import NO_ORDER, Stager, held_rate
from penstock.live.control.status import StatusView, meant_job
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    ExplainJob,
    FromAgent,
    GetStatus,
    Grants,
    HintVolume,
    JobCounters,
    JobJoined,
    JobLeft,
    Refused,
    RequestHello,
    RequestReport,
    SetBandwidth,
    SetLimit,
    SetMode,
    SetPolicy,
    StatusDocument,
    TextAnswer,
    ToAgent,
    UserReply,
    UserRequest,
)
from penstock.staging import ApplicationStatus, StagingOrder
from penstock.units import format_bandwidth

__all__ = ["Coordinator", "CoordinatorOutput"]

#: An agent that was silent for so many leases is taken to be gone.
_SILENT_LEASES: Final = 3.0
#: When to look again at an operation that should be complete (s).
_LOOK_S: Final = 0.005
#: Faults that a status names.
_FAULTS: Final = 5


@dataclass(slots=True)
class CoordinatorOutput:
    """What follows from an instant."""

    messages: list[tuple[str, ToAgent]]
    """Agent and message, in this order."""
    wake: float
    """When to call `settle` again if nothing happens (s)."""
    left: dict[str, JobHistory]
    """Jobs that have left, with what they have done."""
    ended: set[str]
    """Jobs whose operation has ended."""
    moved: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Names of jobs whose new files go to other storage targets from now on."""
    changes: list[str] = field(default_factory=list)
    """What operators have changed, in words."""


class Coordinator:
    """Speaks with the agents for one `Controller`.

    Parameters
    ----------
    recall
        Returns what is known of a job from before, or None.
    stager
        Decides who stages and who drains; None: nobody does.
    """

    def __init__(
        self,
        controller: Controller,
        terms: AgentConfig,
        recall: Callable[[str], JobHistory | None] = lambda _: None,
        stager: Stager | None = None,
    ) -> None:
        self.controller = controller
        self.terms = terms
        self._recall = recall
        self._stager = stager
        self._jobs: dict[str, JobRecord] = {}
        self._agents: dict[str, AgentRecord] = {}
        self._stale: set[str] = set()
        self._messages: list[tuple[str, ToAgent]] = []
        self._left: dict[str, JobHistory] = {}
        self._ended: set[str] = set()
        self._moved: dict[str, tuple[int, ...]] = {}
        self._changes: list[str] = []
        self._faults: deque[str] = deque(maxlen=_FAULTS)

    # --- What agents say --------------------------------------------------------------

    def hear(self, agent: str, message: FromAgent, now: float) -> None:
        """Take a message of an agent."""
        if agent not in self._agents and not isinstance(message, AgentHello):
            self._send(agent, RequestHello(), now)
            return
        self._agents.setdefault(agent, AgentRecord()).heard = now
        if isinstance(message, AgentHello):
            self._welcome(agent, message.job_keys, now)
        elif isinstance(message, JobJoined):
            self._join(agent, message, now)
        elif isinstance(message, JobLeft):
            self._part(agent, message.job_key, now)
        elif isinstance(message, CounterReport):
            self._report(agent, message, now)
        else:
            reply = self.answer(message, now)
            self._send(agent, UserReply(message.number, reply), now)

    def lose(self, agent: str, now: float) -> None:
        """Forget an agent that is gone, and the processes on its node."""
        for job in list(self._agents[agent].jobs):
            self._part(agent, job, now)
        del self._agents[agent]

    def _welcome(self, agent: str, jobs: Iterable[str], now: float) -> None:
        """Take an agent that was restarted, or lost messages, at its word."""
        known = self._agents[agent].jobs
        for job in known - set(jobs):
            self._part(agent, job, now)
        for job in known:
            # Its page may hold anything.
            self._jobs[job].rates.pop(agent, None)
            self._jobs[job].stages.pop(agent, None)
        self._send(agent, self.terms, now)

    def _join(self, agent: str, message: JobJoined, now: float) -> None:
        it = self._jobs.get(message.job_key)
        if it is None:
            it = self._register(message, now)
        elif message.volume_bytes:
            it.guess.hint = message.volume_bytes
        it.claimed_nodes = message.nodes or it.claimed_nodes
        if agent not in it.counts:
            it.counts[agent] = JobCounters(
                message.job_key, 0, 0.0, 0.0, waiting=False, idle_s=inf
            )
            self._agents[agent].jobs.add(message.job_key)
        self._count_nodes(it, now)
        self._stale.add(message.job_key)

    def _register(self, message: JobJoined, now: float) -> JobRecord:
        self.controller.register(
            message.job_key,
            now,
            user=str(message.user),
            group=message.group,
            nodes=max(message.nodes, 1),
            past=self._recall(message.job_key),
        )
        it = JobRecord(
            message.job_key,
            message.user,
            message.nodes,
            PhaseWatch(self.terms.gap_s),
            VolumeGuess(message.volume_bytes),
            Draw(now),
        )
        self._jobs[message.job_key] = it
        return it

    def _part(self, agent: str, job: str, now: float) -> None:
        it = self._jobs.get(job)
        if it is None or agent not in it.counts:
            return
        it.moved_before += it.counts.pop(agent).moved_bytes
        it.rates.pop(agent, None)
        it.stages.pop(agent, None)
        it.watch.drop(agent)
        it.busy = it.watch.operating_nodes()
        self._agents[agent].jobs.discard(job)
        self._stale.add(job)
        if it.counts:
            self._count_nodes(it, now)
            return
        if self.controller.operates(job):
            self._complete(it, now, now, it.watch.moved)
        self._left[job] = self.controller.past(job, now)
        self.controller.leave(job, now)
        del self._jobs[job]

    def _count_nodes(self, it: JobRecord, now: float) -> None:
        if it.nodes != self.controller.nodes(it.key):
            self.controller.set_nodes(it.key, it.nodes, now)

    def _report(self, agent: str, report: CounterReport, now: float) -> None:
        for counts in report.counters:
            it = self._jobs.get(counts.job_key)
            if it is None or agent not in it.counts:
                continue
            it.counts[agent] = counts
            it.draw.see(now, it.moved)
            if self.terms.mode != "off":
                self._see(it, agent, counts, now)
        if report.job_count != len(self._agents[agent].jobs):
            # A message was lost, ours or theirs.
            self._send(agent, RequestHello(), now)

    def _see(self, it: JobRecord, agent: str, counts: JobCounters, now: float) -> None:
        """Tell the controller what the counters mean."""
        facts = (counts.posts, counts.moved_bytes, counts.held_up_s)
        said = (counts.announced_bytes, counts.phases)
        it.watch.see(agent, now, Sample(*facts, counts.waiting, counts.idle_s, *said))
        if it.watch.begins():
            _, cap = self.controller.share(it.key)
            announced = it.watch.announced
            volume, sure = (announced, True) if announced else it.guess.predict(cap)
            it.sure_volume = volume if sure else 0.0
            self.controller.post(it.key, now, volume)
            it.begun = now
            self._stale.add(it.key)
        elif it.watch.operates:
            self._follow(it, now)
        busy = it.watch.operating_nodes()
        if busy != it.busy:
            it.busy = busy
            self._stale.add(it.key)

    def _follow(self, it: JobRecord, now: float) -> None:
        """Tell the controller how far an operation is, or that it is over."""
        volume = it.sure_volume = it.watch.announced or it.sure_volume
        ended = it.watch.ends(now) or (volume and it.watch.ends_with(volume, now))
        if ended:
            self._complete(it, now, ended.at, ended.volume)
            return
        self.controller.progress(
            it.key,
            now,
            it.watch.moved,
            volume=volume,
            held_up=it.watch.was_held_up(),
            # What it has staged is drained meanwhile.
            pauses=it.quiet >= self.terms.gap_s and not it.staged,
        )
        if volume and it.watch.moved >= volume:
            # Its last call is not over yet.
            self.controller.wait_for_end(it.key, now + _LOOK_S)

    def _complete(self, it: JobRecord, now: float, ended: float, volume: float) -> None:
        self.controller.complete(it.key, now, ended=ended, moved=volume)
        it.guess.learn(volume)
        it.done.append(PastOperation(it.begun, max(ended, it.begun), volume))
        self._ended.add(it.key)
        it.operations += 1
        self._stale.add(it.key)

    # --- The decision -----------------------------------------------------------------

    def settle(self, now: float) -> CoordinatorOutput:
        """Decide, and return the messages to agents that follow."""
        patience = _SILENT_LEASES * self.terms.lease_s
        for agent in [a for a, it in self._agents.items() if now - it.heard > patience]:
            self.lose(agent, now)
        self._look(now)
        wake = self._stage(now)
        decision = self.controller.decide(now)
        if decision.fault:
            self._faults.append(decision.fault)
        self._grant(self._stale | decision.rates.keys(), now)
        self._stale.clear()
        messages, self._messages = self._messages, []
        left, self._left = self._left, {}
        over, self._ended = self._ended, set()
        moved, self._moved = self._moved, {}
        changes, self._changes = self._changes, []
        return CoordinatorOutput(
            messages, min(decision.wake, wake), left, over, moved, changes
        )

    def operations(self, job: str) -> list[PastOperation]:
        """Return the last operations of a job; none if it is gone."""
        return list(self._jobs[job].done) if job in self._jobs else []

    def expect(self, job: str, volume: float) -> None:
        """Note what a predictor expects of the next operation (bytes); 0: nothing."""
        if job in self._jobs:
            self._jobs[job].guess.expected = volume

    def _look(self, now: float) -> None:
        """Ask for a report where an operation of sure volume should be complete."""
        for job in self.controller.overdue(now):
            if self._jobs[job].sure_volume:
                self.controller.wait_for_end(job, now + _LOOK_S)
                for agent in self._jobs[job].counts:
                    self._send(agent, RequestReport([job]), now)

    def _stage(self, now: float) -> float:
        """Ask who stages and who drains; return when to ask again (s).

        Drains are paced as writes are. Who may not drain now is held at a rate next to
        nothing; in the background, drains get what writers cannot use.
        """
        if self._stager is None:
            return inf
        try:
            standings = [self._standing(it) for it in self._jobs.values()]
            orders = self._stager.decide(standings, now)
        except PenstockError as error:
            # Nobody stages, and nobody waits for who does.
            orders = dict.fromkeys(self._jobs, NO_ORDER)
            self._note_fault(str(error))
        for warning in self._stager.warnings:
            self._note_fault(warning)
        left = self._left_by_writers(orders) if self._stager.background else inf
        for key, it in self._jobs.items():
            self._obey(it, orders[key], left, now)
        return self._stager.wake

    def _obey(
        self, it: JobRecord, order: StagingOrder, left: float, now: float
    ) -> None:
        """Let a job do what it is ordered to; `left` is for drains (bytes/s)."""
        if order.targets and order.targets != it.order.targets:
            self._moved[it.name] = order.targets
        if order != it.order:
            it.order = order
            self._stale.add(it.key)
        drains = min(order.drain_rate, left) if order.drain else 0.0
        held = held_rate(self.controller.capacity)
        allowed = max(drains, held) if order.stage or it.staged else inf
        self.controller.allow(it.key, allowed, now)

    def _note_fault(self, fault: str) -> None:
        if fault not in self._faults:
            self._faults.append(fault)

    def _standing(self, it: JobRecord) -> ApplicationStatus:
        """Return a job as strategies see it."""
        operates = it.watch.operates
        return ApplicationStatus(
            it.key,
            began=it.begun if operates else inf,
            volume=it.sure_volume or it.watch.moved + it.staged,
            processes=it.nodes,
            staged=it.staged,
            blocked=it.waiting,
            bandwidth=self.controller.share(it.key)[1],
        )

    def _left_by_writers(self, orders: Mapping[str, StagingOrder]) -> float:
        """Return what is there when everybody who writes through has all it can use."""
        used = sum(
            self.controller.usable(key)
            for key, it in self._jobs.items()
            if it.watch.operates and not orders[key].stage and not it.staged
        )
        return max(self.controller.capacity - used, 0.0)

    def _grant(self, jobs: Iterable[str], now: float) -> None:
        """Send what has changed for `jobs`, and signs of life."""
        changed: dict[str, Grants] = {}
        for key in jobs:
            job = self._jobs.get(key)
            if job is None:
                continue
            for agent, rate in self._split(job).items():
                if job.rates.get(agent) != rate:
                    job.rates[agent] = rate
                    changed.setdefault(agent, Grants({}, {})).rates[key] = rate
                if job.stages.get(agent, False) != job.order.stage:
                    job.stages[agent] = job.order.stage
                    changed.setdefault(agent, Grants({}, {})).stages[key] = (
                        job.order.stage
                    )
        for agent, it in self._agents.items():
            if agent in changed or now - it.told >= self.terms.lease_s / 6.0:
                self._send(agent, changed.get(agent) or Grants({}), now)

    def _split(self, it: JobRecord) -> dict[str, float]:
        """Return the rate of a job on each of its nodes (bytes/s).

        Equal parts where its operation goes on; elsewhere it may begin at full speed.
        """
        rate, cap = self.controller.share(it.key)
        part = rate / max(len(it.busy), 1)
        full = min(cap, self.controller.node_bandwidth)
        busy = it.busy if it.watch.operates else ()
        return {agent: part if agent in busy else full for agent in it.counts}

    def _send(self, agent: str, message: ToAgent, now: float) -> None:
        if agent in self._agents:
            self._agents[agent].told = now
        self._messages.append((agent, message))

    # --- What users ask ---------------------------------------------------------------

    def answer(
        self, asked: UserRequest, now: float
    ) -> Refused | TextAnswer | StatusDocument:
        """Answer a question, or say why not."""
        try:
            return self._answer(asked, now)
        except PenstockError as error:
            return Refused(str(error), isinstance(error, UnavailableError))

    def _answer(self, asked: UserRequest, now: float) -> TextAnswer | StatusDocument:
        question = asked.request
        user = None if asked.trusted else asked.user
        if isinstance(question, GetStatus):
            return self.status(now, user)
        if isinstance(question, ExplainJob):
            it = meant_job(self._jobs.values(), question.job_name, asked)
            return TextAnswer(self._view(user, now).explanation(it))
        if isinstance(question, HintVolume):
            it = meant_job(self._jobs.values(), question.job_name, asked)
            it.guess.next_hint = question.volume_bytes
            return TextAnswer("noted")
        if not asked.trusted:
            raise InputError(
                "only root and whoever runs the controller may change it",
                remedy="ask them",
            )
        reply = self._change(asked, question, now)
        self._changes.append(f"user {asked.user}: {reply.text}")
        return reply

    def _change(
        self,
        asked: UserRequest,
        question: SetLimit | SetPolicy | SetBandwidth | SetMode,
        now: float,
    ) -> TextAnswer:
        if isinstance(question, SetLimit):
            it = meant_job(self._jobs.values(), question.job_name, asked)
            return self._limit(it, question.limit, now)
        if isinstance(question, SetPolicy):
            self.controller.set_policy(question.policy, now)
            return TextAnswer(f"{self.controller.policy} decides")
        if isinstance(question, SetBandwidth):
            self.controller.set_capacity(question.bandwidth, now)
            return TextAnswer(f"{format_bandwidth(question.bandwidth)} are shared")
        return self._switch(question, now)

    def _limit(self, it: JobRecord, limit: float, now: float) -> TextAnswer:
        self.controller.set_limit(it.key, limit, now)
        self._stale.add(it.key)
        if limit == inf:
            return TextAnswer(f"{it.name} has no limit")
        return TextAnswer(f"{it.name} gets {format_bandwidth(limit)} at most")

    def _switch(self, question: SetMode, now: float) -> TextAnswer:
        """Send the new terms; what is in progress ends, for nobody would see it end."""
        self.terms.mode = question.mode
        for it in self._jobs.values():
            if self.controller.operates(it.key) and question.mode == "off":
                self._complete(it, now, now, it.watch.moved)
                it.watch.reset()
        for agent in self._agents:
            self._send(agent, self.terms, now)
        return TextAnswer(f"control is {_MODE_WORDS[question.mode]}")

    def _view(self, user: int | None, now: float) -> StatusView:
        """Return what a user may see."""
        return StatusView(
            user,
            self.terms.mode,
            self.controller.policy,
            self._stager.strategy.label if self._stager else "nobody",
            self._jobs,
            {state.job: state for state in self.controller.states(now)},
        )

    def status(self, now: float, user: int | None = None) -> StatusDocument:
        """Return how everything stands, or what a user may see of it."""
        bandwidth = self.controller.node_bandwidth
        return StatusDocument(
            mode=self.terms.mode,
            policy=self.controller.policy,
            bandwidth=self.controller.capacity,
            node_bandwidth=bandwidth if isfinite(bandwidth) else None,
            agents=sorted(self._agents),
            decisions=self.controller.decisions,
            faults=list(self._faults),
            jobs=self._view(user, now).lines(),
        )

    def pasts(self, now: float) -> dict[str, JobHistory]:
        """Return what all jobs have done, to be remembered."""
        return {key: self.controller.past(key, now) for key in self._jobs}


_MODE_WORDS: Final = {"control": "on", "dry-run": "a dry run", "off": "off"}
