# SPDX-License-Identifier: MIT
"""The controller by itself; `tests/parity` compares it with the simulator."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError, PolicyError, UnknownNameError
from penstock.live.control.controller import Controller, Decision
from penstock.live.control.jobs import JobHistory, by_rate, explain
from penstock.live.control.lending import LEND_AFTER_S, LEND_FLOOR
from penstock.policies import POLICIES
from penstock.policies.policy import bind
from penstock.policies.view import View

B = 100.0


def words_about(it: Controller, job: str, now: float) -> str:
    """Return why a job has what it has."""
    return explain(it.state(job, now), by_rate(it.states(now)), it.policy)


def controller(policy: str = "fair-share", *jobs: str, **rest: float) -> Controller:
    """Return an interpreted controller with jobs that can each use all of B."""
    made = Controller(policy, B, compiled=False, **rest)  # type: ignore[arg-type]
    for job in jobs:
        made.register(job, 0.0)
    return made


def decide(it: Controller, now: float) -> dict[str, float]:
    """Decide, and return the rates that change."""
    decision = it.decide(now)
    assert decision.wake > now
    assert not decision.fault
    return decision.rates


# --- What happens ---------------------------------------------------------------------


def test_an_operation_from_begin_to_end() -> None:
    it = controller("fair-share", "a", "b")
    assert decide(it, 1.0) == {}
    it.post("a", 2.0, 300.0)
    assert it.decide(2.0) == Decision({"a": B}, wake=5.0)
    it.post("b", 3.0, 100.0)
    assert it.decide(3.0) == Decision({"a": 50.0, "b": 50.0}, wake=5.0)
    it.complete("b", 5.0)
    assert decide(it, 5.0) == {"a": B}
    it.complete("a", 6.0)
    assert it.decide(6.0) == Decision({}, wake=inf)
    a, b = it.states(10.0)
    assert (a.lost, b.lost) == (1.0, 1.0)
    assert a.progress_yield == 0.9
    assert (a.active, a.rate, a.iterations, a.iteration_time) == (False, 0.0, 1, 5.0)


def test_all_of_one_instant_is_one_decision() -> None:
    it = controller("fair-share", "a", "b", "c")
    for job in ("a", "b", "c"):
        it.post(job, 1.0, 10.0)
    assert decide(it, 1.0) == pytest.approx(dict.fromkeys("abc", B / 3.0))
    assert it.decisions == 1
    assert decide(it, 1.1) == {}
    assert it.decisions == 1


def test_an_operation_without_volume() -> None:
    it = controller("fcfs", "a")
    it.post("a", 1.0, 0.0)
    it.complete("a", 1.0)
    assert decide(it, 1.0) == {}
    assert it.state("a", 2.0).iterations == 1


def test_time_outside_of_io_is_work() -> None:
    it = controller("fair-share", "a")
    for begin in (10.0, 30.0):
        it.post("a", begin, 500.0)
        it.decide(begin)
        it.complete("a", begin + 5.0)
        it.decide(begin + 5.0)
    state = it.state("a", 35.0)
    assert (state.iterations, state.iteration_time) == (2, 10.0 + 5.0 + 15.0 + 5.0)
    assert state.progress_yield == 1.0


def test_the_past_of_a_job_counts() -> None:
    it = controller("greedy-yield", "new")
    it.register("old", 0.0, past=JobHistory(-100.0, lost=90.0, iterations=3))
    for job in ("new", "old"):
        it.post(job, 10.0, 1000.0)
    assert decide(it, 10.0) == {"old": B}
    assert it.state("old", 10.0).progress_yield == pytest.approx(1.0 - 90.0 / 110.0)


def test_more_jobs_than_there_was_room_for() -> None:
    it = controller("fair-share", *map(str, range(100)))
    for job in range(100):
        it.post(str(job), 1.0 + job, 1e9)
    assert decide(it, 200.0) == {str(job): pytest.approx(1.0) for job in range(100)}
    for job in range(100):
        it.leave(str(job), 201.0)
    it.register("last", 201.0)
    it.post("last", 202.0, 5.0)
    assert decide(it, 202.0) == {"last": B}


def test_a_number_that_is_used_again_knows_nothing_of_the_job_before() -> None:
    it = controller("fair-share", "a", "b")
    it.post("a", 1.0, 100.0)
    it.post("b", 1.0, 100.0)
    it.decide(1.0)
    it.leave("a", 2.0)
    assert decide(it, 2.0) == {"b": B}
    it.register("c", 3.0)
    state = it.state("c", 3.0)
    assert (state.lost, state.iterations, state.iteration_time) == (0.0, 0, 0.0)


def test_time_does_not_go_back() -> None:
    it = controller("fair-share", "a")
    it.post("a", 5.0, 100.0)
    it.decide(5.0)
    assert it.decide(4.0).rates == {}
    it.complete("a", 3.0)
    assert it.state("a", 5.0).lost == 0.0


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda it: it.register("a", 0.0), "'a' is there already"),
        (lambda it: it.complete("a", 0.0), "'a' has no operation"),
        (lambda it: it.progress("a", 0.0, 1.0), "'a' has no operation"),
        (lambda it: it.set_capacity(0.0, 0.0), "0.0 is not a positive bandwidth"),
        (lambda it: it.set_capacity(inf, 0.0), "inf is not a positive bandwidth"),
        (lambda it: it.set_limit("a", -1.0, 0.0), "-1.0 is not a positive bandwidth"),
    ],
)
def test_mistakes(mistake: Callable[[Controller], None], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mistake(controller("fair-share", "a"))


def test_unknown_job_and_second_operation() -> None:
    it = controller("fair-share", "a")
    with pytest.raises(UnknownNameError, match=r"unknown job 'b'.*known: a"):
        it.post("b", 0.0, 1.0)
    it.post("a", 0.0, 1.0)
    with pytest.raises(InputError, match="'a' has an operation"):
        it.post("a", 0.0, 1.0)


# --- Volumes that are guesses ---------------------------------------------------------


def test_a_volume_that_proves_too_small_is_doubled() -> None:
    it = controller("fair-share", "a")
    it.post("a", 0.0, 100.0)
    assert it.decide(0.0).wake == 1.0
    # Nothing said that it is complete: half of it is taken to remain.
    assert it.decide(1.0).wake == 2.0
    assert it.state("a", 1.0).volume == 200.0
    assert it.state("a", 1.0).remaining == 100.0
    it.progress("a", 1.5, 700.0)
    assert (it.state("a", 1.5).volume, it.state("a", 1.5).remaining) == (800.0, 100.0)


def test_progress_corrects_what_remains() -> None:
    it = controller("greedy-com", "slow", "other")
    it.post("slow", 0.0, 1000.0)
    it.decide(0.0)
    it.progress("slow", 5.0, 100.0)
    assert it.state("slow", 5.0).remaining == 900.0
    # By the grant 500 would remain, and it would stay the shorter one.
    it.post("other", 5.0, 800.0)
    assert decide(it, 5.0) == {"other": B, "slow": 0.0}


def test_progress_alone_asks_no_policy() -> None:
    it = controller("fair-share", "a")
    it.post("a", 0.0, 1000.0)
    it.decide(0.0)
    it.progress("a", 1.0, 50.0)
    assert it.decide(1.0) == Decision({}, wake=1.0 + 950.0 / B)
    assert it.decisions == 1


def test_an_end_that_is_known_late() -> None:
    it = controller("fair-share", "a", "b")
    for job in ("a", "b"):
        it.post(job, 0.0, 1000.0)
    it.decide(0.0)
    it.complete("a", 10.0, ended=8.0, moved=400.0)
    state = it.state("a", 10.0)
    # Half speed for 8 seconds; the gap of 2 was work.
    assert state.lost == pytest.approx(4.0)
    assert state.iteration_time == 400.0 / B or state.iterations == 0
    it.decide(10.0)
    it.post("a", 11.0, 1.0)
    it.decide(11.0)
    it.complete("a", 11.0)
    assert it.state("a", 11.0).iteration_time == pytest.approx(3.0 + 1.0 / B)


def test_a_late_end_never_gives_back_more_than_was_lost() -> None:
    it = controller("fcfs", "first", "a")
    it.post("first", 0.0, 1e6)
    it.post("a", 0.0, 1e6)
    it.decide(0.0)
    it.complete("a", 9.0, ended=-5.0)
    assert it.state("a", 9.0).lost == 0.0


# --- What the operator wants ----------------------------------------------------------


def test_a_limit_is_a_cap() -> None:
    it = controller("fcfs", "a", "b")
    it.post("a", 0.0, 1e6)
    it.post("b", 1.0, 1e6)
    it.decide(1.0)
    it.set_limit("a", 30.0, 2.0)
    assert decide(it, 2.0) == {"a": 30.0, "b": 70.0}
    # Limited by the operator it loses nothing to the policy.
    lost = it.state("a", 2.0).lost
    assert it.state("a", 20.0).lost == lost
    it.set_limit("a", inf, 20.0)
    assert decide(it, 20.0) == {"a": B, "b": 0.0}


def test_another_capacity() -> None:
    it = controller("fair-share", "a", "b")
    it.post("a", 0.0, 1e6)
    it.decide(0.0)
    it.set_capacity(40.0, 1.0)
    assert decide(it, 1.0) == {"a": 40.0}
    it.set_capacity(400.0, 2.0)
    assert decide(it, 2.0) == {"a": 400.0}


def test_caps_follow_the_nodes() -> None:
    it = Controller("fair-share", B, 10.0, compiled=False)
    it.register("a", 0.0, nodes=3)
    it.register("b", 0.0, nodes=30, cap=55.0)
    assert [state.cap for state in it.states(0.0)] == [30.0, 55.0]
    it.set_nodes("a", 5, 0.0)
    assert it.state("a", 0.0).cap == 50.0


def test_another_policy_decides_at_once() -> None:
    it = controller("fair-share", "a", "b")
    it.post("a", 0.0, 1e6)
    it.post("b", 1.0, 1e6)
    it.decide(1.0)
    it.set_policy("fcfs", 2.0)
    assert it.policy == "fcfs"
    assert decide(it, 2.0) == {"a": B, "b": 0.0}
    with pytest.raises(UnknownNameError):
        it.set_policy("no-such-policy", 3.0)
    assert it.policy == "fcfs"


def test_a_policy_that_wants_to_be_woken() -> None:
    it = controller("periodic-greedy-yield:delta=2,clock=event", "a", "b")
    for job in ("a", "b"):
        it.post(job, 10.0, 1e6)
    assert it.decide(10.0).wake == 12.0
    assert it.state("a", 10.0).rate == B
    assert it.decide(12.0).rates == {"a": 0.0, "b": B}


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
    it = Controller(bind("mine", allocate, (), {}), B)
    for job in ("a", "b"):
        it.register(job, 0.0)
        it.post(job, 1.0, 1e6)
    decision = it.decide(1.0)
    assert reason in decision.fault
    assert "fair-share decides from now on" in decision.fault
    assert decision.rates == {"a": 50.0, "b": 50.0}
    assert it.policy == "fair-share"


def test_a_policy_cannot_write_to_the_books() -> None:
    def meddle(view: View, rates: object) -> float:
        view.cap[0] = 1e9
        return inf

    it = Controller(bind("mine", meddle, (), {}), B)
    it.register("a", 0.0)
    it.post("a", 0.0, 1.0)
    assert "TypeError" in it.decide(0.0).fault
    assert it.state("a", 0.0).cap == B


# --- Lending --------------------------------------------------------------------------


def frugal_pair(policy: str, *, lend: bool = True) -> Controller:
    """Return two active jobs of which `a` draws 10 of what it is granted."""
    it = Controller(policy, B, lend=lend, compiled=False)
    for job in ("a", "b"):
        it.register(job, 0.0)
        it.post(job, 0.0, 1e4)
    it.decide(0.0)
    it.progress("a", LEND_AFTER_S, 10.0 * LEND_AFTER_S, held_up=False)
    return it


@pytest.mark.parametrize("policy", ["fair-share", "fcfs", "greedy-com"])
def test_what_a_job_does_not_use_is_lent(policy: str) -> None:
    it = frugal_pair(policy)
    assert it.decide(LEND_AFTER_S).rates == {"a": 12.5, "b": pytest.approx(87.5)}
    assert it.state("a", 1.0).frugal
    # It uses all that it wants: it loses nothing.
    assert it.state("a", 9.0).lost == it.state("a", LEND_AFTER_S).lost


def test_what_is_lent_is_taken_back_at_the_first_report() -> None:
    it = frugal_pair("fair-share")
    it.decide(LEND_AFTER_S)
    it.progress("a", 1.0, 20.0, held_up=True)
    assert decide(it, 1.0) == {"a": 50.0, "b": 50.0}
    assert not it.state("a", 1.0).frugal


def test_who_pauses_lends_at_once_and_has_all_back_at_once() -> None:
    it = Controller("fair-share", B, compiled=False)
    for job in ("a", "b"):
        it.register(job, 0.0)
        it.post(job, 0.0, 1e4)
    assert decide(it, 0.0) == {"a": 50.0, "b": 50.0}
    it.progress("a", 0.01, 0.5, held_up=False, pauses=True)
    assert decide(it, 0.01) == {"a": LEND_FLOOR * B, "b": pytest.approx(99.0)}
    assert it.usable("a") == LEND_FLOOR * B
    assert it.usable("b") == B
    # Nothing new: the policy is not asked again.
    it.progress("a", 0.02, 0.5, held_up=False, pauses=True)
    assert it.decide(0.02).rates == {}
    it.progress("a", 0.03, 0.6, held_up=False)
    assert decide(it, 0.03) == {"a": 50.0, "b": 50.0}
    it.progress("a", 0.04, 0.6, held_up=False, pauses=True)
    it.complete("a", 0.05)
    assert it.usable("a") == B


def test_a_hard_cap_lends_nothing_in_a_pause() -> None:
    it = frugal_pair("fair-share", lend=False)
    it.progress("a", 1.0, 10.0, held_up=False, pauses=True)
    assert it.decide(1.0).rates == {}


def test_a_hard_cap_lends_nothing() -> None:
    it = frugal_pair("fair-share", lend=False)
    assert it.decide(LEND_AFTER_S).rates == {}


def test_who_is_held_up_is_not_frugal() -> None:
    it = Controller("fair-share", B, compiled=False)
    it.register("a", 0.0)
    it.post("a", 0.0, 1e4)
    it.decide(0.0)
    for step in range(1, 20):
        it.progress("a", 0.1 * step, 1.0 * step, held_up=True)
    assert not it.state("a", 2.0).frugal


def test_an_operation_that_ends_has_lent_nothing_to_the_next_one() -> None:
    it = frugal_pair("fair-share")
    it.decide(LEND_AFTER_S)
    it.complete("a", 1.0)
    it.decide(1.0)
    it.post("a", 2.0, 1e4)
    assert decide(it, 2.0) == {"a": 50.0, "b": 50.0}


# --- Words ----------------------------------------------------------------------------


def test_explain() -> None:
    it = controller("fcfs", "a", "b", "c")
    assert words_about(it, "a", 1.0).startswith("a does no I/O now")
    it.post("a", 1.0, 1e4)
    it.decide(1.0)
    it.post("b", 2.0, 1e4)
    it.decide(2.0)
    assert "a has 100 B/s, all that it can use" in words_about(it, "a", 3.0)
    words = words_about(it, "b", 4.0)
    assert "b waits: fcfs serves others first (posted 2 s ago" in words
    assert "Served besides: a 100 B/s (yield 1.000)." in words
    assert "it has lost 2 s of the 4 s since its release" in words
    it.set_policy("fair-share", 4.0)
    it.set_limit("b", 20.0, 4.0)
    it.decide(4.0)
    words = words_about(it, "a", 5.0)
    assert "83% of the 100 B/s that it can use: fair-share shares among 2" in words
    assert "The operator limits it to 20 B/s." in words_about(it, "b", 5.0)


# --- Whatever happens -----------------------------------------------------------------

_JOBS = [f"job{number}" for number in range(5)]
_ACTIONS = (
    *("register", "post", "progress", "complete", "leave"),
    *("limit", "capacity", "nodes", "wake", "wait", "sure"),
)
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
def test_rates_are_lawful_whatever_happens(policy: str, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    it = Controller(policy, B, 20.0, compiled=False)
    for job in _JOBS[:3]:
        it.register(job, 0.0, nodes=4)
    now = 0.0
    for action, job, delay, amount in steps:
        now += delay
        try:
            _act(it, action, job, now, amount)
        except (InputError, PolicyError):
            continue
        decision = it.decide(now)
        assert not decision.fault, decision.fault
        assert decision.wake > now
        states = it.states(now)
        assert sum(state.rate for state in states) <= it.capacity * (1 + 1e-9)
        for state in states:
            assert 0.0 <= state.rate <= state.cap * (1 + 1e-9)
            assert state.active or state.rate == 0.0
            assert -1e-9 <= state.lost <= state.age * (1 + 1e-9) + 1e-9
            assert words_about(it, state.job, now)


def _act(it: Controller, action: str, job: str, now: float, amount: float) -> None:
    if action == "register":
        it.register(job, now, nodes=1 + int(amount) % 7)
    elif action == "post":
        it.post(job, now, amount)
    elif action == "progress":
        it.progress(job, now, amount, held_up=amount > 100.0)
    elif action == "complete":
        it.complete(job, now, ended=now - amount % 2.0, moved=amount)
    elif action == "leave":
        it.leave(job, now)
    elif action == "limit":
        it.set_limit(job, amount, now)
    elif action == "capacity":
        it.set_capacity(amount, now)
    elif action == "nodes":
        it.set_nodes(job, 1 + int(amount) % 9, now)
    elif action == "wait":
        it.wait_for_end(job, now + amount % 1.0)
    elif action == "sure":
        it.progress(job, now, amount, volume=5e4, held_up=False)
    else:
        it.wake(now)


def test_the_cap_of_a_job_outlives_a_change_of_its_nodes() -> None:
    it = Controller("fair-share", B, node_bandwidth=30.0, compiled=False)
    it.register("a", 0.0, nodes=1, cap=50.0)
    assert it.share("a")[1] == 30.0
    it.set_nodes("a", 3, 1.0)
    assert it.share("a")[1] == 50.0
