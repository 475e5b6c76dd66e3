# SPDX-License-Identifier: MIT
"""A coordinator with a staging strategy: who stages, who drains, at what rate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import msgspec
import pytest

from penstock.errors import PenstockError
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.control.stager import Stager, held_rate
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    ExplainJob,
    Grants,
    JobCounters,
    JobJoined,
    JobLeft,
    Partition,
    UserRequest,
)
from penstock.sim.forecast import live_forecast
from penstock.staging import (
    ApplicationStatus,
    Forecast,
    Situation,
    StagingOrder,
    StagingPlan,
    Strategy,
    get_strategy,
)

B = 100.0
HELD = held_rate(B)


class Node:
    """A node with jobs a and b, and what its agent was told."""

    def __init__(
        self,
        strategy: str,
        targets: int = 1,
        forecast: Callable[[float], Forecast] | None = None,
    ) -> None:
        agent_config = AgentConfig("control", ["/s"], 0.1, 0.1, 3.0, B, reads=True)
        stager = Stager(get_strategy(strategy), targets, forecast=forecast)
        controller = Controller("fair-share", B, compiled=False)
        self.coordinator = Coordinator(controller, agent_config, stager=stager)
        self.now = 0.0
        self.rates: dict[str, float] = {}
        self.stages: dict[str, bool] = {}
        self.partitions: dict[str, Partition] = {}
        self.retargeted: dict[str, tuple[int, ...]] = {}
        self.coordinator.receive("n", AgentHello([]), self.now)
        for job in "ab":
            self.coordinator.receive(
                "n", JobJoined(f"0:{job}", 0, "0", 1, 1000.0), self.now
            )
        self.decide()

    def report(self, job: str, volume: float, staged: float = 0.0, **rest: Any) -> None:
        facts = {
            "operations_begun": 1,
            "held_up_s": 0.0,
            "waiting": False,
            "idle_s": 0.0,
        } | rest
        counts = JobCounters(
            f"0:{job}", moved_bytes=volume, staged_bytes=staged, **facts
        )
        self.coordinator.receive("n", CounterReport([counts], 2), self.now)
        self.decide()

    def decide(self) -> None:
        output = self.coordinator.decide(self.now)
        self.retargeted |= output.retargeted
        for _, message in output.messages:
            if isinstance(message, Grants):
                self.rates |= message.rates
                self.stages |= message.stages
                self.partitions |= message.partitions


def test_the_second_stages_and_is_held() -> None:
    node = Node("2a")
    node.report("a", 10.0)
    assert node.rates["0:a"] == B
    node.now = 1.0
    node.report("b", 0.0, staged=50.0)
    assert node.stages == {"0:b": True}
    assert node.rates["0:a"] == pytest.approx(B, rel=0.02)
    assert node.rates["0:b"] <= HELD
    # The first is done: what the second has staged is drained at full speed.
    node.now = 2.0
    node.report("a", 110.0, idle_s=1.0)
    assert node.stages["0:b"] is False
    assert node.rates["0:b"] == B


def test_a_job_without_journals_is_not_held() -> None:
    node = Node("2a")
    node.report("a", 10.0)
    node.now = 1.0
    node.report("b", 1.0, can_stage=False)
    assert node.stages == {}
    assert node.rates["0:b"] == pytest.approx(B / 2, rel=0.02)
    # Its next program has some.
    node.now = 2.0
    node.report("b", 2.0)
    assert node.stages == {"0:b": True}
    assert node.rates["0:b"] <= HELD


def test_what_a_job_draws_alone_does_not_depend_on_its_order() -> None:
    """Forecasts divide by it: a job that may not drain must not look slow."""
    node = Node("2a")
    node.report("a", 10.0)
    node.report("b", 0.0, staged=50.0)
    assert node.rates["0:b"] <= HELD
    job = node.coordinator._jobs["0:b"]
    assert job.application.dedicated_bytes_per_s == B
    assert job.application.merges


def test_requests_of_an_earlier_run_are_known_at_once() -> None:
    node = Node("2a")
    past = JobHistory(0.0, round_bytes=40.0, pause_s=0.5)
    node.coordinator._recall = lambda _: past
    node.coordinator.receive("n", JobJoined("0:c", 0, "0", 1, 1000.0), node.now)
    job = node.coordinator._jobs["0:c"]
    assert job.application.mean_request_bytes == 40.0
    assert job.application.mean_pause_s == 0.5
    assert job.history(1.0).round_bytes == 40.0
    assert job.history(1.0).pause_s == 0.5


def test_a_job_that_has_drained_writes_to_the_files() -> None:
    node = Node("2a")
    node.report("b", 10.0, staged=0.0)
    assert node.stages == {}
    assert node.rates["0:b"] == B


def test_a_job_is_not_held_before_the_calls_that_drained_are_let_go() -> None:
    """The last step has moved all that was staged, and waits for its grant."""
    node = Node("1b")
    node.report("a", 10.0)
    node.now = 1.0
    node.report("b", 5.0)
    assert node.stages == {"0:a": True}
    node.now = 1.1
    node.report("a", 10.0, staged=20.0)
    assert node.rates["0:a"] <= HELD
    node.now = 1.2
    node.report("a", 10.0, staged=20.0, waiting=True)
    assert node.rates["0:a"] == pytest.approx(B / 2)
    node.now = 1.3
    node.report("a", 30.0, waiting=True)
    assert node.rates["0:a"] == pytest.approx(B / 2)
    node.now = 1.4
    node.report("a", 30.0)
    assert node.rates["0:a"] <= HELD


def test_drains_in_the_background_get_what_is_left() -> None:
    node = Node("controlled")
    node.report("a", 10.0)
    node.now = 1.0
    node.report("b", 0.0, staged=50.0)
    assert node.stages == {"0:b": True}
    assert node.rates["0:b"] <= HELD
    node.now = 2.0
    node.coordinator.receive("n", JobLeft("0:a"), node.now)
    node.decide()
    assert node.rates["0:b"] == B


def test_drains_in_the_background_use_the_pauses_of_writers() -> None:
    node = Node("controlled")
    node.report("a", 10.0, announced_bytes=1000.0, phases=1)
    node.report("b", 0.0, staged=50.0)
    assert node.rates["0:b"] <= HELD
    # It has announced a phase: a pause does not end it.
    node.now = 1.0
    node.report("a", 20.0, announced_bytes=1000.0, phases=1, quiet_s=0.2)
    assert node.rates["0:b"] == pytest.approx(0.99 * B)
    node.now = 1.1
    node.report("a", 21.0, announced_bytes=1000.0, phases=1, operations_begun=2)
    assert node.rates["0:b"] <= HELD
    assert node.rates["0:a"] == pytest.approx(B, rel=0.02)


def test_a_job_with_staged_data_does_not_pause() -> None:
    node = Node("1b")
    node.report("a", 10.0, announced_bytes=1000.0, phases=1)
    node.report("b", 0.0, staged=50.0, quiet_s=9.0, waiting=True)
    node.report("a", 10.0, announced_bytes=1000.0, phases=1, quiet_s=9.0, staged=5.0)
    node.now = 1.0
    node.report("b", 30.0, staged=20.0, quiet_s=9.0, waiting=True)
    assert node.rates["0:b"] > B / 3


def test_an_agent_that_comes_back_is_told_again() -> None:
    node = Node("2a")
    node.report("a", 10.0)
    node.report("b", 0.0, staged=50.0)
    node.stages.clear()
    node.now = 1.0
    node.coordinator.receive("n", AgentHello(["0:a", "0:b"]), node.now)
    node.coordinator.receive("n", JobJoined("0:b", 0, "0", 1, 0.0), node.now)
    node.decide()
    node.report("b", 0.0, staged=60.0)
    assert node.stages == {"0:b": True}


def test_staging_is_explained_to_users() -> None:
    node = Node("2a")
    node.report("a", 10.0)
    node.report("b", 0.0, staged=50.0)
    message = UserRequest(1, 0, trusted=True, request=ExplainJob("b"))
    answer = node.coordinator.answer(message, node.now)
    text = str(answer)
    assert (
        "Strategy 2a: its writes go to its journals; 50 B in its journals have to wait"
        in text
    )
    assert [line.staged_bytes for line in node.coordinator.status(node.now).jobs] == [
        0.0,
        50.0,
    ]


def test_users_are_told_that_a_job_has_no_journals() -> None:
    node = Node("2a")
    node.report("a", 10.0, can_stage=False)
    node.report("b", 0.0, can_stage=False)
    words = "It has no journals, so it is not staged."
    told = {
        name: words
        in str(
            node.coordinator.answer(
                UserRequest(1, 0, trusted=True, request=ExplainJob(name)), node.now
            )
        )
        for name in "ab"
    }
    # The first writer of this strategy writes through anyway.
    assert told == {"a": False, "b": True}


def test_agents_are_told_where_new_files_are() -> None:
    node = Node("3b", targets=2)
    place = Partition(1, "/jobs/a", 0, ("/jobs/a",))
    node.coordinator.set_partition("0:a", place)
    node.coordinator.set_partition("7:a", place)
    node.decide()
    assert node.partitions == {"0:a": place}
    node.partitions.clear()
    node.decide()
    assert node.partitions == {}
    # An agent that was restarted is told again.
    node.coordinator.receive("n", AgentHello(["0:a", "0:b"]), node.now)
    for job in "ab":
        joined = JobJoined(f"0:{job}", 0, "0", 1, 1000.0)
        node.coordinator.receive("n", joined, node.now)
    node.decide()
    assert node.partitions == {"0:a": place}


def test_a_job_on_several_nodes_is_not_redirected() -> None:
    """Number 0 goes to all its nodes, also when the second one has left again."""
    node = Node("3b", targets=2)
    place = Partition(1, "/jobs/a", 0, ("/jobs/a",))
    nowhere = Partition(0, "/jobs/a", 0, ("/jobs/a",))
    node.coordinator.set_partition("0:a", place)
    node.decide()
    assert node.partitions == {"0:a": place}
    node.coordinator.receive("m", AgentHello([]), node.now)
    node.coordinator.receive("m", JobJoined("0:a", 0, "0", 0, 0.0), node.now)
    output = node.coordinator.decide(node.now)
    told = {
        agent: message.partitions
        for agent, message in output.messages
        if isinstance(message, Grants) and message.partitions
    }
    assert told == {"n": {"0:a": nowhere}, "m": {"0:a": nowhere}}
    node.coordinator.receive("m", JobLeft("0:a"), node.now)
    node.coordinator.set_partition("0:a", msgspec.structs.replace(place, number=2))
    node.partitions.clear()
    node.decide()
    assert node.partitions == {}


def test_a_job_that_claims_several_nodes_is_not_redirected() -> None:
    node = Node("3b", targets=2)
    node.coordinator.receive("n", JobJoined("0:c", 0, "0", 4, 0.0), node.now)
    node.coordinator.set_partition("0:c", Partition(1, "/jobs/c"))
    node.decide()
    assert node.partitions == {"0:c": Partition(0, "/jobs/c")}


def test_a_job_whose_user_claims_several_nodes_is_not_redirected() -> None:
    """A stranger's number of nodes is not believed, but nothing is redirected."""
    node = Node("3b", targets=2)
    joined = JobJoined("0:c", 7, "7", 0, 0.0, several_nodes=True)
    node.coordinator.receive("n", joined, node.now)
    node.coordinator.set_partition("0:c", Partition(1, "/jobs/c"))
    node.decide()
    assert node.coordinator._jobs["0:c"].nodes == 1
    assert node.partitions == {"0:c": Partition(0, "/jobs/c")}


