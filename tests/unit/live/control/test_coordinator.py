# SPDX-License-Identifier: MIT
"""Messages in, messages out: a coordinator with made-up agents and clock."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.live.control.activity.volumes import FIRST_S
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.output import CoordinatorOutput
from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.control.storage.bandwidth import BandwidthEstimator
from penstock.live.control.storage.shared_storage import SharedStorage
from penstock.live.control.storage.storages import UNUSED_S
from penstock.live.daemon.history import History
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    ControllerRequest,
    CounterReport,
    ExplainJob,
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
    ThrottledUser,
    UserReply,
    UserRequest,
)

B = 100.0
LEASE = 3.0


class Clock:
    """A clock that shows `now` until the test changes it."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Site:
    """A coordinator, and what its agents have heard."""

    def __init__(self, policy: str = "fair-share", **rest: Any) -> None:
        controller = Controller(
            policy, B, rest.pop("node_bandwidth", inf), compiled=False
        )
        agent_config = AgentConfig("control", ["/s"], 0.1, 0.1, LEASE, inf, reads=True)
        self.coordinator = Coordinator(controller, agent_config, **rest)
        self.now = 0.0
        self.rates: dict[tuple[str, str], float] = {}
        self.heard: list[tuple[str, Any]] = []
        self.jobs: dict[str, set[str]] = {}
        self.left: dict[str, JobHistory] = {}
        self.changes: list[str] = []

    def agent(self, name: str) -> None:
        self.jobs[name] = set()
        self.coordinator.receive(name, AgentHello([]), self.now)
        self.decide()

    def join(self, agent: str, job: str, user: int = 0, **rest: Any) -> None:
        facts: dict[str, Any] = {"group": "0", "nodes": 0, "volume_bytes": 0.0} | rest
        self.jobs[agent].add(job)
        self.coordinator.receive(agent, JobJoined(job, user, **facts), self.now)
        self.decide()

    def part(self, agent: str, job: str) -> None:
        self.jobs[agent].discard(job)
        self.coordinator.receive(agent, JobLeft(job), self.now)
        self.decide()

    def report(self, agent: str, job: str, volume: float, **rest: Any) -> None:
        facts = {
            "operations_begun": 1,
            "held_up_s": 0.0,
            "waiting": False,
            "idle_s": 0.0,
        } | rest
        counts = JobCounters(job, moved_bytes=volume, **facts)
        self.coordinator.receive(
            agent, CounterReport([counts], len(self.jobs[agent])), self.now
        )
        self.decide()

    def decide(self) -> CoordinatorOutput:
        output = self.coordinator.decide(self.now)
        self.heard = output.messages
        self.left |= output.left
        self.changes += output.changes
        for agent, message in output.messages:
            if isinstance(message, Grants):
                self.rates |= {(agent, j): r for j, r in message.rates.items()}
        return output

    def ask(
        self, request: ControllerRequest, *, user: int = 0, trusted: bool = True
    ) -> Any:
        message = UserRequest(7, user, trusted=trusted, request=request)
        self.coordinator.receive("n", message, self.now)
        self.decide()
        (reply,) = (m for _, m in self.heard if isinstance(m, UserReply))
        assert reply.number == 7
        return reply.reply


@pytest.fixture
def site() -> Site:
    """Return a site of one node with two jobs."""
    made = Site()
    made.agent("n")
    made.join("n", "0:a")
    made.join("n", "0:b")
    return made


# --- Operations -----------------------------------------------------------------------


def test_an_idle_job_may_begin_at_full_speed(site: Site) -> None:
    assert site.rates == {("n", "0:a"): B, ("n", "0:b"): B}


def test_operations_share_and_end(site: Site) -> None:
    site.report("n", "0:a", 10.0)
    site.now = 1.0
    site.report("n", "0:b", 10.0)
    assert site.rates == {("n", "0:a"): 50.0, ("n", "0:b"): 50.0}
    site.now = 2.0
    site.report("n", "0:b", 30.0, idle_s=0.25)
    assert site.rates == {("n", "0:a"): B, ("n", "0:b"): B}
    a, b = site.coordinator.controller.jobs()
    assert (a.is_active, b.is_active) == (True, False)
    # b lost half of the time until its last call.
    assert b.lost_s(2.0) == pytest.approx(0.375)


def test_rates_are_told_only_when_they_change(site: Site) -> None:
    site.report("n", "0:a", 10.0)
    site.now = 0.1
    site.report("n", "0:a", 20.0)
    assert site.heard == []


