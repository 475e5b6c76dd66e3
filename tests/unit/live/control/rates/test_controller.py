# SPDX-License-Identifier: MIT
"""The controller by itself; `tests/parity` compares it with the simulator."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError, PolicyError, UnknownNameError
from penstock.live.control.explanation import explain
from penstock.live.control.rates.controller import Controller, Decision
from penstock.live.control.rates.jobs import JobHistory, by_rate
from penstock.policies import POLICIES
from penstock.policies.policy import bind
from penstock.policies.view import View
from support.controllers import B, controller_with, decide

# --- Events ---------------------------------------------------------------------


def test_an_operation_from_begin_to_end() -> None:
    controller = controller_with("fair-share", "a", "b")
    assert decide(controller, 1.0) == {}
    controller.post("a", 2.0, 300.0)
    assert controller.decide(2.0) == Decision({"a": B}, wake=5.0)
    controller.post("b", 3.0, 100.0)
    assert controller.decide(3.0) == Decision({"a": 50.0, "b": 50.0}, wake=5.0)
    controller.complete("b", 5.0)
    assert decide(controller, 5.0) == {"a": B}
    controller.complete("a", 6.0)
    assert controller.decide(6.0) == Decision({}, wake=inf)
    a, b = controller.jobs()
    assert (a.lost_s(10.0), b.lost_s(10.0)) == (1.0, 1.0)
    assert a.progress_yield(10.0) == 0.9
    assert (a.is_active, a.rate) == (False, 0.0)
    # What precedes the first operation is no iteration.
    assert (a.iterations, a.iteration_time_s) == (0, 0.0)


@pytest.mark.parametrize("policy", ["fair-share", "fcfs", "greedy-yield", "set-10"])
def test_jobs_that_move_to_another_controller_go_on_as_before(policy: str) -> None:
    stays = controller_with(policy, "a", "b", "c")
    moves = controller_with(policy, "a", "b", "c")
    for controller in (stays, moves):
        controller.set_limit("c", 20.0, 0.0)
        for job, begin_s in (("a", 1.0), ("c", 2.0)):
            controller.post(job, begin_s, 50.0)
            controller.decide(begin_s)
            controller.complete(job, begin_s + 1.0)
        for job, begin_s in (("b", 4.0), ("a", 5.0)):
            controller.post(job, begin_s, 400.0)
            controller.decide(begin_s)
    target = moves.another(B)
    for job in ("a", "b", "c"):
        target.take_over(job, moves, 6.0)
        moves.leave(job, 6.0)
    assert moves.jobs() == []
    for controller in (stays, target):
        controller.wake(6.0)
        controller.decide(6.0)
        controller.post("c", 7.0, 100.0)
        controller.decide(7.0)
    for before, after in zip(stays.jobs(), target.jobs(), strict=True):
        assert after.rate == pytest.approx(before.rate)
        assert after.completion_s == pytest.approx(before.completion_s)
        assert after.since_post_s(7.0) == before.since_post_s(7.0)
    for controller in (stays, target):
        for job in ("a", "b", "c"):
            controller.complete(job, 8.0)
    for before, after in zip(stays.jobs(), target.jobs(), strict=True):
        assert after.iterations == before.iterations
        assert after.iteration_time_s == pytest.approx(before.iteration_time_s)
        assert after.lost_s(8.0) == pytest.approx(before.lost_s(8.0))
        assert (after.limit, after.release_s) == (before.limit, before.release_s)


def test_all_of_one_instant_is_one_decision() -> None:
    controller = controller_with("fair-share", "a", "b", "c")
    for job in ("a", "b", "c"):
        controller.post(job, 1.0, 10.0)
    assert decide(controller, 1.0) == pytest.approx(dict.fromkeys("abc", B / 3.0))
    assert controller.decisions == 1
    assert decide(controller, 1.1) == {}
    assert controller.decisions == 1


def test_an_operation_without_volume() -> None:
    controller = controller_with("fcfs", "a")
    for now in (1.0, 2.0):
        controller.post("a", now, 0.0)
        controller.complete("a", now)
        assert decide(controller, now) == {}
    job = controller.job("a")
    assert (job.iterations, job.iteration_time_s) == (1, 1.0)


def test_time_outside_of_io_is_work() -> None:
    controller = controller_with("fair-share", "a")
    for begin in (10.0, 30.0):
        controller.post("a", begin, 500.0)
        controller.decide(begin)
        controller.complete("a", begin + 5.0)
        controller.decide(begin + 5.0)
    job = controller.job("a")
    # The first operation and what precedes it are no iteration.
    assert (job.iterations, job.iteration_time_s) == (1, 15.0 + 5.0)
    assert job.progress_yield(35.0) == 1.0


def test_the_past_of_a_job_counts() -> None:
    controller = controller_with("greedy-yield", "new")
    controller.register(
        "old", 0.0, history=JobHistory(-100.0, lost_s=90.0, iterations=3)
    )
    for job in ("new", "old"):
        controller.post(job, 10.0, 1000.0)
    assert decide(controller, 10.0) == {"old": B}
    assert controller.job("old").progress_yield(10.0) == pytest.approx(
        1.0 - 90.0 / 110.0
    )


def test_more_jobs_than_there_was_room_for() -> None:
    controller = controller_with("fair-share", *map(str, range(100)))
    for job in range(100):
        controller.post(str(job), 1.0 + job, 1e9)
    assert decide(controller, 200.0) == {
        str(job): pytest.approx(1.0) for job in range(100)
    }
    for job in range(100):
        controller.leave(str(job), 201.0)
    # Of another user: the jobs that have left had a share and moved nothing.
    controller.register("last", 201.0, user="b")
    controller.post("last", 202.0, 5.0)
    assert decide(controller, 202.0) == {"last": B}


def test_a_reused_number_has_no_state_of_the_previous_job() -> None:
    controller = controller_with("fair-share", "a", "b")
    controller.post("a", 1.0, 100.0)
    controller.post("b", 1.0, 100.0)
    controller.decide(1.0)
    controller.leave("a", 2.0)
    assert decide(controller, 2.0) == {"b": B}
    controller.register("c", 3.0)
    assert controller.job("c").history(3.0) == JobHistory(3.0)


def test_time_does_not_go_back() -> None:
    controller = controller_with("fair-share", "a")
    controller.post("a", 5.0, 100.0)
    controller.decide(5.0)
    assert controller.decide(4.0).rates == {}
    controller.complete("a", 3.0)
    assert controller.job("a").lost_s(5.0) == 0.0


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda controller: controller.register("a", 0.0), "'a' is already registered"),
        (lambda controller: controller.complete("a", 0.0), "'a' has no operation"),
        (lambda controller: controller.progress("a", 0.0, 1.0), "'a' has no operation"),
        (
            lambda controller: controller.set_capacity(0.0, 0.0),
            "0.0 is not a positive bandwidth",
        ),
        (
            lambda controller: controller.set_capacity(inf, 0.0),
            "inf is not a positive bandwidth",
        ),
        (
            lambda controller: controller.set_limit("a", -1.0, 0.0),
            "-1.0 is not a positive bandwidth",
        ),
    ],
)
def test_mistakes(mistake: Callable[[Controller], None], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mistake(controller_with("fair-share", "a"))


def test_unknown_job_and_second_operation() -> None:
    controller = controller_with("fair-share", "a")
    with pytest.raises(UnknownNameError, match=r"unknown job 'b'.*known: a"):
        controller.post("b", 0.0, 1.0)
    controller.post("a", 0.0, 1.0)
    with pytest.raises(InputError, match="'a' already has an operation"):
        controller.post("a", 0.0, 1.0)


# --- Predicted volumes ---------------------------------------------------------


def test_a_volume_that_proves_too_small_is_doubled() -> None:
    controller = controller_with("fair-share", "a")
    controller.post("a", 0.0, 100.0)
    assert controller.decide(0.0).wake == 1.0
    # Nothing said that it is complete: half of it is taken to remain.
    assert controller.decide(1.0).wake == 2.0
    assert controller.job("a").volume_bytes == 200.0
    assert controller.job("a").remaining_bytes(1.0) == 100.0
    controller.progress("a", 1.5, 700.0)
    assert (
        controller.job("a").volume_bytes,
        controller.job("a").remaining_bytes(1.5),
    ) == (800.0, 100.0)


def test_progress_corrects_what_remains() -> None:
    controller = controller_with("greedy-com", "slow", "other")
    controller.post("slow", 0.0, 1000.0)
    controller.decide(0.0)
    controller.progress("slow", 5.0, 300.0)
    assert controller.job("slow").remaining_bytes(5.0) == 700.0
    # By the grant 500 would remain, and it would stay the shorter one.
    controller.post("other", 5.0, 600.0)
    assert decide(controller, 5.0) == {"other": B, "slow": 0.0}


def test_progress_alone_asks_no_policy() -> None:
    controller = controller_with("fair-share", "a")
    controller.post("a", 0.0, 1000.0)
    controller.decide(0.0)
    controller.progress("a", 1.0, 50.0)
    assert controller.decide(1.0) == Decision({}, wake=1.0 + 950.0 / B)
    assert controller.decisions == 1


def test_an_end_that_is_known_late() -> None:
    controller = controller_with("fair-share", "a", "b")
    for job in ("a", "b"):
        controller.post(job, 0.0, 1000.0)
    controller.decide(0.0)
    controller.complete("a", 10.0, ended=8.0, moved_bytes=400.0)
    # Half speed for 8 seconds; the gap of 2 was work.
    assert controller.job("a").lost_s(10.0) == pytest.approx(4.0)
    controller.decide(10.0)
    controller.post("a", 11.0, 1.0)
    controller.decide(11.0)
    controller.complete("a", 11.0)
    assert controller.job("a").iteration_time_s == pytest.approx(3.0 + 1.0 / B)


def test_a_late_end_never_gives_back_more_than_was_lost() -> None:
    controller = controller_with("fcfs", "first", "a")
    controller.post("first", 0.0, 1e6)
    controller.post("a", 0.0, 1e6)
    controller.decide(0.0)
    controller.complete("a", 9.0, ended=-5.0)
    assert controller.job("a").lost_s(9.0) == 0.0


# --- Changes by operators ----------------------------------------------------------


def test_a_limit_is_a_cap() -> None:
    controller = controller_with("fcfs", "a", "b")
    controller.post("a", 0.0, 1e6)
    controller.post("b", 1.0, 1e6)
    controller.decide(1.0)
    controller.set_limit("a", 30.0, 2.0)
    assert decide(controller, 2.0) == {"a": 30.0, "b": 70.0}
    # Limited by the operator it loses nothing to the policy.
    lost = controller.job("a").lost_s(2.0)
    assert controller.job("a").lost_s(20.0) == lost
    controller.set_limit("a", inf, 20.0)
    assert decide(controller, 20.0) == {"a": B, "b": 0.0}


def test_another_capacity() -> None:
    controller = controller_with("fair-share", "a", "b")
    controller.post("a", 0.0, 1e6)
    controller.decide(0.0)
    controller.set_capacity(40.0, 1.0)
    assert decide(controller, 1.0) == {"a": 40.0}
    controller.set_capacity(400.0, 2.0)
    assert decide(controller, 2.0) == {"a": 400.0}


def test_caps_follow_the_nodes() -> None:
    controller = Controller("fair-share", B, 10.0, compiled=False)
    controller.register("a", 0.0, nodes=3)
    controller.register("b", 0.0, nodes=30, cap=55.0)
    assert [job.cap for job in controller.jobs()] == [30.0, 55.0]
    controller.set_nodes("a", 5, 0.0)
    assert controller.job("a").cap == 50.0


def test_another_policy_decides_at_once() -> None:
    controller = controller_with("fair-share", "a", "b")
    controller.post("a", 0.0, 1e6)
    controller.post("b", 1.0, 1e6)
    controller.decide(1.0)
    controller.set_policy("fcfs", 2.0)
    assert controller.policy == "fcfs"
    assert decide(controller, 2.0) == {"a": B, "b": 0.0}
    with pytest.raises(UnknownNameError):
        controller.set_policy("no-such-policy", 3.0)
    assert controller.policy == "fcfs"


def test_a_policy_that_wants_to_be_woken() -> None:
    controller = controller_with("periodic-greedy-yield:delta=2,clock=event", "a", "b")
    for job in ("a", "b"):
        controller.post(job, 10.0, 1e6)
    assert controller.decide(10.0).wake == 12.0
    assert controller.job("a").rate == B
    assert controller.decide(12.0).rates == {"a": 0.0, "b": B}


def broken(view: View, rates: object) -> float:
    """Fail when there are two jobs."""
    rates[view.active[0]] = view.capacity  # type: ignore[index]
    return 1.0 / (2 - view.n_active)


def greedy(view: View, rates: object) -> float:
    """Give everybody everything."""
    for position in range(view.n_active):
        i = view.active[position]
        rates[i] = view.cap[i]  # type: ignore[index]
    return inf


@pytest.mark.parametrize(
    ("allocate", "reason"),
    [(broken, "ZeroDivisionError"), (greedy, "more in total than the capacity")],
)
def test_a_policy_that_fails_is_replaced(
    allocate: Callable[..., float], reason: str
) -> None:
    controller = Controller(bind("mine", allocate, (), {}), B)
    for job in ("a", "b"):
        controller.register(job, 0.0)
        controller.post(job, 1.0, 1e6)
    decision = controller.decide(1.0)
    assert reason in decision.fault
    assert "fair-share decides from now on" in decision.fault
    assert decision.rates == {"a": 50.0, "b": 50.0}
    assert controller.policy == "fair-share"


def test_a_policy_cannot_write_to_the_columns() -> None:
    def meddle(view: View, rates: object) -> float:
        view.cap[0] = 1e9
        return inf

    controller = Controller(bind("mine", meddle, (), {}), B)
    controller.register("a", 0.0)
    controller.post("a", 0.0, 1.0)
    assert "TypeError" in controller.decide(0.0).fault
    assert controller.job("a").cap == B


# --- Whatever happens -----------------------------------------------------------------

_JOBS = [f"job{number}" for number in range(5)]
_ACTIONS = (
    *("register", "post", "progress", "complete", "leave"),
    *("limit", "capacity", "nodes", "wake", "wait", "sure"),
)
_Step = tuple[str, str, float, float]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(_ACTIONS),
        st.sampled_from(_JOBS),
        st.floats(0.0, 3.0),
        st.floats(0.001, 1e6),
    ),
    max_size=60,
)


@given(st.sampled_from(sorted(POLICIES)), _STEPS)
def test_rates_keep_the_contract_whatever_happens(
    policy: str, steps: list[_Step]
) -> None:
    controller = Controller(policy, B, 20.0, compiled=False)
    for key in _JOBS[:3]:
        controller.register(key, 0.0, nodes=4)
    now = 0.0
    for action, key, delay, amount in steps:
        now += delay
        try:
            _act(controller, action, key, now, amount)
        except (InputError, PolicyError):
            continue
        decision = controller.decide(now)
        assert not decision.fault, decision.fault
        assert decision.wake > now
        jobs = controller.jobs()
        assert sum(job.rate for job in jobs) <= controller.capacity * (1 + 1e-9)
        for job in jobs:
            assert 0.0 <= job.rate <= job.cap * (1 + 1e-9)
            assert job.is_active or job.rate == 0.0
            assert -1e-9 <= job.lost_s(now) <= job.age_s(now) * (1 + 1e-9) + 1e-9
            assert explain(job, by_rate(jobs), policy, now)


def _act(
    controller: Controller, action: str, job: str, now: float, amount: float
) -> None:
    if action == "register":
        controller.register(job, now, nodes=1 + int(amount) % 7)
    elif action == "post":
        controller.post(job, now, amount)
    elif action == "progress":
        controller.progress(job, now, amount, held_up=amount > 100.0)
    elif action == "complete":
        controller.complete(job, now, ended=now - amount % 2.0, moved_bytes=amount)
    elif action == "leave":
        controller.leave(job, now)
    elif action == "limit":
        controller.set_limit(job, amount, now)
    elif action == "capacity":
        controller.set_capacity(amount, now)
    elif action == "nodes":
        controller.set_nodes(job, 1 + int(amount) % 9, now)
    elif action == "wait":
        controller.wait_for_end(job, now + amount % 1.0)
    elif action == "sure":
        controller.progress(job, now, amount, volume_bytes=5e4, held_up=False)
    else:
        controller.wake(now)


def test_the_cap_of_a_job_outlives_a_change_of_its_nodes() -> None:
    controller = Controller("fair-share", B, node_bandwidth=30.0, compiled=False)
    controller.register("a", 0.0, nodes=1, cap=50.0)
    assert controller.job("a").cap == 30.0
    controller.set_nodes("a", 3, 1.0)
    assert controller.job("a").cap == 50.0