def test_a_static_partition_is_made_at_once() -> None:
    node = Node("3a", targets=2)
    assert node.retargeted == {"0:a": (0,), "0:b": (1,)}
    assert node.stages == {}


def test_a_static_partition_does_not_change_while_jobs_run() -> None:
    """Not when they move data, end an operation, or another job comes and goes."""
    node = Node("3a", targets=8)
    assert node.retargeted == {"0:a": (0, 1, 2, 3), "0:b": (4, 5, 6, 7)}
    node.retargeted.clear()
    node.report("a", 700.0)
    node.report("b", 10.0)
    node.now = 1.0
    node.report("a", 700.0, idle_s=1.0)
    node.report("b", 9000.0)
    node.coordinator.receive("n", JobJoined("0:c", 0, "0", 1, 1e9), node.now)
    node.decide()
    assert node.retargeted == {"0:c": (0, 1, 2, 3)}
    node.now = 2.0
    node.coordinator.receive("n", JobLeft("0:c"), node.now)
    node.report("b", 9500.0)
    assert node.retargeted == {"0:c": (0, 1, 2, 3)}


def test_the_part_of_a_job_that_comes_back_follows_its_processes() -> None:
    """The agent counts them in one run, and the next run begins with this number."""
    histories: dict[str, JobHistory] = {}
    agent_config = AgentConfig("control", ["/s"], 0.1, 0.1, 3.0, B, reads=True)
    stager = Stager(get_strategy("3a:by=processes"), 8)
    controller = Controller("fair-share", B, compiled=False)
    coordinator = Coordinator(controller, agent_config, histories.get, stager)
    coordinator.receive("n", AgentHello([]), 0.0)
    coordinator.receive("n", JobJoined("0:a", 0, "0", 1, 0.0), 0.0)
    counts = JobCounters("0:a", 1, 5.0, 0.0, waiting=False, idle_s=0.0, processes=6)
    coordinator.receive("n", CounterReport([counts], 1), 0.0)
    coordinator.receive("n", JobLeft("0:a"), 1.0)
    histories |= coordinator.decide(1.0).left
    assert histories["0:a"].processes == 6
    for job in "ab":
        coordinator.receive("n", JobJoined(f"0:{job}", 0, "0", 2, 0.0), 2.0)
    assert coordinator.decide(2.0).retargeted == {
        "0:a": (0, 1, 2, 3, 4, 5),
        "0:b": (6, 7),
    }