def test_volumes_are_learnt_and_hinted(site: Site) -> None:
    def volume(now: float, posts: int, base: float) -> float:
        site.now = now
        site.report("n", "0:a", base, operations_begun=posts)
        found = site.coordinator.controller.job("0:a").volume_bytes
        site.now = now + 0.5
        site.report("n", "0:a", base + 40.0, operations_begun=posts, idle_s=0.2)
        return found

    assert volume(1.0, 1, 0.0) == B
    assert volume(2.0, 2, 40.0) == 40.0
    answer = site.ask(HintVolume("a", 77.0)).text
    assert answer == "the next operation of a moves 77 B"
    assert volume(3.0, 3, 80.0) == 77.0
    assert volume(4.0, 4, 120.0) == 40.0


def test_a_newcomer_does_not_overtake_a_measured_operation() -> None:
    site = Site("greedy-com")
    site.agent("n")
    site.join("n", "0:a")
    site.join("n", "0:b")
    for number in (1, 2, 3):
        # Operations of 300 bytes, 3 s each at the cap; the third is half done.
        moved = 300.0 * (number - 1)
        site.now = 10.0 * number
        site.report("n", "0:a", moved, operations_begun=number)
        if number < 3:
            site.now += 5.0
            site.report("n", "0:a", moved + 300.0, operations_begun=number, idle_s=2.0)
    site.now += 1.5
    site.report("n", "0:a", 750.0, operations_begun=3)
    site.report("n", "0:b", 0.0, waiting=True)
    assert site.rates == {("n", "0:a"): B, ("n", "0:b"): 0.0}
    # Nor after it was served for a while: it may be of any length.
    site.now += 1.5
    site.report("n", "0:a", 900.0, operations_begun=3, idle_s=0.0)
    site.report("n", "0:a", 900.0, operations_begun=3, idle_s=0.2)
    assert site.rates["n", "0:b"] == B
    site.now += 2.9
    site.report("n", "0:b", 290.0)
    site.report("n", "0:a", 900.0, operations_begun=4)
    assert site.rates == {("n", "0:a"): B, ("n", "0:b"): 0.0}


def test_lengths_count_only_where_the_bandwidth_is_known() -> None:
    """The longest operation of a storage of unknown bandwidth would last no time."""
    site = Site(estimator=lambda _: BandwidthEstimator())
    site.agent("n")
    for job in ("0:a", "0:b"):
        site.join("n", job, volume_bytes=300.0)
        site.report("n", job, 0.0)
    assert site.coordinator._operations.lengths.longest_s(0) == FIRST_S
    site.ask(SetBandwidth(B))
    site.join("n", "0:c", volume_bytes=300.0)
    site.report("n", "0:c", 0.0)
    assert site.coordinator._operations.lengths.longest_s(0) == pytest.approx(
        3.0, rel=0.01
    )


def test_volumes_are_part_of_the_history() -> None:
    past = {"0:a": JobHistory(0.0, past_bytes=(40.0, 40.0))}
    site = Site(recall=past.get)
    site.agent("n")
    site.join("n", "0:a")
    assert site.coordinator.histories(0.0) == past
    site.report("n", "0:a", 0.0)
    assert site.coordinator.controller.job("0:a").volume_bytes == 40.0
    site.now = 1.0
    site.report("n", "0:a", 40.0, idle_s=0.01)
    assert not site.coordinator.controller.job("0:a").is_active
    site.part("n", "0:a")
    assert site.left["0:a"].past_bytes == (40.0, 40.0, 40.0)


def test_a_volume_given_when_a_job_joins(site: Site) -> None:
    site.join("n", "0:c", volume_bytes=33.0)
    site.report("n", "0:c", 1.0)
    assert site.coordinator.controller.job("0:c").volume_bytes == 33.0


def test_unused_share_is_lent_and_taken_back(site: Site) -> None:
    site.report("n", "0:a", 0.0)
    site.report("n", "0:b", 0.0, waiting=True)
    for step in range(1, 8):
        site.now = 0.1 * step
        site.report("n", "0:a", 1.0 * step)
        site.report("n", "0:b", 5.0 * step, waiting=True, held_up_s=site.now)
    assert site.rates["n", "0:b"] > 80.0
    assert site.coordinator.status(site.now).jobs[0].lent
    site.now = 0.8
    site.report("n", "0:a", 9.0, waiting=True)
    assert site.rates == {("n", "0:a"): 50.0, ("n", "0:b"): 50.0}


# --- Nodes ----------------------------------------------------------------------------


