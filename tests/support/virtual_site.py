# SPDX-License-Identifier: MIT
"""A site in virtual time: a coordinator, agents, pages and programs, without a clock.

Programs alternate work and I/O. Their calls are paced as in ``native/shim/page.h``: a
call takes a start and a finish tag, moves its bytes at once when the grant reaches the
start tag, and returns when the grant reaches the finish tag. Agents report as
`penstock.live.node.agent` does: at the first call of an operation, every `report_s`
during it, and when a gap may have ended it. Each message takes one of the `delays_s`,
again and again in their order; the messages of an agent do not overtake each other.

Time advances in steps of `STEP_S`. Volumes are in bytes, rates in bytes/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count, cycle
from math import inf

from penstock.live.control.coordinator import Coordinator
from penstock.live.node.pages.page import CREDIT_S, SLACK_S
from penstock.live.wire.messages import (
    AgentHello,
    CounterReport,
    FromAgent,
    Grants,
    JobCounters,
    JobJoined,
    RequestReport,
    ToAgent,
)

__all__ = ["STEP_S", "VirtualProgram", "VirtualSite"]

STEP_S = 0.001
_EPSILON = 1e-9


@dataclass
class VirtualProgram:
    """A job on one node: phases of work (s) and volume (bytes), one after the other."""

    key: str
    phases: Sequence[tuple[float, float]]
    release_s: float = 0.0
    call_bytes: float = 65536.0
    user: int = 0
    end_s: float = inf
    """When the last phase was complete."""
    moved: list[tuple[float, float]] = field(default_factory=list)
    """Instant and bytes of every call."""

    def __post_init__(self) -> None:
        self.begun = 0
        self.total_bytes = 0.0
        self._phase = 0
        self._works_until_s = self.release_s + self.phases[0][0]
        self._left_bytes = 0.0
        # The call that waits for its start, and the finish tag of the one that began.
        self._pending_bytes, self._start_tag = 0.0, 0.0
        self._finish_tag: float | None = None
        # The curve, G(t) = granted + rate (t - since), and the bytes charged.
        self._granted, self._since_s, self._rate = 0.0, 0.0, inf
        self._charged = 0.0
        self._phase_began_s, self._last_active_s = 0.0, -inf

    @property
    def is_over(self) -> bool:
        """True if all phases are complete."""
        return self._phase == len(self.phases)

    @property
    def in_call(self) -> bool:
        """True if a call is under way."""
        return self._finish_tag is not None or self._pending_bytes > 0.0

    def idle_s(self, now: float) -> float:
        """Return the time since the last call (s)."""
        return 0.0 if self.in_call else now - self._last_active_s

    def grant(self, rate: float, now: float) -> None:
        """Continue the curve at another rate."""
        if self._rate == inf:
            self._granted = self._charged
        else:
            self._granted += self._rate * (now - self._since_s)
        self._since_s, self._rate = now, rate

    def step(self, now: float, gap_s: float) -> bool:
        """Do what the program does until `now`; return True if an operation begins."""
        if self.is_over or now < self._works_until_s:
            return False
        posts = False
        if self._left_bytes == 0.0 and not self.in_call:
            self._left_bytes = self.phases[self._phase][1]
            if now - self._last_active_s > gap_s:
                posts, self._phase_began_s = True, now
                self.begun += 1
            self._last_active_s = now
        while self._advance(now):
            pass
        if self._left_bytes == 0.0 and not self.in_call:
            self._end_phase(now)
        return posts

    def _end_phase(self, now: float) -> None:
        self._phase += 1
        self._last_active_s = now
        if self.is_over:
            self.end_s = now
        else:
            self._works_until_s = now + self.phases[self._phase][0]

    def _advance(self, now: float) -> bool:
        """Begin or end a call; return False if it has to wait or there is none."""
        granted = self._granted + self._rate * (now - self._since_s)
        reached = granted + SLACK_S * self._rate + _EPSILON
        if self._finish_tag is not None:
            if self._finish_tag > reached:
                return False
            self._finish_tag, self._last_active_s = None, now
            return self._left_bytes > 0.0
        if self._pending_bytes == 0.0:
            if self._left_bytes == 0.0:
                return False
            self._charge(granted, now)
        if self._rate == 0.0 or self._start_tag > reached:
            return False
        self._left_bytes = max(self._left_bytes - self._pending_bytes, 0.0)
        self.total_bytes += self._pending_bytes
        self.moved.append((now, self._pending_bytes))
        self._finish_tag = self._start_tag + self._pending_bytes
        self._pending_bytes = 0.0
        return True

    def _charge(self, granted: float, now: float) -> None:
        """Charge the next call and take its start tag."""
        self._pending_bytes = min(self.call_bytes, self._left_bytes)
        self._start_tag = self._charged
        if self._rate < inf:
            credit = self._rate * min(CREDIT_S, now - self._phase_began_s)
            self._start_tag = max(self._charged, granted - credit)
        self._charged = self._start_tag + self._pending_bytes


class VirtualSite:
    """A coordinator and one agent for each program."""

    def __init__(
        self,
        coordinator: Coordinator,
        programs: Sequence[VirtualProgram],
        delays_s: Sequence[float] = (0.0,),
    ) -> None:
        self.coordinator = coordinator
        self.programs = {f"n{i}": program for i, program in enumerate(programs)}
        self.now = 0.0
        self._delays_s = cycle(delays_s)
        self._latest_s: dict[tuple[str, bool], float] = {}
        self._order = count()
        self._to_controller: list[tuple[float, int, str, FromAgent]] = []
        self._to_agents: list[tuple[float, int, str, ToAgent]] = []
        self._due_s = dict.fromkeys(self.programs, inf)
        self._joined: set[str] = set()
        self._wake_s = 0.0

    def run(self, until_s: float) -> None:
        """Advance to `until_s`, or until all programs are over."""
        while self.now < until_s and not all(
            program.is_over for program in self.programs.values()
        ):
            for agent, program in self.programs.items():
                if program.release_s <= self.now + STEP_S:
                    self._step(agent, program)
            self._turn()
            self._deliver()
            self.now += STEP_S

    def _step(self, agent: str, program: VirtualProgram) -> None:
        if agent not in self._joined:
            self._joined.add(agent)
            self._send(agent, AgentHello([]))
            self._send(agent, JobJoined(program.key, program.user, "0", 0, 0.0))
            self._report(agent)
        posts = program.step(self.now, self.coordinator.agent_config.gap_s)
        if posts or self._due_s[agent] <= self.now + _EPSILON:
            self._report(agent)

    def _report(self, agent: str) -> None:
        config, program = self.coordinator.agent_config, self.programs[agent]
        idle_s = min(program.idle_s(self.now), 1e6)
        counters = JobCounters(
            program.key,
            program.begun,
            program.total_bytes,
            0.0,
            waiting=program.in_call,
            idle_s=idle_s,
            quiet_s=idle_s,
        )
        self._send(agent, CounterReport([counters], 1))
        pause_s = config.report_s if idle_s < config.gap_s else config.lease_s / 3.0
        if idle_s < config.gap_s and not program.in_call:
            pause_s = min(pause_s, config.gap_s - idle_s)
        self._due_s[agent] = self.now + max(pause_s, STEP_S)

    def _send(self, agent: str, message: FromAgent) -> None:
        due_s = self._arrival_s(agent, upwards=True)
        heappush(self._to_controller, (due_s, next(self._order), agent, message))

    def _arrival_s(self, agent: str, *, upwards: bool) -> float:
        """Return when a message that is sent now arrives (s)."""
        before_s = self._latest_s.get((agent, upwards), 0.0)
        due_s = max(self.now + next(self._delays_s), before_s)
        self._latest_s[agent, upwards] = due_s
        return due_s

    def _turn(self) -> None:
        """Run one turn of the control loop, if there is a message or a wake-up."""
        turns = self._wake_s <= self.now
        while self._to_controller and self._to_controller[0][0] <= self.now + _EPSILON:
            _, _, agent, message = heappop(self._to_controller)
            self.coordinator.receive(agent, message, self.now)
            turns = True
        if not turns:
            return
        output = self.coordinator.decide(self.now)
        self._wake_s = output.wake
        for agent, answer in output.messages:
            due_s = self._arrival_s(agent, upwards=False)
            heappush(self._to_agents, (due_s, next(self._order), agent, answer))

    def _deliver(self) -> None:
        """Let the agents carry out the messages that have arrived."""
        while self._to_agents and self._to_agents[0][0] <= self.now + _EPSILON:
            _, _, agent, answer = heappop(self._to_agents)
            if isinstance(answer, Grants):
                for rate in answer.rates.values():
                    self.programs[agent].grant(rate, self.now)
            elif isinstance(answer, RequestReport):
                self._report(agent)

    def busiest_bytes(self, window_s: float = 1.0) -> float:
        """Return the most that all programs moved in any window of this length."""
        calls = sorted(call for p in self.programs.values() for call in p.moved)
        most = inside = 0.0
        first = 0
        for now, size_bytes in calls:
            inside += size_bytes
            while calls[first][0] <= now - window_s:
                inside -= calls[first][1]
                first += 1
            most = max(most, inside)
        return most