def test_the_job_with_the_highest_priority_drains_first() -> None:
    node = Node("2b:flush=priority")
    node.coordinator.priorities = {"urgent": 3.0}
    for job, priority, qos in (("c", 2.0, ""), ("d", 0.0, "urgent"), ("e", 0.0, "")):
        joined = JobJoined(f"0:{job}", 0, "0", 1, 0.0, "", priority, qos)
        node.coordinator.receive("n", joined, node.now)
    node.report("a", 10.0)
    for job in "bcde":
        node.now += 1.0
        node.report(job, 0.0, staged=50.0, waiting=True)
    rates = {job: node.rates[f"0:{job}"] for job in "bcde"}
    assert max(rates, key=lambda job: rates[job]) == "d"
    assert all(rate <= HELD for job, rate in rates.items() if job != "d")


def test_staging_that_may_hurt_is_reported() -> None:
    """Burst-buffer coordination, section V-D: processes that pause, and then stage."""
    node = Node("2a")
    facts = {"processes": 4, "write_calls": 40, "written_bytes": 40.0}
    node.report("b", 1.0, processes=4)
    node.now = 10.0
    node.report("b", 41.0, written_busy_s=4.0, idle_s=1.0, **facts)
    assert node.coordinator.status(node.now).faults == []
    node.report("a", 10.0)
    node.now = 11.0
    node.report("b", 41.0, staged=5.0, operations_begun=2, **facts)
    assert node.stages["0:b"]
    (fault,) = node.coordinator.status(node.now).faults
    assert "0:b: 4 processes will flush at once" in fault