def test_a_rate_is_split_over_the_nodes_that_are_busy() -> None:
    site = Site()
    for node in ("m", "n"):
        site.agent(node)
        site.join(node, "0:a")
    site.report("m", "0:a", 5.0)
    assert site.rates == {("m", "0:a"): B, ("n", "0:a"): B}
    site.now = 0.1
    site.report("n", "0:a", 5.0)
    assert site.rates == {("m", "0:a"): 50.0, ("n", "0:a"): 50.0}
    site.now = 0.2
    site.report("m", "0:a", 9.0, idle_s=0.1)
    assert site.rates == {("m", "0:a"): B, ("n", "0:a"): B}
    assert site.coordinator.controller.job("0:a").is_active
    site.now = 0.3
    site.report("n", "0:a", 9.0, idle_s=0.1)
    assert not site.coordinator.controller.job("0:a").is_active
    assert site.coordinator.status(site.now).jobs[0].operations == 1


def test_a_job_has_as_many_nodes_as_agents_have_it() -> None:
    site = Site(node_bandwidth=10.0)
    site.agent("m")
    site.agent("n")
    site.join("m", "0:a")
    assert site.coordinator.controller.job("0:a").cap == 10.0
    site.join("n", "0:a")
    assert site.coordinator.controller.job("0:a").cap == 20.0
    site.part("m", "0:a")
    assert site.coordinator.controller.job("0:a").cap == 10.0
    site.join("n", "0:b", nodes=7)
    assert site.coordinator.controller.job("0:b").cap == 70.0


def test_a_job_leaves_with_its_last_node(site: Site) -> None:
    site.report("n", "0:a", 5.0)
    site.now = 3.0
    site.part("n", "0:a")
    assert site.left["0:a"] == JobHistory(0.0, iterations=0)
    assert "0:a" not in site.coordinator.controller
    site.part("n", "0:a")
    site.part("n", "0:nobody")


def test_copies_from_parts_are_no_progress_but_use_the_grant(site: Site) -> None:
    """The volume that is learnt is what the program has written, once."""
    site.report("n", "0:a", 0.0)
    site.now = 1.0
    site.report("n", "0:a", 40.0, redirected_bytes=40.0)
    line, *_ = site.coordinator.status(1.0).jobs
    assert (line.moved_bytes, line.drawn_bytes_per_s) == (40.0, 40.0)
    # It is being joined: the job draws, gets no further, and lends nothing.
    site.now = 2.0
    site.report("n", "0:a", 40.0, redirected_bytes=40.0, merged_bytes=30.0)
    line, *_ = site.coordinator.status(2.0).jobs
    assert (line.moved_bytes, line.drawn_bytes_per_s) == (40.0, 30.0)
    needs_all = [site.coordinator.controller.job("0:a").needs_all]
    site.now = 3.0
    site.report("n", "0:a", 50.0, redirected_bytes=40.0, merged_bytes=30.0)
    needs_all.append(site.coordinator.controller.job("0:a").needs_all)
    assert needs_all == [True, False]
    site.part("n", "0:a")
    assert site.left["0:a"].past_bytes == (50.0,)


def test_the_past_is_recalled() -> None:
    site = Site(recall={"0:a": JobHistory(-50.0, lost_s=5.0)}.get)
    site.agent("n")
    site.join("n", "0:a")
    assert site.coordinator.controller.job("0:a").age_s(0.0) == 50.0
    assert site.coordinator.histories(0.0) == {"0:a": JobHistory(-50.0, lost_s=5.0)}


def test_a_yield_continues_after_a_restart(tmp_path: Path) -> None:
    clock, wall = Clock(0.0), Clock(1e9)
    history = History(tmp_path / "h.sqlite", clock, wall)
    site = Site(recall=history.recall)
    site.agent("n")
    for job in ("0:a", "0:b"):
        site.join("n", job)
        site.report("n", job, 0.0, waiting=True)
    clock.now = site.now = 60.0
    for job in ("0:a", "0:b"):
        site.report("n", job, 0.0, waiting=True, held_up_s=15.0)
    before = site.coordinator.controller.job("0:a").progress_yield(60.0)
    assert before == pytest.approx(0.5)
    history.save(site.coordinator.histories(60.0))
    history.close()
    # Ten minutes later another controller starts; its agents reconnect after 2 s.
    clock.now, wall.now = 3.0, 1e9 + 660.0
    history = History(tmp_path / "h.sqlite", clock, wall)
    site = Site(recall=history.recall)
    clock.now = site.now = 5.0
    site.agent("n")
    for job in ("0:a", "0:b"):
        site.join("n", job)
        site.report("n", job, 9e3, waiting=True, operations_begun=2)
    after = site.coordinator.controller.job("0:a")
    assert after.progress_yield(5.0) == pytest.approx(before)
    assert after.age_s(5.0) == pytest.approx(60.0)
    # Users see what calls were held up, also after the restart.
    assert site.coordinator.status(5.0).jobs[0].progress_yield == pytest.approx(0.75)
    # Both jobs are controlled again, and lose half of their time again.
    assert after.progress_yield(65.0) == pytest.approx(0.5)
    history.close()


