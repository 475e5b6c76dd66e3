# SPDX-License-Identifier: MIT
"""Lending: frugal jobs keep what they draw, and the others get the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.control.controller import Controller
from penstock.live.control.lending import LEND_AFTER_S, LEND_FLOOR, LEND_HEADROOM
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