def test_a_dynamic_partition_follows_the_phases() -> None:
    node = Node("3b", targets=2)
    assert node.retargeted == {"0:a": (0, 1), "0:b": (0, 1)}
    node.report("a", 10.0)
    node.report("b", 10.0)
    assert node.retargeted == {"0:a": (0,), "0:b": (1,)}
    node.now = 1.0
    node.report("a", 110.0, idle_s=1.0)
    assert node.retargeted["0:b"] == (0, 1)


def test_a_strategy_that_fails_holds_up_no_job() -> None:
    node = Node("3a", targets=1)
    node.report("a", 10.0)
    node.report("b", 10.0)
    assert node.retargeted == {}
    assert node.rates["0:a"] == node.rates["0:b"] == B / 2
    (fault,) = node.coordinator.status(node.now).faults
    assert "target" in fault


def test_staged_data_is_drained_though_the_strategy_fails() -> None:
    node = Node("3a", targets=1)
    node.report("a", 10.0, staged=5.0)
    node.report("b", 10.0)
    assert node.coordinator.status(node.now).faults
    assert node.rates["0:a"] == node.rates["0:b"] == B / 2


def test_a_strategy_that_fails_is_not_asked_again_at_once() -> None:
    answers = iter([StagingPlan([StagingOrder((0,))], wake_s=1.0)])

    def coordinate(_: Situation) -> StagingPlan:
        return next(answers)

    stager = Stager(Strategy("once", "", coordinate, {}))
    job = ApplicationStatus("a", dedicated_bytes_per_s=1.0)
    stager.decide([job], 0.0)
    assert stager.wake == 1.0
    with pytest.raises(PenstockError):
        stager.decide([job], 1.0)
    assert stager.wake == inf


def test_no_job_waits_forever() -> None:
    """A thousandth of the bandwidth, or a byte per second: a cap is never 0."""
    assert held_rate(1e9) == 1e6
    assert held_rate(10.0) == 1.0


def test_auto_follows_the_best_strategy_and_says_so() -> None:
    node = Node("auto", forecast=partial(live_forecast, targets=1))
    node.report("a", 10.0)
    assert node.stages == {}
    node.now = 5.0
    node.report("a", 500.0)
    node.report("b", 0.0, staged=50.0)
    # The first has half of its 1000 bytes left: the second waits for it.
    assert node.stages == {"0:b": True}
    request = UserRequest(1, 0, trusted=True, request=ExplainJob("b"))
    text = node.coordinator.answer(request, node.now).text  # type: ignore[union-attr]
    assert "Strategy auto follows 2a: simulated for the 2 applications" in text
    assert "mean slowdown is 1.26 with 2a, " in text