# --- Agents that come and go ----------------------------------------------------------


def test_an_unknown_agent_must_say_hello() -> None:
    site = Site()
    site.coordinator.receive("n", CounterReport([], 0), 0.0)
    site.decide()
    assert site.heard == [("n", RequestHello())]
    site.agent("n")
    assert isinstance(site.heard[0][1], AgentConfig)


def test_the_coordinator_gives_signs_of_life(site: Site) -> None:
    site.now = LEASE / 3.0
    site.coordinator.receive("n", CounterReport([], 2), site.now)
    site.decide()
    assert site.heard == [("n", Grants({}))]


def test_a_lost_message_is_detected(site: Site) -> None:
    site.coordinator.receive("n", CounterReport([], 5), site.now)
    site.decide()
    assert ("n", RequestHello()) in site.heard
    # The agent says what it has: b is gone.
    site.coordinator.receive("n", AgentHello(["0:a"]), site.now)
    site.coordinator.receive("n", JobJoined("0:a", 0, "0", 0, 0.0), site.now)
    site.decide()
    assert list(site.left) == ["0:b"]
    # And what its page may grant is not known, so it is said again.
    assert site.rates["n", "0:a"] == B


def test_an_agent_that_is_silent_for_long_is_forgotten(site: Site) -> None:
    site.now = 3.0 * LEASE + 0.1
    site.decide()
    assert set(site.left) == {"0:a", "0:b"}
    assert site.coordinator.status(site.now).agents == []


def test_counts_of_a_job_that_never_joined_are_ignored(site: Site) -> None:
    site.report("n", "0:stranger", 5.0)
    assert "0:stranger" not in site.coordinator.controller


# --- Questions ------------------------------------------------------------------------


def test_status(site: Site) -> None:
    site.report("n", "0:a", 0.0)
    site.now = 1.0
    site.report("n", "0:a", 60.0, waiting=True, held_up_s=0.5)
    status = site.ask(GetStatus())
    assert isinstance(status, StatusDocument)
    assert (status.mode, status.policy, status.bandwidth) == (
        "control",
        "fair-share",
        B,
    )
    assert status.node_bandwidth is None
    assert status.agents == ["n"]
    a, b = status.jobs
    assert (a.job_name, a.user, a.nodes) == ("a", 0, ["n"])
    assert (a.active, a.waiting, a.grant, a.drawn_bytes_per_s) == (True, True, B, 60.0)
    assert (a.demanded, a.moved_bytes, a.held_up_s) == (B, 60.0, 0.5)
    assert a.why.startswith("a may draw 100 B/s, all that it can use")
    assert (b.active, b.grant, b.drawn_bytes_per_s) == (False, B, 0.0)


def test_a_status_without_explanations(site: Site) -> None:
    site.report("n", "0:a", 0.0)
    full, short = site.ask(GetStatus()), site.ask(GetStatus(explains=False))
    assert [line.why for line in short.jobs] == ["", ""]
    lines = [replace(line, why="") for line in full.jobs]
    assert replace(full, jobs=lines) == short


def test_users_see_only_their_own_jobs(site: Site) -> None:
    site.join("n", "7:c", user=7)
    site.ask(SetPolicy("fcfs"))
    site.report("n", "0:a", 1.0)
    site.now = 1.0
    site.report("n", "7:c", 1.0)
    status = site.ask(GetStatus(), user=7, trusted=False)
    assert [line.job_name for line in status.jobs] == ["c"]
    words = site.ask(ExplainJob("c"), user=7, trusted=False).text
    assert "another user's job with 100 B/s" in words
    assert " a " not in words
    refused = site.ask(ExplainJob("a"), user=7, trusted=False)
    assert refused.reason.startswith("there is no job 'a'")
    assert "a with 100 B/s (yield" in site.ask(ExplainJob("7:c")).text


def test_users_see_only_themselves_among_the_throttled(site: Site) -> None:
    throttled = [ThrottledUser(user, "too much", 3, 1.0) for user in (7, 8)]
    site.coordinator.receive("n", CounterReport([], 0, throttled), site.now)
    shown = site.ask(GetStatus(), user=7, trusted=False).throttled
    assert shown == [ThrottledUser(7, "too much", 3, 1.0, "n")]
    assert [each.user for each in site.ask(GetStatus()).throttled] == [7, 8]


@pytest.mark.parametrize(
    "change",
    [SetPolicy("fcfs"), SetBandwidth(1.0), SetLimit("a", 1.0), SetMode("off")],
)
def test_only_the_trusted_may_change_anything(
    site: Site, change: ControllerRequest
) -> None:
    refused = site.ask(change, trusted=False)
    assert isinstance(refused, Refused)
    assert refused.reason.startswith("only root and the user who runs the controller")
    assert site.coordinator.agent_config.mode == "control"
    assert site.changes == []


