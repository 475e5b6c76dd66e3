# SPDX-License-Identifier: MIT
"""Records of agents and jobs that the coordinator keeps beside the controller.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from statistics import fmean
from typing import Final

import msgspec

from penstock.live.control.activity.loss_spans import LossSpans
from penstock.live.control.activity.phases import PastOperation, PhaseDetector
from penstock.live.control.activity.requests import RequestCounts, RequestMeter
from penstock.live.control.activity.usage import Usage
from penstock.live.control.activity.volumes import VolumePredictor
from penstock.live.control.past import (
    CompletedOperation,
    GrantTrace,
    JobRun,
    PolicyTrace,
)
from penstock.live.control.rates.jobs import ControlledJob, JobHistory
from penstock.live.control.stager import NO_ORDER
from penstock.live.control.storage.shared_storage import SharedStorage
from penstock.live.wire.messages import (
    Grants,
    JobCounters,
    JobJoined,
    Partition,
    ThrottledUser,
)
from penstock.staging import ApplicationStatus, StagingOrder

__all__ = ["DRAW_S", "AgentRecord", "JobRecord"]

#: Interval over which the rate that a job draws is measured, at least.
DRAW_S: Final = 0.5
#: A call that takes longer than this does not move bytes all the time: it hangs, or
#: syncs.
_LARGE_CALL_S: Final = 5.0
#: Number of past operations that a predictor may use.
_PAST_OPERATIONS: Final = 64


@dataclass(slots=True)
class AgentRecord:
    """An agent that has connected and sent its hello."""

    received_s: float = 0.0
    """When its last message arrived."""
    sent_s: float = -inf
    """When the last message was sent to it."""
    job_keys: set[str] = field(default_factory=set)
    """Jobs on its node."""
    throttled: list[ThrottledUser] = field(default_factory=list)
    """Users who lately took too much of it."""


@dataclass(slots=True)
class JobRecord:
    """A job in the coordinator: its counters on each node, and what its agents know."""

    key: str
    user: int
    """User id."""
    claimed_nodes: int
    """Number of nodes as claimed by a trusted caller; 0: count the agents."""
    storage: SharedStorage
    """The storage that it shares with other jobs."""
    phases: PhaseDetector
    predictor: VolumePredictor
    draw_since_s: float
    """Begin of the interval over which `draw` is measured."""
    joined_s: float
    """When it was registered."""
    storage_name: str = ""
    """Name of the file system of its folder; "": not known."""
    counters: dict[str, JobCounters] = field(default_factory=dict)
    """Agent -> latest counters."""
    sent_rates: dict[str, float] = field(default_factory=dict)
    """Agent -> rate last sent to it."""
    sent_stages: dict[str, bool] = field(default_factory=dict)
    """Agent -> whether its last order was to stage the job's writes."""
    partition: Partition | None = None
    """The storage targets that its new files go to; None: not known."""
    had_several_nodes: bool = False
    """True from the moment when it has more than one node until it ends."""
    sent_partitions: dict[str, Partition] = field(default_factory=dict)
    """Agent -> partition last sent to it."""
    is_merging: bool = False
    """True if the last report shows that parts are being merged."""
    busy_agents: list[str] = field(default_factory=list)
    """Agents on whose nodes the operation goes on."""
    unread_agents: set[str] = field(default_factory=set)
    """Agents that have not reported the job yet."""
    moved_before_bytes: float = 0.0
    """Volume in the first reports of agents: moved before the job was registered."""
    moved_elsewhere_bytes: float = 0.0
    """Volume moved on nodes that the job has left."""
    held_up_elsewhere_s: float = 0.0
    """`held_up_s` of nodes that the job has left."""
    has_history: bool = False
    """True if it ran before, under the same name: its age counts from then."""
    history_name: str = ""
    """Name by which the batch system knows jobs like it; "": its own name."""
    volume_hinted: bool = False
    """True if the volume of the present operation was announced before it began."""
    certain_bytes: float = 0.0
    """Volume of the present operation, if it is certain; else 0."""
    operations: int = 0
    """Operations completed."""
    past_operations: deque[PastOperation] = field(
        default_factory=lambda: deque(maxlen=_PAST_OPERATIONS)
    )
    """The last operations completed."""
    trace: GrantTrace = field(default_factory=GrantTrace)
    """Grants of the present operation."""
    policies: PolicyTrace = field(default_factory=PolicyTrace)
    """The policies that it has seen."""
    lost_before_s: float = 0.0
    """Time that it had lost when it was registered, in earlier runs."""
    lost_here_s: float = 0.0
    """Time that operations which have ended have lost since then."""
    lowest_limit: float = inf
    """Lowest limit that an operator has set since it was registered; inf: none."""
    held_up_at_post_s: float = 0.0
    """`held_up_s` when the present operation began."""
    spans: LossSpans = field(default_factory=LossSpans)
    """Time that the present operation has lost, as users see it."""
    order: StagingOrder = NO_ORDER
    """What the staging strategy has ordered."""
    is_draining: bool = False
    """True while it drains, and until the calls that drained are no longer held up."""
    placement: str = ""
    """Which storage targets it was given when it joined, and why, in a sentence."""
    priority: float = 0.0
    """Priority among jobs that want to drain: the highest goes first."""
    hint_work_s: float = 0.0
    """Time for which it computes between two operations, announced; 0: unknown."""
    most_processes: int = 0
    """Most processes at a time, in this run or the one before; 0: not counted."""
    requests: RequestMeter = field(default_factory=RequestMeter)
    """Its requests and pauses."""
    draw: float = 0.0
    """Rate that the job draws, measured over `DRAW_S` or more."""
    _draw_base_bytes: float = 0.0
    read_s: float = -inf
    """When its last report arrived."""
    moved_s: float = -inf
    """When the operation began, or the last report that showed new bytes."""
    _seen_bytes: float = 0.0

    @classmethod
    def of(
        cls,
        message: JobJoined,
        storage: SharedStorage,
        history: JobHistory | None,
        gap_s: float,
        now: float,
    ) -> JobRecord:
        """Return the record of a job that joins now and goes on with its history."""
        return cls(
            message.job_key,
            message.user,
            message.nodes,
            storage,
            PhaseDetector(gap_s),
            VolumePredictor(message.volume_bytes),
            draw_since_s=now,
            joined_s=now,
            has_history=history is not None and history.release_s < now,
            history_name=message.history_name,
            priority=message.priority,
            hint_work_s=message.work_s,
            most_processes=history.processes if history else 0,
            lost_before_s=history.shown_lost_s if history else 0.0,
            requests=RequestMeter(history.round_bytes, history.pause_s)
            if history
            else RequestMeter(),
        )

    def take_hints(self, message: JobJoined) -> None:
        """Take what its user has announced after it has joined."""
        self.predictor.hint_bytes = message.volume_bytes or self.predictor.hint_bytes
        self.hint_work_s = message.work_s or self.hint_work_s
        # It may be that of its QOS, which its user cannot raise.
        self.priority = min(message.priority or self.priority, self.priority)

    def set_past(self, history: JobHistory) -> None:
        """Take what earlier runs teach, if that becomes known after it has joined."""
        if not self.has_operated:
            self.storage.controller.set_past(self.key, history)
            self.most_processes = max(self.most_processes, history.processes)
            self.requests = RequestMeter(history.round_bytes, history.pause_s)

    @property
    def known_name(self) -> str:
        """The name that its user chose: in the batch system, else its own."""
        return self.history_name or self.name

    @property
    def name(self) -> str:
        """The name that its user has given it."""
        return self.key.partition(":")[2]

    @property
    def controlled(self) -> ControlledJob:
        """The job in the controller of its storage."""
        return self.storage.controller.job(self.key)

    @property
    def is_announced(self) -> bool:
        """True if the volume of its operation was announced."""
        return self.volume_hinted or self.phases.announced_bytes > 0.0

    @property
    def is_free(self) -> bool:
        """True if it is not held to a share: see `storage`."""
        storage = self.storage
        return storage.is_free or (storage.learns and not self.controlled.is_active)

    @property
    def nodes(self) -> int:
        """Number of nodes, as claimed or as counted."""
        return self.claimed_nodes or max(len(self.counters), 1)

    @property
    def moved_bytes(self) -> float:
        """Volume moved on all nodes since it began, also under other controllers."""
        here = sum(counters.moved_bytes for counters in self.counters.values())
        return self.moved_elsewhere_bytes + here

    @property
    def redirected_bytes(self) -> float:
        """Volume on its nodes that went to parts on other targets."""
        return sum(counters.redirected_bytes for counters in self.counters.values())

    @property
    def merged_bytes(self) -> float:
        """Volume copied from parts into files on its nodes, besides `moved_bytes`."""
        return sum(counters.merged_bytes for counters in self.counters.values())

    @property
    def held_up_s(self) -> float:
        """Time that its calls were held up, added over callers."""
        here = sum(counters.held_up_s for counters in self.counters.values())
        return self.held_up_elsewhere_s + here

    @property
    def would_hold_up_s(self) -> float:
        """Time for which dry runs would have held up its calls, as `held_up_s`."""
        return sum(counters.would_hold_up_s for counters in self.counters.values())

    @property
    def is_waiting(self) -> bool:
        """True if one of its calls is held up now."""
        return any(counters.waiting for counters in self.counters.values())

    def note_order(self, order: StagingOrder) -> None:
        """Take the order of the strategy.

        A drain moves a step, and then waits until its grant covers the step. So calls
        may be held up when nothing is left to drain. They are let go at the rate of the
        drain: the program waits for them.
        """
        self.order = order
        if self.staged_bytes > 0:
            self.is_draining = order.drain
        else:
            self.is_draining = self.is_draining and self.is_waiting

    @property
    def is_unbacked(self) -> bool:
        """True if its processes claim bytes that the kernel has not counted."""
        return any(counters.unbacked for counters in self.counters.values())

    def read(self, agent: str, counters: JobCounters) -> None:
        """Take the counters of an agent.

        The first ones are the zero point: after a restart of the controller, they hold
        what the job did before.
        """
        is_first = agent in self.unread_agents
        before = self.counters.get(agent, counters)
        self.is_merging = not is_first and counters.merged_bytes > before.merged_bytes
        self.counters[agent] = counters
        if is_first:
            self.unread_agents.remove(agent)
            self.moved_before_bytes += counters.moved_bytes
            transferred_bytes = counters.moved_bytes + counters.merged_bytes
            self._draw_base_bytes += transferred_bytes
            self._seen_bytes += transferred_bytes

    def drop_agent(self, agent: str) -> None:
        """Forget an agent whose node the job has left; what it did there counts."""
        counters = self.counters.pop(agent)
        self.unread_agents.discard(agent)
        self.moved_elsewhere_bytes += counters.moved_bytes
        self.held_up_elsewhere_s += counters.held_up_s
        self.forget_sent(agent)
        self.phases.drop_node(agent)
        self.busy_agents = self.phases.busy_nodes()

    def add_unsent(self, agent: str, rate: float, grants: dict[str, Grants]) -> None:
        """Add to the grants of an agent what has changed since the last ones."""
        stage, partition = self.order.stage, self._sendable_partition()
        if self.sent_rates.get(agent) != rate:
            self.sent_rates[agent] = rate
            grants.setdefault(agent, Grants({}, {})).rates[self.key] = rate
        if self.sent_stages.get(agent, False) != stage:
            self.sent_stages[agent] = stage
            grants.setdefault(agent, Grants({}, {})).stages[self.key] = stage
        if partition is not None and self.sent_partitions.get(agent) != partition:
            self.sent_partitions[agent] = partition
            orders = grants.setdefault(agent, Grants({}, {}))
            orders.partitions[self.key] = partition

    def _sendable_partition(self) -> Partition | None:
        """Return the partition; number 0, which redirects nothing, for several nodes.

        A node does not see that a file is open on another one: merging its part would
        overwrite what the other node has written since.
        """
        if self.partition is None or not self.had_several_nodes:
            return self.partition
        return msgspec.structs.replace(self.partition, number=0)

    def forget_sent(self, agent: str) -> None:
        """Forget what was sent to an agent, so that all of it is sent again."""
        self.sent_rates.pop(agent, None)
        self.sent_stages.pop(agent, None)
        self.sent_partitions.pop(agent, None)

    @property
    def staged_bytes(self) -> float:
        """Volume in its journals that is not in the files yet."""
        return sum(counters.staged_bytes for counters in self.counters.values())

    @property
    def idle_s(self) -> float:
        """Time since the last I/O on any node."""
        return min(
            (counters.idle_s for counters in self.counters.values()), default=inf
        )

    def is_drawing(self, now: float) -> bool:
        """Return True if `draw` holds now: a job that computes is not reported."""
        idle_s = now - self.read_s + self.idle_s
        return self.controlled.is_active or idle_s < DRAW_S

    @property
    def quiet_s(self) -> float:
        """Time since the last call of a program on any node."""
        return min(
            (counters.quiet_s for counters in self.counters.values()), default=inf
        )

    @property
    def usage(self) -> Usage:
        """What it has done on its present nodes so far."""
        # One pass, because every report asks for this.
        read_bytes = written_bytes = busy_s = held_up_s = 0.0
        in_call = False
        for each in self.counters.values():
            read_bytes += each.read_bytes
            written_bytes += each.written_bytes
            busy_s += each.read_busy_s + each.written_busy_s
            held_up_s += each.held_up_s + each.would_hold_up_s
            in_call = in_call or each.quiet_s == 0.0
        return Usage(read_bytes, written_bytes, busy_s, held_up_s, in_call)

    @property
    def application(self) -> ApplicationStatus:
        """The job in the form that staging strategies take."""
        return ApplicationStatus(
            self.key,
            phase_began_s=self.phases.began_s if self.phases.is_active else inf,
            phase_bytes=self.certain_bytes or self.predictor.likely_bytes,
            processes=self.processes,
            nodes=self.nodes,
            priority=self.priority,
            staged_bytes=self.staged_bytes,
            is_blocked=self.is_waiting,
            mean_request_bytes=self.requests.round_bytes,
            mean_pause_s=self.requests.pause_s,
            # Not its cap, which is close to nothing while it may not drain.
            dedicated_bytes_per_s=self.full_rate,
            written_bytes=self.phase_written_bytes,
            merges=True,
            can_stage=any(each.can_stage for each in self.counters.values()),
            next_phase_s=self.next_phase_s,
            work_s=self.usual_work_s,
        )

    @property
    def phase_written_bytes(self) -> float:
        """Volume that its operation has written, staged data included; 0: none."""
        moved_bytes = self.phases.moved_bytes + self.staged_bytes
        return moved_bytes if self.phases.is_active else 0.0

    @property
    def next_phase_s(self) -> float:
        """When its next operation is expected; inf: one is under way, or not known.

        Expected is the usual work after the end of the last operation.
        """
        if self.phases.is_active or not self.past_operations:
            return inf
        return self.past_operations[-1].end_s + self.usual_work_s

    @property
    def usual_work_s(self) -> float:
        """Time between two operations, announced or the mean; inf: not known.

        Without two operations in this run, that is the mean of earlier ones, less the
        transfer at the present rate: the bandwidth may have been another one then.
        """
        if self.hint_work_s:
            return self.hint_work_s
        ends = pairwise(self.past_operations)
        if pauses := [after.begin_s - before.end_s for before, after in ends]:
            return max(fmean(pauses), 0.0)
        controlled, volume_bytes = self.controlled, self.predictor.likely_bytes
        if controlled.iterations == 0 or volume_bytes == 0.0:
            return inf
        iteration_s = controlled.iteration_time_s / controlled.iterations
        return max(iteration_s - volume_bytes / self.full_rate, 0.0)

    @property
    def processes(self) -> int:
        """Number of processes that do the work, at least one on each node."""
        return max(self.most_processes, self.nodes)

    @property
    def request_counts(self) -> RequestCounts:
        """What its processes have done on its present nodes so far."""
        counters = self.counters.values()
        return RequestCounts(
            sum(each.write_calls for each in counters),
            sum(each.written_bytes for each in counters),
            sum(
                each.read_busy_s + each.written_busy_s + each.held_up_s
                for each in counters
            ),
            # The nodes pause together, or the job does not pause.
            max((each.pauses for each in counters), default=0),
            max((each.paused_s for each in counters), default=0.0),
            self.merged_bytes,
        )

    def measure_requests(self, ended: PastOperation) -> None:
        """Learn from an operation that has ended just now, unless it was staged."""
        if not (self.order.stage or self.staged_bytes):
            length_s = ended.end_s - ended.begin_s
            self.requests.end(self.request_counts, length_s, self.processes)

    def count_processes(self) -> None:
        """Update `most_processes` after a report."""
        counted = sum(each.processes for each in self.counters.values())
        self.most_processes = max(self.most_processes, counted)

    @property
    def full_rate(self) -> float:
        """What it can draw if no other job has I/O (bytes/s)."""
        controlled, capacity = self.controlled, self.storage.controller.capacity
        return min(controlled.bandwidth, controlled.limit, capacity)

    def rates(self, start_rate: float) -> dict[str, float]:
        """Return what it may draw on each of its nodes.

        The nodes on which its operation goes on share the grant equally. On the other
        nodes an operation may begin: the job may draw what a node can, but at most
        `start_rate` unless the bandwidth is learnt.
        """
        controlled, storage = self.controlled, self.storage
        part = self.grant / max(len(self.busy_agents), 1)
        cap = min(controlled.cap, start_rate)
        most = controlled.alone if storage.learns else cap
        full = min(most, storage.controller.node_bandwidth)
        busy = self.busy_agents if self.phases.is_active else ()
        return {agent: part if agent in busy else full for agent in self.counters}

    @property
    def grant(self) -> float:
        """What it may draw on all nodes together."""
        is_free = self.storage.is_free
        return self.controlled.alone if is_free else self.controlled.grant

    def begin_operation(self, now: float) -> None:
        """Begin to record what is archived of an operation, and to watch its calls."""
        self.moved_s = now
        self.trace = GrantTrace()
        self.held_up_at_post_s = self.held_up_s
        self.spans = LossSpans()
        self.requests.begin(self.request_counts)
        self.begin_span(now)

    def begin_span(self, now: float) -> None:
        """Begin a new span of `spans`: other circumstances hold from now on."""
        is_free = self.storage.is_free
        self.spans.begin(self.controlled.lost_s(now), self.held_up_s, is_free=is_free)

    def lost_s(self, now: float) -> float:
        """Return the time that it has lost since its release, as users see it.

        See `LossSpans`. Policies read another number, `ControlledJob.lost_s`.
        """
        return self.lost_before_s + self._lost_since_joining_s(now)

    def _lost_since_joining_s(self, now: float) -> float:
        under_way_s = self._operation_lost_s(now) if self.controlled.is_active else 0.0
        return self.lost_here_s + under_way_s

    def progress_yield(self, now: float) -> float:
        """Return 1 - lost time / age, as users see it."""
        age_s = self.controlled.age_s(now)
        return 1.0 - self.lost_s(now) / age_s if age_s > 0.0 else 1.0

    @property
    def _operation_held_up_s(self) -> float:
        return max(self.held_up_s - self.held_up_at_post_s, 0.0)

    def _operation_lost_s(self, now: float) -> float:
        """Return the time that the present operation has lost, or the last one."""
        return self.spans.lost_s(self.controlled.lost_s(now), self.held_up_s)

    @property
    def has_operated(self) -> bool:
        """True if it has had an operation here: if not, nothing is known of its I/O."""
        return self.operations > 0 or self.controlled.is_active

    def run(self, now: float, *, left: bool = False) -> JobRun:
        """Return what it has done by now, to be archived."""
        return JobRun(
            job_key=self.key,
            user=self.user,
            storage=self.storage_name,
            nodes=self.nodes,
            joined_s=self.joined_s,
            left_s=now if left else None,
            lost_s=self._lost_since_joining_s(now),
            moved_bytes=self.moved_bytes - self.moved_before_bytes,
            cap=self.controlled.bandwidth,
            policy=self.policies.last,
            policies=tuple(self.policies.steps),
            limit=self.lowest_limit,
            # A new job has not moved anything when it is registered.
            missing="begin" if self.moved_before_bytes > 0.0 else "",
        )

    def completed(self, ended: PastOperation, now: float) -> CompletedOperation:
        """Return an operation that has ended just now, to be archived."""
        bandwidth = self.storage.bandwidth
        return CompletedOperation(
            *ended,
            held_up_s=self._operation_held_up_s,
            lost_s=self._operation_lost_s(now),
            capacity=inf if bandwidth is None else bandwidth,
            policy=self.policies.last,
            grants=tuple(self.trace.steps),
        )

    def under_way(self, now: float) -> tuple[JobRun, CompletedOperation | None]:
        """Return what it has done by now, and its operation as if it ended now."""
        if not self.controlled.is_active:
            return self.run(now), None
        present = PastOperation(self.phases.began_s, now, self.phases.moved_bytes)
        return self.run(now), self.completed(present, now)

    def history(self, now: float) -> JobHistory:
        """Return what it has done by now, to be saved."""
        return replace(
            self.controlled.history(now),
            past_bytes=tuple(self.predictor.past_bytes),
            shown_lost_s=self.lost_s(now),
            processes=self.most_processes,
            round_bytes=self.requests.round_bytes,
            pause_s=self.requests.pause_s,
            is_lasting=not self.history_name,
        )

    def is_in_large_call(self, now: float) -> bool:
        """Return True if a call is under way and has brought no bytes yet.

        Bytes count at the end of their call: nobody knows yet how much the job draws.
        """
        silent_s = now - self.moved_s
        in_call = any(each.quiet_s == 0.0 for each in self.counters.values())
        return in_call and 0.0 < silent_s < _LARGE_CALL_S

    def measure_draw(self, now: float) -> None:
        """Update `draw` after a report, if the interval of measurement is over."""
        self.read_s = now
        transferred_bytes = self.moved_bytes + self.merged_bytes
        if transferred_bytes != self._seen_bytes:
            self._seen_bytes, self.moved_s = transferred_bytes, now
        elapsed_s = now - self.draw_since_s
        if elapsed_s >= DRAW_S:
            # A node that leaves takes what it has merged with it.
            drawn_bytes = max(transferred_bytes - self._draw_base_bytes, 0.0)
            self.draw = drawn_bytes / elapsed_s
            self.draw_since_s, self._draw_base_bytes = now, transferred_bytes
