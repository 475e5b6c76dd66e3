# SPDX-License-Identifier: MIT
"""Lending: frugal jobs keep what they draw, and the others get the rest."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.lending import (
    BELIEVED,
    DOUBTED_S,
    FALSE_S,
    LEND_AFTER_S,
    LEND_FLOOR,
    LEND_HEADROOM,
)
from support.controllers import B, controller_with, decide


def frugal_pair(policy: str, *, lend: bool = True) -> Controller:
    """Return two active jobs; `a` draws only 10 bytes/s of its grant."""
    controller = controller_with(policy, "a", "b", lend=lend)
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    controller.progress("a", LEND_AFTER_S, 10.0 * LEND_AFTER_S, held_up=False)
    return controller


@pytest.mark.parametrize("policy", ["fair-share", "fcfs", "greedy-com"])
def test_unused_bandwidth_is_lent(policy: str) -> None:
    controller = frugal_pair(policy)
    assert controller.decide(LEND_AFTER_S).rates == {
        "a": 12.5,
        "b": pytest.approx(87.5),
    }
    assert controller.job("a").is_frugal
    # It draws all that it can use: it loses no time.
    assert controller.job("a").lost_s(9.0) == controller.job("a").lost_s(LEND_AFTER_S)


def test_lent_bandwidth_is_taken_back_at_the_first_report() -> None:
    controller = frugal_pair("fair-share")
    controller.decide(LEND_AFTER_S)
    controller.progress("a", 1.0, 20.0, held_up=True)
    assert decide(controller, 1.0) == {"a": 50.0, "b": 50.0}
    assert not controller.job("a").is_frugal


def test_a_job_that_draws_what_it_keeps_gets_its_grant_back() -> None:
    """The storage, and not control, may be its limit: it is never held up."""
    controller = frugal_pair("fair-share")
    controller.decide(LEND_AFTER_S)
    kept_bytes = 12.5 * LEND_AFTER_S
    moved_bytes = 10.0 * LEND_AFTER_S + 0.95 * kept_bytes
    controller.progress("a", 2 * LEND_AFTER_S, moved_bytes, held_up=False)
    assert decide(controller, 2 * LEND_AFTER_S) == {"a": 50.0, "b": 50.0}
    assert not controller.job("a").is_frugal


def test_a_job_that_pauses_lends_at_once_and_gets_all_back_at_once() -> None:
    controller = controller_with("fair-share", "a", "b")
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    assert decide(controller, 0.0) == {"a": 50.0, "b": 50.0}
    controller.progress("a", 0.01, 0.5, held_up=False, pauses=True)
    assert decide(controller, 0.01) == {"a": LEND_FLOOR * B, "b": pytest.approx(99.0)}
    assert controller.job("a").usable == LEND_FLOOR * B
    assert controller.job("b").usable == B
    # The pause goes on: the policy is not asked again.
    controller.progress("a", 0.02, 0.5, held_up=False, pauses=True)
    assert controller.decide(0.02).rates == {}
    controller.progress("a", 0.03, 0.6, held_up=False)
    assert decide(controller, 0.03) == {"a": 50.0, "b": 50.0}
    controller.progress("a", 0.04, 0.6, held_up=False, pauses=True)
    controller.complete("a", 0.05)
    assert controller.job("a").usable == B


def test_a_pause_lends_on_if_bytes_were_moved_ahead() -> None:
    """They count as drawn while they are granted, but nothing draws in a pause."""
    controller = controller_with("fair-share", "a", "b")
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    controller.progress("a", 0.01, 100.0, held_up=True)
    controller.progress("a", 0.02, 100.0, held_up=False, pauses=True)
    assert decide(controller, 0.02)["b"] == pytest.approx(99.0)
    controller.progress("a", 0.12, 100.0, held_up=False, pauses=True)
    assert controller.decide(0.12).rates == {}
    assert controller.job("a").is_frugal


def test_without_lending_a_pause_changes_nothing() -> None:
    controller = frugal_pair("fair-share", lend=False)
    controller.progress("a", 1.0, 10.0, held_up=False, pauses=True)
    assert controller.decide(1.0).rates == {}


def test_without_lending_an_unused_grant_stays_unused() -> None:
    controller = frugal_pair("fair-share", lend=False)
    assert controller.decide(LEND_AFTER_S).rates == {}


def test_a_job_that_is_held_up_is_not_frugal() -> None:
    controller = controller_with("fair-share", "a")
    controller.post("a", 0.0, 1e4)
    controller.decide(0.0)
    for step in range(1, 20):
        controller.progress("a", 0.1 * step, 0.3 * B * 0.1 * step, held_up=True)
    assert not controller.job("a").is_frugal


def test_an_operation_that_ends_has_lent_nothing_to_the_next_one() -> None:
    controller = frugal_pair("fair-share")
    controller.decide(LEND_AFTER_S)
    controller.complete("a", 1.0)
    controller.decide(1.0)
    controller.post("a", 2.0, 1e4)
    assert decide(controller, 2.0) == {"a": 50.0, "b": 50.0}


def test_a_job_keeps_at_least_a_part_of_its_cap() -> None:
    controller = controller_with("fair-share", "a", "b")
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    controller.progress("a", 1.0, 0.0, held_up=False)
    assert controller.job("a").kept_rate == LEND_FLOOR * B
    assert decide(controller, 1.0)["b"] == pytest.approx((1.0 - LEND_FLOOR) * B)


def test_a_job_alone_lends_to_nobody_and_keeps_its_headroom() -> None:
    controller = controller_with("fair-share", "a")
    controller.post("a", 0.0, 1e4)
    controller.decide(0.0)
    controller.progress("a", 1.0, 40.0, held_up=False)
    assert decide(controller, 1.0) == {"a": pytest.approx(LEND_HEADROOM * 40.0)}


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6))
def test_lending_neither_creates_nor_wastes_bandwidth(draws: list[float]) -> None:
    """With one job that takes all it gets, all of B is granted."""
    keys = [f"frugal{number}" for number in range(len(draws))]
    controller = controller_with("fair-share", *keys, "hungry")
    for job_key in (*keys, "hungry"):
        controller.post(job_key, 0.0, 1e9)
    controller.decide(0.0)
    for job_key, draw in zip(keys, draws, strict=True):
        moved_bytes = draw * controller.job(job_key).rate
        controller.progress(job_key, 1.0, moved_bytes, held_up=False)
    controller.decide(1.0)
    rates = [job.rate for job in controller.jobs()]
    assert sum(rates) == pytest.approx(B)
    assert controller.job("hungry").rate >= B / len(rates) * (1.0 - 1e-9)
    for job in controller.jobs():
        assert job.rate <= job.kept_rate * (1.0 + 1e-9)


# --- Reports that are not true --------------------------------------------------------


def liars(count: int, *, lend: bool = True) -> Controller:
    """Return jobs that say they are held up and move nothing, and an honest one."""
    controller = Controller("fair-share", B, lend=lend)
    for number in range(count):
        controller.register(f"liar{number}", 0.0, user="a")
        controller.post(f"liar{number}", 0.0, 1e4)
    controller.register("honest", 0.0, user="b")
    controller.post("honest", 0.0, 1e4)
    controller.decide(0.0)
    return controller


def lie(controller: Controller, count: int, until_s: float) -> None:
    """Let the liars report every 100 ms; the honest job draws its grant."""
    moved_bytes = 0.0
    for step in range(1, round(until_s / 0.1) + 1):
        now = 0.1 * step
        moved_bytes += 0.1 * controller.job("honest").rate
        for number in range(count):
            controller.progress(f"liar{number}", now, 0.0, held_up=True)
        controller.progress("honest", now, moved_bytes, held_up=True)
        controller.decide(now)


@pytest.mark.parametrize("lend", [True, False])
def test_jobs_that_move_nothing_have_no_share_whatever_they_say(lend: bool) -> None:
    controller = liars(50, lend=lend)
    assert controller.job("honest").rate == pytest.approx(B / 51.0)
    lie(controller, 50, 1.0)
    assert controller.job("honest").rate >= (1.0 - LEND_FLOOR) * B * (1.0 - 1e-9)


def test_a_new_operation_of_a_user_who_lied_begins_without_a_share() -> None:
    controller = liars(2)
    lie(controller, 2, 1.0)
    controller.complete("liar0", 1.0)
    controller.post("liar0", 1.1, 1e4)
    controller.register("liar2", 1.1, user="a")
    controller.post("liar2", 1.1, 1e4)
    controller.decide(1.1)
    assert controller.job("honest").rate >= (1.0 - LEND_FLOOR) * B * (1.0 - 1e-9)
    # Other users are not doubted, and after a while this one is not either.
    controller.complete("liar2", 2.0)
    controller.post("liar2", 2.0 + DOUBTED_S, 1e4)
    assert not controller.job("liar2").is_frugal


def test_what_a_doubted_job_keeps_grows_with_what_it_draws() -> None:
    controller = liars(1)
    lie(controller, 1, 1.0)
    job, moved_bytes, now = controller.job("liar0"), 0.0, 1.0
    kept = [job.kept_rate]
    while job.rate < 0.9 * B / 2.0 and now < 5.0:
        moved_bytes += 0.1 * job.rate
        now += 0.1
        controller.progress("liar0", now, moved_bytes, held_up=True)
        controller.progress("honest", now, 1e3 * now, held_up=True)
        controller.decide(now)
        kept.append(job.kept_rate)
    assert now < 5.0
    most = LEND_HEADROOM / BELIEVED * (1.0 + 1e-9)
    assert all(after <= most * before for before, after in pairwise(kept))


def flicker(
    controller: Controller,
    count: int,
    operations: int,
    *,
    begin_s: float = 0.0,
    moved_bytes: float = 0.0,
) -> list[float]:
    """Let jobs of a user begin and end operations of this volume: 0.2 s of 0.3 s.

    Return the rates of the honest job while they last.
    """
    keys, rates = [f"flicker{number}" for number in range(count)], []
    for job_key in keys:
        controller.register(job_key, begin_s, user="a")
    for step in range(operations):
        now = begin_s + 0.3 * step
        for job_key in keys:
            controller.post(job_key, now, 1e4)
        controller.decide(now)
        rates.append(controller.job("honest").rate)
        for job_key in keys:
            controller.progress(job_key, now + 0.1, moved_bytes, held_up=True)
        controller.decide(now + 0.1)
        rates.append(controller.job("honest").rate)
        for job_key in keys:
            controller.complete(job_key, now + 0.2, moved_bytes=moved_bytes)
        controller.progress("honest", now + 0.2, B * (now + 0.2), held_up=True)
        controller.decide(now + 0.2)
    return rates


@pytest.mark.parametrize("moved_bytes", [0.0, 1e-4, 1e-2])
def test_short_operations_that_move_little_have_no_share(moved_bytes: float) -> None:
    """None of them lasts long enough to show by itself that it draws too little.

    1e-2 bytes in 0.2 s are 0.05 % of the bandwidth, for each of 50 jobs. They keep five
    times as much at the begin, and up to five times of that later.
    """
    rates = flicker(liars(0), 50, 20, moved_bytes=moved_bytes)
    assert rates[0] == pytest.approx(B / 51.0)
    drawn = 50 * moved_bytes / 0.1
    kept = max(LEND_FLOOR * B, LEND_HEADROOM / BELIEVED * drawn)
    assert min(rates[2:]) >= (B - kept) * (1.0 - 1e-9)


def test_a_user_with_small_operations_keeps_what_they_need() -> None:
    """Each moves 2 bytes, in 0.05 s at its share, and ends after a gap of 0.15 s."""
    controller = liars(0)
    flicker(controller, 1, 10, moved_bytes=2.0)
    assert controller.is_doubted("flicker0", 3.0)
    controller.post("flicker0", 3.0, 1e4)
    controller.decide(3.0)
    assert controller.job("flicker0").rate == pytest.approx(B / 2.0)


def test_operations_that_draw_their_grants_are_not_doubted() -> None:
    controller = liars(0)
    controller.register("a", 0.0, user="a")
    for step in range(20):
        now = 0.3 * step
        controller.post("a", now, 1e4)
        controller.decide(now)
        assert not controller.job("a").is_frugal
        controller.complete("a", now + 0.2, moved_bytes=step % 2 * 20.0)
    # A user whose operations draw too little is doubted for a short time only.
    rates = flicker(controller, 2, 3, begin_s=6.0)
    assert rates[-1] > 0.9 * B
    controller.post("a", 7.0 + DOUBTED_S, 1e4)
    assert not controller.job("a").is_frugal


def test_a_program_that_a_busy_machine_does_not_run_recovers_soon() -> None:
    """It waits for its grant, and then for a processor: that is no lie."""
    controller = liars(0)
    controller.register("a", 0.0, user="a")
    controller.post("a", 0.0, 1e4)
    controller.decide(0.0)
    job, moved_bytes = controller.job("a"), 0.0
    for step in range(1, 11):
        moved_bytes += 0.01 * job.rate
        controller.progress("a", 0.1 * step, moved_bytes, held_up=True)
        controller.decide(0.1 * step)
    assert job.is_frugal
    for step in range(11, 14):
        moved_bytes += 0.1 * job.rate
        controller.progress("a", 0.1 * step, moved_bytes, held_up=True)
        controller.decide(0.1 * step)
    assert job.rate == pytest.approx(B / 2.0)


def test_little_bytes_are_no_excuse_for_false_ones() -> None:
    """The user claimed bytes that nobody has counted: it stays doubted."""
    controller = liars(1)
    controller.doubt("liar0", 0.1)
    controller.decide(0.1)
    controller.register("slow", 1.0, user="a")
    controller.post("slow", 1.0, 1e4)
    controller.decide(1.0)
    controller.progress("liar0", 2.0, 0.0, held_up=True)
    controller.progress("slow", 2.0, 0.0, held_up=False)
    controller.decide(2.0)
    job = controller.job("liar0")
    kept = job.kept_rate
    controller.progress("liar0", 2.3, 0.3 * job.rate, held_up=True)
    assert job.kept_rate <= 2.6 * kept
    assert controller.is_doubted("liar0", FALSE_S)


def test_a_false_claim_of_bytes_is_forgotten() -> None:
    controller = liars(1)
    controller.progress("liar0", 0.1, 1e3, held_up=True)
    controller.doubt("liar0", 0.2)
    controller.decide(0.2)
    assert controller.job("honest").rate == pytest.approx((1.0 - LEND_FLOOR) * B)
    lie(controller, 1, 1.0)
    assert controller.job("honest").rate == pytest.approx((1.0 - LEND_FLOOR) * B)


def test_one_large_call_is_made_at_once_and_held_up_for_long() -> None:
    """Its bytes are counted when it begins to wait: it is no liar."""
    controller = controller_with("fair-share", "a", "b")
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    for step in range(1, 50):
        controller.progress("a", 0.1 * step, 500.0, held_up=True)
        controller.decide(0.1 * step)
    assert not controller.job("a").is_frugal


def test_a_job_that_was_granted_nothing_is_believed() -> None:
    controller = controller_with("fcfs", "a", "b")
    for now, job_key in ((0.0, "a"), (0.1, "b")):
        controller.post(job_key, now, 1e4)
        controller.decide(now)
    assert controller.job("b").rate == 0.0
    for step in range(2, 30):
        controller.progress("b", 0.1 * step, 0.0, held_up=True)
        controller.progress("a", 0.1 * step, 10.0 * step, held_up=True)
        controller.decide(0.1 * step)
    controller.complete("a", 3.0)
    controller.progress("b", 3.0, 0.0, held_up=True)
    assert decide(controller, 3.0)["b"] == B


def test_one_of_many_nodes_may_be_held_up() -> None:
    controller = Controller("fair-share", B)
    for job_key in ("a", "b"):
        controller.register(job_key, 0.0, nodes=10)
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    for step in range(1, 20):
        controller.progress("a", 0.1 * step, 0.5 * step, held_up=True)
        controller.decide(0.1 * step)
    assert not controller.job("a").is_frugal


# --- Honest jobs with large calls -----------------------------------------------------


def test_doubted_jobs_with_large_calls_get_their_shares_back() -> None:
    """Two jobs of one user share; each call moves more than 2 s of the bandwidth."""
    controller = liars(2)
    controller.leave("honest", 0.0)
    for step in range(1, 11):
        for job_key in ("liar0", "liar1"):
            controller.progress(job_key, 0.1 * step, 0.0, held_up=True)
        controller.decide(0.1 * step)
    rates = [controller.job(key).rate for key in ("liar0", "liar1")]
    assert rates == [LEND_FLOOR * B / 2.0] * 2
    # The calls are made at once; from then on they wait for their grants.
    for step in range(11, 21):
        for job_key in ("liar0", "liar1"):
            controller.progress(job_key, 0.1 * step, 250.0, held_up=True)
        controller.decide(0.1 * step)
    rates = [controller.job(key).rate for key in ("liar0", "liar1")]
    assert rates == pytest.approx([B / 2.0] * 2)


@pytest.mark.parametrize("lend", [True, False])
def test_a_job_that_is_held_up_after_a_pause_is_not_doubted(lend: bool) -> None:
    controller = controller_with("fair-share", "a", "b", lend=lend)
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    controller.progress("a", 0.05, 2.0, held_up=False)
    controller.progress("a", 0.35, 2.0, held_up=False)
    controller.progress("a", 0.45, 2.5, held_up=True)
    assert not controller.is_doubted("a", 0.45)
    controller.decide(0.45)
    controller.progress("a", 0.5, 20.0, held_up=True)
    controller.decide(0.5)
    assert controller.job("a").rate == pytest.approx(B / 2.0)


def test_a_new_allowance_is_not_compared_with_the_former_grant() -> None:
    """A strategy holds a job at a low rate, between two reports of the job."""
    controller = controller_with("fair-share", "a")
    controller.post("a", 0.0, 1e4)
    controller.decide(0.0)
    controller.allow("a", 1.0, 1.0)
    controller.decide(1.0)
    for step in range(1, 11):
        now = 1.0 + 0.1 * step
        controller.progress("a", now, 0.1 * step, held_up=True)
        controller.decide(now)
    assert not controller.is_doubted("a", 2.0)
    assert controller.job("a").rate == 1.0


def hold_up(controller: Controller, job_key: str, now: float, until_s: float) -> None:
    """Let a job wait without new bytes, and report that again and again."""
    moved_bytes = controller.job(job_key).reported_bytes
    while now + 0.12 < until_s:
        now += 0.12
        controller.progress(job_key, now, moved_bytes, held_up=True)
        controller.decide(now)


def test_a_grant_before_a_large_call_does_not_pay_for_it() -> None:
    """A drainer begins late. Its call moves at once what 10 s of the grant allow."""
    controller = controller_with("fair-share", "a", "b")
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    for now in (0.1, 0.2, 0.3):
        controller.progress("a", now, 0.0, held_up=False)
    controller.progress("a", 0.39, 500.0, held_up=True)
    controller.decide(0.39)
    # The last report says that it was held up since the one before.
    hold_up(controller, "a", 0.39, 10.5)
    assert not controller.is_doubted("a", 10.5)
    assert controller.job("a").rate == pytest.approx(B / 2.0)


def test_a_call_of_the_last_operation_is_paid_in_the_next_one() -> None:
    """A drain has moved all data: the operation is over, and the drain waits."""
    controller = controller_with("fair-share", "a", "b")
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    controller.progress("a", 0.1, 1000.0, held_up=True)
    controller.complete("a", 0.2, moved_bytes=1000.0)
    controller.decide(0.2)
    controller.post("a", 0.5, 1e4)
    controller.decide(0.5)
    hold_up(controller, "a", 0.5, 5.0)
    assert not controller.is_doubted("a", 5.0)
    assert controller.job("a").rate == pytest.approx(B / 2.0)


def test_a_call_that_was_paid_is_no_evidence_in_the_next_operation() -> None:
    """All of a certain volume is moved at once; the call waits until it is granted."""
    controller = controller_with("fair-share", "a", "b")
    controller.post("a", 0.0, 100.0)
    controller.post("b", 0.0, 1e4)
    controller.decide(0.0)
    for step in range(1, 21):
        now = 0.1 * step
        controller.progress("a", now, 100.0, volume_bytes=100.0, held_up=True)
        controller.decide(now)
    controller.complete("a", 2.0, moved_bytes=100.0)
    controller.decide(2.0)
    controller.post("a", 2.0, 1e4)
    controller.decide(2.0)
    hold_up(controller, "a", 2.0, 3.0)
    assert controller.is_doubted("a", 3.0)


def test_a_pause_between_operations_pays_for_large_calls() -> None:
    controller = controller_with("fair-share", "a", "b")
    controller.start_rate = 20.0
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    controller.progress("a", 0.1, 205.0, held_up=True)
    controller.complete("a", 0.1, moved_bytes=205.0)
    controller.post("a", 5.1, 1e4)
    assert controller.job("a").surplus_bytes == pytest.approx(100.0)


def test_another_controller_knows_what_was_moved_ahead() -> None:
    controller = controller_with("fair-share", "a")
    controller.post("a", 0.0, 1e4)
    controller.decide(0.0)
    controller.progress("a", 0.1, 1000.0, held_up=True)
    other = Controller("fair-share", B, compiled=False)
    other.take_over("a", controller, 0.1)
    other.decide(0.1)
    assert other.job("a").surplus_bytes == pytest.approx(990.0)
    hold_up(other, "a", 0.1, 5.0)
    assert not other.is_doubted("a", 5.0)