def test_changes(site: Site) -> None:
    site.report("n", "0:a", 1.0)
    site.report("n", "0:b", 1.0)
    assert site.ask(SetPolicy("fcfs")).text == "fcfs decides"
    assert site.rates == {("n", "0:a"): B, ("n", "0:b"): 0.0}
    assert site.ask(SetLimit("a", 30.0)).text == "a gets 30 B/s at most"
    assert site.rates == {("n", "0:a"): 30.0, ("n", "0:b"): 70.0}
    assert site.ask(SetLimit("a", inf)).text == "a has no limit"
    assert site.ask(SetBandwidth(40.0)).text == "40 B/s are shared"
    assert site.rates == {("n", "0:a"): 40.0, ("n", "0:b"): 0.0}


def test_every_change_is_logged_with_its_user(site: Site) -> None:
    site.ask(SetBandwidth(40.0), user=7)
    site.ask(SetLimit("a", 30.0))
    site.ask(SetMode("dry-run"))
    for request in (
        GetStatus(),
        ExplainJob("a"),
        HintVolume("a", 5.0),
        SetPolicy("fast"),
    ):
        site.ask(request)
    assert site.changes == [
        "user 7: 40 B/s are shared",
        "user 0: a gets 30 B/s at most",
        "user 0: control is a dry run",
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (SetPolicy("fast"), "unknown policy 'fast'"),
        (SetBandwidth(0.0), "0.0 is not a positive bandwidth"),
        (SetLimit("x", 1.0), "there is no job 'x'"),
        (SetLimit("a", 0.0), "0.0 is not a positive bandwidth"),
    ],
)
def test_changes_that_cannot_be_made(
    site: Site, change: ControllerRequest, reason: str
) -> None:
    assert reason in site.ask(change).reason


def test_two_jobs_of_one_name(site: Site) -> None:
    site.join("n", "7:a", user=7)
    site.join("n", "8:a", user=8)
    for user in (5, 7):
        for request in (ExplainJob("a"), SetLimit("a", 5.0)):
            assert "several jobs" in site.ask(request, user=user).reason
    assert "a does no I/O" in site.ask(ExplainJob("8:a"), user=5).text


def test_off_and_on(site: Site) -> None:
    site.report("n", "0:a", 1.0)
    assert site.ask(SetMode("off")).text == "control is off"
    assert any(isinstance(m, AgentConfig) and m.mode == "off" for _, m in site.heard)
    assert not site.coordinator.controller.job("0:a").is_active
    assert "switched off" in site.ask(ExplainJob("a")).text
    site.now = 1.0
    site.report("n", "0:a", 1.0)
    assert not site.coordinator.controller.job("0:a").is_active
    assert site.ask(SetMode("control")).text == "control is on"
    site.report("n", "0:a", 2.0)
    assert site.coordinator.controller.job("0:a").is_active
    site.ask(SetMode("dry-run"))
    assert site.ask(ExplainJob("a")).text.startswith("Dry run: no call is held up")


def test_what_was_moved_in_a_dry_run_is_not_ahead_of_grants(site: Site) -> None:
    site.ask(SetMode("dry-run"))
    site.report("n", "0:a", 1.0)
    site.now = 1.0
    site.report("n", "0:a", 1e6)
    job = site.coordinator.controller.job("0:a")
    assert job.ahead_bytes > 0.0
    site.ask(SetMode("control"))
    assert job.ahead_bytes == 0.0


# --- Volumes that are sure ------------------------------------------------------------


def test_a_report_is_requested_when_a_certain_volume_should_be_complete() -> None:
    site = Site("greedy-com")
    site.agent("n")
    site.join("n", "0:a", volume_bytes=50.0)
    site.join("n", "0:b", volume_bytes=80.0)
    site.report("n", "0:a", 0.0)
    site.report("n", "0:b", 0.0)
    assert site.decide().wake == pytest.approx(0.5)
    site.now = 0.5
    site.decide()
    assert site.heard == [("n", RequestReport(["0:a"]))]
    # Its last call is still being paid for: it is neither over nor put back.
    site.report("n", "0:a", 50.0, waiting=True)
    assert site.coordinator.controller.job("0:a").is_active
    assert site.rates == {("n", "0:a"): B, ("n", "0:b"): 0.0}
    assert 0.5 < site.decide().wake < 0.52
    site.now = 0.51
    site.decide()
    assert site.heard == [("n", RequestReport(["0:a"]))]
    site.report("n", "0:a", 50.0, idle_s=0.002)
    assert not site.coordinator.controller.job("0:a").is_active
    assert site.rates == {("n", "0:a"): B, ("n", "0:b"): B}


