# SPDX-License-Identifier: MIT
"""The coordinator: messages of agents go in, messages to agents come out.

Counters become operations (`operations`), which are reported to the controller of the
job's `storage`. A job's rate is split over the nodes on which its operation goes on.
Like the controller it has no clock and no I/O: the control loop and the tests drive it.

All messages of one instant are passed to `receive` first, then `decide` takes one
decision per storage on which something has happened. A job without an operation may
draw its `start_rate` on every node, or without limit if the bandwidth is learnt: its
next operation begins at once, and the decision follows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from math import inf, isfinite
from typing import TYPE_CHECKING, Final

from penstock.errors import InputError, PenstockError
from penstock.live.control.activity.phases import PastOperation
from penstock.live.control.activity.usage import Kind
from penstock.live.control.histories import for_namesakes, namesake_past, past_of
from penstock.live.control.names import refusal
from penstock.live.control.operations import LOOK_S, OperationTracker
from penstock.live.control.output import CoordinatorOutput
from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.control.records import AgentRecord, JobRecord
from penstock.live.control.stager import Stager, held_rate
from penstock.live.control.stagers import Stagers
from penstock.live.control.status import StatusView, find_job, throttled_users
from penstock.live.control.storage.bandwidth import BandwidthEstimator, Reason
from penstock.live.control.storage.shared_storage import SharedStorage, start_rate
from penstock.live.control.storage.storages import Storages
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    ExplainJob,
    FromAgent,
    GetJobReport,
    GetStatus,
    Grants,
    HintVolume,
    JobCounters,
    JobJoined,
    JobLeft,
    ListPastJobs,
    ListUnderWay,
    Partition,
    Refused,
    RequestHello,
    RequestReport,
    SetBandwidth,
    SetLimit,
    SetMode,
    SetPolicy,
    StatusDocument,
    TextAnswer,
    ThrottledUser,
    ToAgent,
    UserReply,
    UserRequest,
)
from penstock.staging import StagingOrder
from penstock.units import format_bandwidth

if TYPE_CHECKING:
    from penstock.live.control.placing import JobPlacer  # needs NumPy

__all__ = ["Coordinator"]

#: An agent that was silent for this many leases is forgotten.
_SILENT_LEASES: Final = 3.0
#: Number of faults that a status shows.
_FAULTS: Final = 5
_MODE_WORDS: Final = {"control": "on", "dry-run": "a dry run", "off": "off"}


class Coordinator:
    """Connects the agents with one `Controller` per storage.

    Parameters
    ----------
    controller
        The controller of the first storage. Those of other storages are made like it.
    agent_config
        Configuration that is sent to every agent.
    recall
        Returns the saved history of a job key, or None.
    stager
        What decides for each storage which jobs stage and which drain is made like
        this. None: no staging.
    estimator
        Returns what learns the bandwidth of the storage of this name. None: the
        bandwidth is the controller's capacity, and all jobs share one storage.
    """

    def __init__(
        self,
        controller: Controller,
        agent_config: AgentConfig,
        recall: Callable[[str], JobHistory | None] = lambda _: None,
        stager: Stager | None = None,
        estimator: Callable[[str], BandwidthEstimator] | None = None,
    ) -> None:
        self.controller = controller
        self._storages = Storages(controller, estimator)
        self.agent_config = agent_config
        self._recall = recall
        self._stagers = Stagers(stager) if stager else None
        #: Quality of service -> priority of jobs that have none of their own.
        self.priorities: Mapping[str, float] = {}
        #: Gives jobs storage targets when they join; None: the strategy may do so.
        self.placer: JobPlacer | None = None
        #: Returns the limit that a job key had before a restart; inf: none.
        self.kept_limit: Callable[[str], float] = lambda _: inf
        #: Job key -> why its folder is not on its storage targets.
        self.unmoved: Mapping[str, str] = {}
        #: Returns at an instant who takes too much of the controller.
        self.throttled: Callable[[float], list[ThrottledUser]] = lambda _: []
        self._jobs: dict[str, JobRecord] = {}
        self._agents: dict[str, AgentRecord] = {}
        #: Keys of jobs whose agents may have to be sent other grants. The tracker adds
        #: to the same set: it is changed in place, never replaced.
        self._stale: set[str] = set()
        self._operations = OperationTracker(agent_config.gap_s, self._stale)
        self._start_rate = inf
        self._output = CoordinatorOutput()
        self._faults: deque[str] = deque(maxlen=_FAULTS)

    # --- Messages of agents -----------------------------------------------------------

    def receive(self, agent: str, message: FromAgent, now: float) -> None:
        """Process a message of an agent."""
        if agent not in self._agents and not isinstance(message, AgentHello):
            self._send(agent, RequestHello(), now)
            return
        self._agents.setdefault(agent, AgentRecord()).received_s = now
        if isinstance(message, AgentHello):
            self._agent_hello(agent, message.job_keys, now)
        elif isinstance(message, JobJoined):
            self._job_joined(agent, message, now)
        elif isinstance(message, JobLeft):
            self._job_left(agent, message.job_key, now)
        elif isinstance(message, CounterReport):
            self._counter_report(agent, message, now)
        else:
            reply = self.answer(message, now)
            self._send(agent, UserReply(message.number, reply), now)

    def _agent_hello(self, agent: str, job_keys: Iterable[str], now: float) -> None:
        """Take over the jobs of an agent that was restarted or lost messages."""
        known = self._agents[agent].job_keys
        for key in known - set(job_keys):
            self._job_left(agent, key, now)
        for key in known:
            # The page of the job may hold any grant: send it again.
            self._jobs[key].forget_sent(agent)
        self._send(agent, self.agent_config, now)

    def _job_joined(self, agent: str, message: JobJoined, now: float) -> None:
        job = self._jobs.get(message.job_key)
        if job is None:
            job = self._register(agent, message, now)
        else:
            self._update_facts(job, message, now)
        job.claimed_nodes = message.nodes or job.claimed_nodes
        if agent not in job.counters:
            job.counters[agent] = JobCounters(
                job.key, 0, 0.0, 0.0, waiting=False, idle_s=inf
            )
            job.unread_agents.add(agent)
            self._agents[agent].job_keys.add(job.key)
        else:
            # Its `JobLeft` was lost, or it was greeted again: its page may be a new
            # one, which holds no grant.
            job.forget_sent(agent)
        if message.several_nodes or max(job.claimed_nodes, len(job.counters)) > 1:
            job.had_several_nodes = True
        self._update_nodes(job, now)
        self._stale.add(job.key)

    def _update_facts(self, job: JobRecord, message: JobJoined, now: float) -> None:
        """Take what another node knows of a job, or this node now."""
        job.take_hints(message)
        if message.history_name and not job.history_name:
            # The batch system tells the name on one node, which may be the last.
            job.history_name = message.history_name
            self._learn_from_namesakes(job, message, now)

    def _learn_from_namesakes(
        self, job: JobRecord, message: JobJoined, now: float
    ) -> None:
        """Take what earlier jobs of the name in a message teach of a job."""
        history = namesake_past(message, self._recall, now)
        if not job.predictor.past_bytes:
            self._learn(job, history)
        if history is not None:
            job.set_past(history)
        # It keeps targets on which it has files.
        may_move = not (job.has_operated or message.targets)
        if self.placer and may_move and (targets := self.placer.join_again(job)):
            self._output.retargeted[job.key] = targets

    def _learn(self, job: JobRecord, history: JobHistory | None) -> None:
        for volume_bytes in history.past_bytes if history else ():
            self._operations.learn(job, volume_bytes)

    def _storage_name(self, agent: str, name: str) -> str:
        """Return the name of a storage for all agents; "": all jobs share one."""
        if self.agent_config.prefixes:
            return ""
        # One that is local to the agent's node begins with a colon.
        return f"{agent}{name}" if name.startswith(":") else name

    def _register(self, agent: str, message: JobJoined, now: float) -> JobRecord:
        storage_name = self._storage_name(agent, message.storage)
        storage = self._storages.get(storage_name)
        history = past_of(message, self._recall, now)
        storage.controller.register(
            message.job_key,
            now,
            user=str(message.user),
            group=message.group,
            nodes=max(message.nodes, 1),
            history=history,
        )
        storage.join()
        job = JobRecord.of(message, storage, history, self.agent_config.gap_s, now)
        job.storage_name = storage_name
        job.priority = job.priority or self.priorities.get(message.qos, 0.0)
        job.policies.add(now, self._policy_label)
        self._jobs[job.key] = job
        self._learn(job, history)
        limit = self.kept_limit(job.key)
        if limit < inf:
            self._set_limit(job, limit, now)
            text = self._view(None, now).limit_answer(job).text
            self._output.changes.append(f"as before the restart: {text}")
        if self._stagers is not None and message.targets:
            self._stagers.restore(job, message.targets)
        if self.placer and (targets := self.placer.join(job, message.targets)):
            self._output.retargeted[job.key] = targets
        return job

    def _job_left(self, agent: str, job_key: str, now: float) -> None:
        job = self._jobs.get(job_key)
        if job is None or agent not in job.counters:
            return
        job.drop_agent(agent)
        self._agents[agent].job_keys.discard(job_key)
        self._stale.add(job_key)
        if job.counters:
            self._update_nodes(job, now)
            return
        if job.controlled.is_active:
            self._operations.end(job, now)
        history = self._output.left[job_key] = job.history(now)
        self._output.retargeted.pop(job_key, None)
        self._output.learnt |= for_namesakes(job.user, job.history_name, history)
        if job.has_operated:
            self._output.left_runs.append(job.run(now, left=True))
        job.storage.leave(job_key, now)
        if self.placer is not None:
            self.placer.leave(job_key)
        del self._jobs[job_key]

    def _update_nodes(self, job: JobRecord, now: float) -> None:
        if job.nodes != job.controlled.nodes:
            job.storage.is_touched = True
            job.storage.controller.set_nodes(job.key, job.nodes, now)

    def _counter_report(self, agent: str, report: CounterReport, now: float) -> None:
        for counters in report.counters:
            job = self._jobs.get(counters.job_key)
            if job is None or agent not in job.counters:
                continue
            job.read(agent, counters)
            job.count_processes()
            job.measure_draw(now)
            job.storage.read(job, now)
            if self.agent_config.mode != "off":
                self._operations.read(job, agent, now)
        self._agents[agent].throttled = report.throttled
        if report.job_count != len(self._agents[agent].job_keys):
            # A message was lost, in one direction or the other.
            self._send(agent, RequestHello(), now)

    # --- The decision -----------------------------------------------------------------

    def decide(self, now: float) -> CoordinatorOutput:
        """Take one decision; return what follows."""
        self._forget_silent_agents(now)
        self._request_reports(now)
        wake = self._decide_staging(now)
        for storage in self._storages.due(now):
            self._decide_storage(storage, now)
        wake = min(wake, self._storages.wake_s)
        self._storages.drop_unused(now)
        self._update_start_rate()
        self._send_grants(self._stale, now)
        self._stale.clear()
        output, self._output = self._output, CoordinatorOutput()
        output.ended, output.completed = self._operations.take_ended()
        output.wake = wake
        return output

    def _update_start_rate(self) -> None:
        """Set what jobs without an operation may draw on a node."""
        if self._storages.first.learns:
            return
        places = sum(len(record.job_keys) for record in self._agents.values())
        rate = start_rate(self.controller.capacity, places)
        if rate != self._start_rate:
            self._start_rate = self.controller.start_rate = rate
            self._stale.update(self._jobs.keys())

    def _decide_storage(self, storage: SharedStorage, now: float) -> None:
        """Divide the bandwidth of a storage."""
        if storage.learn(now):
            self._stale.update(storage.active)
            self._begin_spans(storage.active, now)
        decision = storage.controller.decide(now)
        if decision.fault:
            self._faults.append(decision.fault)
        self._stale.update(decision.rates.keys())
        storage.wake_s, storage.is_touched = decision.wake, False

    def _begin_spans(self, job_keys: Iterable[str], now: float) -> None:
        """Note that other circumstances hold for operations from now on."""
        for job_key in job_keys:
            job = self._jobs[job_key]
            if job.controlled.is_active:
                job.begin_span(now)

    def operations(self, job_key: str) -> list[PastOperation]:
        """Return the last operations of a job; none if the job has left."""
        job = self._jobs.get(job_key)
        return list(job.past_operations) if job else []

    def expect(self, job_key: str, volume_bytes: float) -> None:
        """Store a prediction of a job's next operation; 0 removes it."""
        if job_key in self._jobs:
            self._jobs[job_key].predictor.expected_bytes = volume_bytes

    def _forget_silent_agents(self, now: float) -> None:
        """Forget agents that are gone, and the processes on their nodes."""
        patience_s = _SILENT_LEASES * self.agent_config.lease_s
        for agent, record in list(self._agents.items()):
            if now - record.received_s > patience_s:
                for job_key in list(record.job_keys):
                    self._job_left(agent, job_key, now)
                del self._agents[agent]

    def _request_reports(self, now: float) -> None:
        """Ask for reports on operations of certain volume that should be complete."""
        for storage in self._storages.due(now):
            for job_key in storage.controller.overdue(now):
                if self._jobs[job_key].certain_bytes:
                    storage.controller.wait_for_end(job_key, now + LOOK_S)
                    for agent in self._jobs[job_key].counters:
                        self._send(agent, RequestReport([job_key]), now)

    def _decide_staging(self, now: float) -> float:
        """Ask the strategy which jobs stage and drain; return when to ask again (s).

        Drains are paced like writes. A job that may not drain now is held at a rate
        close to 0; drains in the background get what writers cannot use.
        """
        if self._stagers is None:
            return inf
        decision = self._stagers.decide(self._jobs.values(), now)
        for fault in decision.faults:
            self._add_fault(fault)
        for job in self._jobs.values():
            left_rate = decision.left.get(job.storage.name, inf)
            self._apply_order(job, decision.orders[job.key], left_rate, now)
        return decision.wake_s

    def _apply_order(
        self, job: JobRecord, order: StagingOrder, left: float, now: float
    ) -> None:
        """Apply the order of the strategy; drains may use `left` bytes/s."""
        if order.targets not in ((), job.order.targets) and self.placer is None:
            self._output.retargeted[job.key] = order.targets
        if order != job.order:
            self._stale.add(job.key)
        job.note_order(order)
        drains = order.drain or job.is_draining
        drain_rate = min(order.drain_bytes_per_s, left) if drains else 0.0
        controller = job.storage.controller
        held = held_rate(controller.capacity)
        allowed = max(drain_rate, held) if order.stage or job.staged_bytes else inf
        controller.allow(job.key, allowed, now)
        job.storage.is_touched = True

    def set_partition(self, job_key: str, partition: Partition) -> None:
        """Note that new files of a job go to these storage targets, if it is here."""
        if job_key in self._jobs:
            self._jobs[job_key].partition = partition
            self._stale.add(job_key)

    def _add_fault(self, fault: str) -> None:
        if fault not in self._faults:
            self._faults.append(fault)

    def _send_grants(self, job_keys: Iterable[str], now: float) -> None:
        """Send the changed grants of jobs, and heartbeats to all other agents."""
        changed: dict[str, Grants] = {}
        for job_key in job_keys:
            job = self._jobs.get(job_key)
            if job is None:
                continue
            if job.phases.is_active:
                job.trace.add(now, job.grant)
            for agent, rate in job.rates(self._start_rate).items():
                job.add_unsent(agent, rate, changed)
        heartbeat_s = self.agent_config.lease_s / 6.0
        for agent, record in self._agents.items():
            if agent in changed or now - record.sent_s >= heartbeat_s:
                self._send(agent, changed.get(agent) or Grants({}), now)

    def _send(self, agent: str, message: ToAgent, now: float) -> None:
        if agent in self._agents:
            self._agents[agent].sent_s = now
        self._output.messages.append((agent, message))

    # --- Requests of users ------------------------------------------------------------

    def answer(
        self, message: UserRequest, now: float
    ) -> Refused | TextAnswer | StatusDocument:
        """Return the answer to a request, or the reason why it is refused."""
        try:
            return self._answer(message, now)
        except PenstockError as error:
            return refusal(error)

    def _answer(self, message: UserRequest, now: float) -> TextAnswer | StatusDocument:
        request = message.request
        reader = None if message.trusted else message.user
        if isinstance(request, GetStatus):
            return self.status(now, reader, explains=request.explains)
        if isinstance(request, ExplainJob):
            job = find_job(self._jobs.values(), request.job_name, message)
            view = self._view(reader, now)
            return view.names.answer(view.explanation(job))
        if isinstance(request, ListPastJobs | ListUnderWay | GetJobReport):
            raise InputError("only the archive knows past jobs")
        if isinstance(request, HintVolume):
            job = find_job(self._jobs.values(), request.job_name, message)
            job.predictor.next_hint_bytes = request.volume_bytes
            return self._view(reader, now).hint_answer(job, request.volume_bytes)
        if not message.trusted:
            raise InputError(
                "only root and the user who runs the controller may change it",
                remedy="ask them",
            )
        if isinstance(request, SetLimit):
            job = find_job(self._jobs.values(), request.job_name, message)
            self._set_limit(job, request.limit, now)
            answer = self._view(reader, now).limit_answer(job)
        else:
            answer = TextAnswer(self._change(request, now))
            for job in self._jobs.values():
                job.policies.add(now, self._policy_label)
        self._output.changes.append(f"user {message.user}: {answer.text}")
        return answer

    def has_key(self, job_key: str) -> bool:
        """Return True if this job is here."""
        return job_key in self._jobs

    def has_job(self, name: str, message: UserRequest) -> bool:
        """Return True if a job of this name or key is here, which the user may see."""
        return any(name in (job.key, job.name) for job in self.seen_by(message))

    def seen_by(self, message: UserRequest) -> list[JobRecord]:
        """Return the jobs that are here and that the user may see."""
        jobs = self._jobs.values()
        return [job for job in jobs if message.trusted or job.user == message.user]

    def _change(self, request: SetPolicy | SetBandwidth | SetMode, now: float) -> str:
        """Execute a request of an operator; return a description of the change."""
        self._begin_spans(self._jobs, now)
        if isinstance(request, SetPolicy):
            for storage in self._storages:
                storage.controller.set_policy(request.policy, now)
                storage.is_touched = True
            return f"{self.controller.policy} decides"
        if isinstance(request, SetBandwidth):
            text = self._set_bandwidth(request.bandwidth, now)
            self._begin_spans(self._jobs, now)
            return text
        return self._set_mode(request, now)

    def _set_bandwidth(self, bandwidth: float | None, now: float) -> str:
        """Let all jobs share this bandwidth; None: learn that of each storage."""
        self._storages.set_bandwidth(bandwidth, now)
        for job in self._jobs.values():
            storage = self._storages.get(job.storage_name)
            if storage is not job.storage:
                storage.take_over(job.key, job.storage, now)
                job.storage = storage
        self._stale.update(self._jobs.keys())
        if bandwidth is None:
            return "the bandwidth is learnt"
        return f"{format_bandwidth(bandwidth)} are shared"

    def _set_limit(self, job: JobRecord, limit: float, now: float) -> None:
        self._begin_spans([job.key], now)
        job.storage.controller.set_limit(job.key, limit, now)
        job.lowest_limit = min(job.lowest_limit, limit)
        job.storage.is_touched = True
        self._stale.add(job.key)

    def _set_mode(self, request: SetMode, now: float) -> str:
        """Send the new mode to all agents; without control, operations end now."""
        self.agent_config.mode = request.mode
        for job in self._jobs.values():
            job.storage.controller.forget_surplus(job.key)
            if job.controlled.is_active and request.mode == "off":
                self._operations.end(job, now)
        for agent in self._agents:
            self._send(agent, self.agent_config, now)
        return f"control is {_MODE_WORDS[request.mode]}"

    def _view(
        self, reader: int | None, now: float, *, explains: bool = True
    ) -> StatusView:
        mode, stagers = self.agent_config.mode, self._stagers
        facts = (reader, mode, self._jobs, now, explains, self.unmoved)
        return StatusView(*facts, stagers=stagers)

    def status(
        self, now: float, reader: int | None = None, *, explains: bool = True
    ) -> StatusDocument:
        """Return the status of all jobs, or of those that a user may see.

        With `explains`, it says of each job why it has its grant.
        """
        bandwidth = self.controller.node_bandwidth
        view = self._view(reader, now, explains=explains)
        shown = self._storages.shown()
        return StatusDocument(
            mode=self.agent_config.mode,
            policy=self.controller.policy,
            bandwidth=next((each.bandwidth for each in shown), None),
            node_bandwidth=bandwidth if isfinite(bandwidth) else None,
            agents=sorted(self._agents),
            decisions=self._storages.decisions,
            faults=[*self._faults, *view.stalled(), *view.unmoved_jobs()],
            jobs=view.lines(),
            storages=[storage.status(now) for storage in shown],
            throttled=throttled_users(self._agents, self.throttled(now), reader),
        )

    @property
    def _policy_label(self) -> str:
        """The policy in use, or the mode if control is off or in a dry run."""
        mode = self.agent_config.mode
        return self.controller.policy if mode == "control" else mode

    def limits(self) -> dict[str, float]:
        """Return the limits that operators have set, by job key, to be saved."""
        all_limits = {key: job.controlled.limit for key, job in self._jobs.items()}
        return {key: limit for key, limit in all_limits.items() if limit < inf}

    def histories(self, now: float) -> dict[str, JobHistory]:
        """Return the history of every job, by key, to be saved."""
        return {key: job.history(now) for key, job in self._jobs.items()}

    def stop(self, now: float) -> CoordinatorOutput:
        """End all operations and return what is to be archived of all jobs.

        Their programs may go on; another controller then begins new runs of them.
        """
        output = CoordinatorOutput()
        jobs = [job for job in self._jobs.values() if job.has_operated]
        for job in jobs:
            if job.controlled.is_active:
                self._operations.end(job, now)
        _, output.completed = self._operations.take_ended()
        output.left_runs = [job.run(now, left=True) for job in jobs]
        return output

    def suggest(self, agent: str, storage: str, bandwidth: float) -> None:
        """Begin to learn with a bandwidth that was measured for writes."""
        name = self._storage_name(agent, storage)
        estimator = self._storages.get(name).estimator
        if estimator is not None:
            estimator.suggest(Kind.WRITES, bandwidth, Reason.MEASURED)

    def learnt(self) -> dict[str, dict[Kind, float]]:
        """Return the bandwidths that were learnt, by storage and kind, to be saved."""
        return self._storages.learnt()