def test_calls_after_a_certain_volume_begin_another_operation() -> None:
    site = Site()
    site.agent("n")
    site.join("n", "0:a", volume_bytes=50.0)
    site.report("n", "0:a", 10.0)
    site.now = 1.0
    site.report("n", "0:a", 60.0, idle_s=0.001)
    assert site.coordinator.status(site.now).jobs[0].operations == 1
    site.now = 1.1
    site.report("n", "0:a", 70.0, idle_s=0.001)
    assert site.coordinator.controller.job("0:a").is_active


def test_progress_does_not_change_a_certain_volume() -> None:
    site = Site()
    site.agent("n")
    site.join("n", "0:a", volume_bytes=500.0)
    site.report("n", "0:a", 0.0)
    site.now = 6.0
    # It should be complete, but was slower.
    site.decide()
    site.report("n", "0:a", 100.0)
    job = site.coordinator.controller.job("0:a")
    assert (job.volume_bytes, job.remaining_bytes(site.now)) == (500.0, 400.0)


# --- Jobs of a batch system, users who lie --------------------------------------------


def test_a_registered_job_has_its_nodes_at_once() -> None:
    site = Site(node_bandwidth=10.0)
    for agent in ("n1", "n2"):
        site.agent(agent)
    site.join("n1", "7:17", 7)
    assert site.coordinator.controller.job("7:17").cap == 10.0
    for agent in ("n1", "n2"):
        site.join(agent, "7:17", 7, group="physics", nodes=4)
    assert site.coordinator.controller.job("7:17").cap == 40.0
    assert len(site.coordinator.status(site.now).jobs) == 1


def test_a_job_named_like_the_key_of_another_job_does_not_hide_it(site: Site) -> None:
    site.join("n", "7:0:a", 7)
    assert site.ask(SetLimit("0:a", 5.0)) == TextAnswer("a gets 5 B/s at most")
    assert site.coordinator.controller.job("0:a").limit == 5.0
    answer = site.ask(ExplainJob("0:a"), user=7, trusted=False)
    assert answer.text.startswith("7:0:a does")
    assert answer.job_keys == ["7:0:a"]


def test_jobs_of_several_users_with_one_name_are_shown_by_their_keys(
    site: Site,
) -> None:
    site.join("n", "7:a", 7)
    limited = site.ask(SetLimit("7:a", 5.0))
    assert limited == TextAnswer("7:a gets 5 B/s at most", ["7:a"])
    hinted = site.ask(HintVolume("0:a", 5.0))
    assert hinted == TextAnswer("the next operation of 0:a moves 5 B", ["0:a"])
    explained = site.ask(ExplainJob("7:a"))
    assert "penstock ctl limit 7:a none" in explained.text
    assert explained.job_keys == ["7:a"]
    # Its user sees only one of them.
    own = site.ask(ExplainJob("a"), user=7, trusted=False)
    assert "penstock ctl limit a none" in own.text
    assert own.job_keys == []
    refused = site.ask(SetLimit("a", 5.0))
    assert sorted(refused.job_keys) == ["0:a", "7:a"]
    assert "ann:a" in refused.words(lambda key: key.replace("7:", "ann:"))


def test_a_predictor_is_believed_unless_volumes_repeat(site: Site) -> None:
    for number, volume in enumerate((100.0, 300.0, 200.0), 1):
        site.now += 10.0
        before = (
            0.0
            if number == 1
            else site.coordinator._jobs["0:a"].counters["n"].moved_bytes
        )
        site.report("n", "0:a", before, operations_begun=number)
        site.now += 1.0
        site.report("n", "0:a", before + volume, operations_begun=number, idle_s=0.5)
        assert len(site.coordinator.operations("0:a")) == number
    begin, end, volume = site.coordinator.operations("0:a")[-1]
    assert (end - begin, volume) == (0.5, 200.0)
    site.coordinator.expect("0:a", 777.0)
    site.coordinator.expect("0:nobody", 1.0)
    site.now += 10.0
    site.report("n", "0:a", 600.0, operations_begun=4)
    assert site.coordinator.controller.job("0:a").volume_bytes == 777.0
    assert site.coordinator.operations("0:nobody") == []


_NUMBERS = st.integers(0, 2**64 - 1)
_LIES = st.builds(
    JobCounters,
    job_key=st.just("7:liar"),
    operations_begun=st.integers(0, 2**32 - 1),
    moved_bytes=_NUMBERS.map(float),
    held_up_s=st.floats(0.0, 2e10),
    waiting=st.booleans(),
    idle_s=st.floats(0.0, 2e10),
    bypass_setups=_NUMBERS,
    uncontrolled_bytes=_NUMBERS.map(float),
    announced_bytes=_NUMBERS.map(float),
    phases=_NUMBERS,
)


@settings(deadline=None)
@given(st.lists(st.tuples(_LIES, st.floats(0.0, 1.0)), max_size=30))
def test_false_counters_of_one_job_take_nothing_from_others(
    lies: list[tuple[JobCounters, float]],
) -> None:
    site = Site()
    site.agent("n")
    site.join("n", "0:honest")
    site.join("n", "7:liar", 7)
    moved = 0.0
    for lie, wait in lies:
        site.now += wait
        moved += 1.0 + B * wait
        site.coordinator.receive("n", CounterReport([lie], 2), site.now)
        site.report("n", "0:honest", moved, waiting=True)
        assert site.coordinator.controller.job("0:honest").is_active
        assert B / 2.0 <= site.rates["n", "0:honest"] <= B
    assert not site.coordinator.status(site.now).faults


# --- A bandwidth that is learnt -------------------------------------------------------


def learning_site(*prefixes: str) -> Site:
    """Return a site whose bandwidth is learnt, with an agent n."""
    site = Site(estimator=lambda _: BandwidthEstimator())
    site.coordinator.agent_config.prefixes = list(prefixes)
    site.agent("n")
    return site


def test_a_lone_job_has_no_limit_and_two_jobs_have_shares_at_once() -> None:
    site = learning_site()
    for job in ("a", "b"):
        site.join("n", job, storage=":/x")
        site.report("n", job, 0.0, operations_begun=0, idle_s=inf)
        assert site.rates["n", job] == inf
    for step in range(1, 9):
        site.now = 0.1 * step
        moved = {"written_bytes": 10.0 * step, "written_busy_s": 0.1 * step}
        site.report("n", "a", 10.0 * step, **moved)
    assert site.rates["n", "a"] == inf
    # The first report of the second job: one decision later both have their shares.
    site.report("n", "b", 0.0)
    assert site.rates["n", "a"] == site.rates["n", "b"] == pytest.approx(50.0)
    site.part("n", "b")
    assert site.rates["n", "a"] == inf


def test_a_limit_of_an_operator_holds_for_a_lone_job() -> None:
    site = learning_site()
    site.join("n", "0:a", storage=":/x")
    site.ask(SetLimit("a", 7.0))
    site.report("n", "0:a", 1.0)
    assert site.rates["n", "0:a"] == 7.0


@pytest.mark.parametrize(
    ("prefixes", "storages"),
    [((), ["nfs server:/", "n:/dev/sda"]), (("/s",), [""])],
)
def test_jobs_share_a_storage_by_its_name_or_by_the_prefixes(
    prefixes: tuple[str, ...], storages: list[str]
) -> None:
    site = learning_site(*prefixes)
    site.join("n", "a", storage="nfs server:/")
    site.join("n", "b", storage=":/dev/sda")
    status = site.ask(GetStatus())
    assert [storage.name for storage in status.storages] == storages
    assert status.bandwidth is None


def test_the_bandwidth_becomes_a_number_and_is_learnt_again() -> None:
    site = learning_site()
    site.join("n", "a", storage=":/x")
    site.report("n", "a", 1.0)
    assert site.rates["n", "a"] == inf
    assert site.ask(SetBandwidth(50.0)).text == "50 B/s are shared"
    assert site.rates["n", "a"] == 50.0
    assert site.ask(GetStatus()).bandwidth == 50.0
    assert site.ask(SetBandwidth(None)).text == "the bandwidth is learnt"
    assert site.rates["n", "a"] == inf


def test_all_jobs_share_a_number_that_is_set_while_they_run() -> None:
    site = learning_site()
    for job in ("0:a", "0:b", "0:c"):
        if job == "0:c":
            site.ask(SetBandwidth(90.0))
        site.join("n", job, storage=":/x" if job == "0:b" else "nfs srv:/x")
        site.report("n", job, 1.0)
    assert [site.rates["n", job] for job in ("0:a", "0:b", "0:c")] == [30.0] * 3
    status = site.ask(GetStatus())
    assert [(each.name, each.active_jobs) for each in status.storages] == [("", 3)]


def test_jobs_share_their_file_system_when_learning_is_switched_on() -> None:
    site = learning_site()
    site.join("n", "0:a", storage="nfs srv:/x")
    site.ask(SetBandwidth(90.0))
    site.join("n", "0:b", storage="nfs srv:/x")
    site.join("n", "0:c", storage=":/x")
    for job in ("0:a", "0:b", "0:c"):
        site.report("n", job, 1.0)
    site.ask(SetBandwidth(None))
    status = site.ask(GetStatus())
    active = {each.name: each.active_jobs for each in status.storages}
    assert active == {"nfs srv:/x": 2, "n:/x": 1}
    assert site.rates["n", "0:c"] == inf


def test_a_job_keeps_its_past_its_operation_and_its_limit_when_it_moves() -> None:
    site = learning_site()
    site.join("n", "0:a", storage=":/x")
    site.now = 1.0
    site.report("n", "0:a", 0.0)
    site.now = 2.0
    site.report("n", "0:a", 10.0, idle_s=0.5)
    site.ask(SetLimit("a", 7.0))
    site.now = 3.0
    site.report("n", "0:a", 20.0, operations_begun=2)
    job = site.coordinator._jobs["0:a"]
    before = job.history(site.now), job.controlled.since_post_s(4.0)
    site.now = 3.5
    site.ask(SetBandwidth(70.0))
    assert job.storage.name == ""
    assert job.history(3.5).iterations == before[0].iterations
    assert job.history(3.5).release_s == before[0].release_s
    assert job.history(3.5).past_bytes == before[0].past_bytes == (10.0,)
    assert job.controlled.since_post_s(4.0) == before[1]
    assert (job.controlled.limit, site.rates["n", "0:a"]) == (7.0, 7.0)
    site.now = 5.0
    site.report("n", "0:a", 30.0, operations_begun=2, idle_s=1.0)
    assert not job.controlled.is_active
    assert job.controlled.iterations == before[0].iterations + 1


def test_only_a_storage_on_which_something_happened_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = learning_site()
    site.join("n", "0:a", storage=":/x")
    site.join("n", "0:b", storage=":/y")
    asked: list[str] = []
    decide_storage = site.coordinator._decide_storage

    def decide(storage: SharedStorage, now: float) -> None:
        asked.append(storage.name)
        decide_storage(storage, now)

    monkeypatch.setattr(site.coordinator, "_decide_storage", decide)
    site.report("n", "0:b", 1.0)
    assert asked == ["n:/y"]
    # The operation should be complete by then: its storage decides again.
    site.now = site.decide().wake
    asked.clear()
    site.decide()
    assert asked == ["n:/y"]


def test_a_storage_without_jobs_is_dropped_when_what_it_learnt_is_saved() -> None:
    site = learning_site()
    for job, storage in (("0:a", ":/x"), ("0:b", ":/y")):
        site.join("n", job, storage=storage)
        site.report("n", job, 1.0)
    decisions = site.ask(GetStatus()).decisions
    site.part("n", "0:a")
    assert {each.name for each in site.coordinator._storages} == {"", "n:/x", "n:/y"}
    site.now = UNUSED_S + 1.0
    site.report("n", "0:b", 2.0)
    site.agent("n")
    assert {each.name for each in site.coordinator._storages} == {"", "n:/y"}
    assert site.coordinator.status(site.now).decisions >= decisions


def test_a_policy_is_replaced_on_every_storage() -> None:
    site = learning_site()
    site.join("n", "a", storage=":/x")
    site.join("n", "b", storage=":/y")
    site.ask(SetPolicy("fcfs"))
    assert {storage.controller.policy for storage in site.coordinator._storages} == {
        "fcfs"
    }


def test_a_measured_bandwidth_is_where_learning_begins() -> None:
    site = learning_site()
    site.coordinator.suggest("n", ":/x", 33.0)
    site.join("n", "a", storage=":/x")
    (storage,) = site.ask(GetStatus()).storages
    assert storage.beliefs["writes"].bandwidth == 33.0
    assert storage.beliefs["writes"].why == "measured at the start"
    assert storage.beliefs["writes"].age_s is None


@pytest.mark.parametrize(
    ("quiet_s", "silent_s", "lends"),
    [
        (0.0, 2.0, False),
        # It is not inside a call, or for so long that the call hangs.
        (0.05, 2.0, True),
        (0.0, 9.0, True),
    ],
)
def test_a_job_inside_a_large_call_does_not_lend(
    site: Site, quiet_s: float, silent_s: float, lends: bool
) -> None:
    """Bytes count at the end of their call: it may draw all of its grant."""
    site.report("n", "0:a", 0.0, quiet_s=0.0)
    site.report("n", "0:b", 0.0, quiet_s=0.0)
    for _ in range(2):
        site.now += silent_s / 2.0
        site.report("n", "0:a", 0.0, quiet_s=quiet_s)
    assert site.coordinator.controller.job("0:a").is_frugal == lends


def test_a_job_that_comes_back_gets_its_grant_although_its_leave_was_lost() -> None:
    """Its page is a new one, and the controller has sent the same grant before."""
    site = Site()
    site.agent("n")
    site.join("n", "a")
    granted = site.rates.pop(("n", "a"))
    # JobLeft is lost, and the job is created again on the same node.
    site.join("n", "a")
    assert site.rates[("n", "a")] == granted
