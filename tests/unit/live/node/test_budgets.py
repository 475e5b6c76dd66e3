# SPDX-License-Identifier: MIT
"""Budgets of users: token buckets, holdings, exemptions, and who is throttled."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.node.budgets import (
    Budgets,
    Holding,
    Spending,
    TokenBucket,
)

A, B = 65_001, 65_002


def taken(bucket: TokenBucket, now_s: float) -> int:
    """Take tokens until there is none."""
    count = 0
    while not bucket.wait_s(now_s, 1.0):
        bucket.spend(now_s, 1.0)
        count += 1
    return count


def test_a_bucket_is_full_at_first_and_fills_at_its_rate() -> None:
    bucket = TokenBucket(10.0, 5.0)
    assert bucket.is_full(0.0)
    assert taken(bucket, 0.0) == 5
    assert taken(bucket, 0.3) == 3
    assert taken(bucket, 99.0) == 5


def test_debt_is_paid_before_anything_can_be_taken() -> None:
    bucket = TokenBucket(10.0, 5.0)
    bucket.spend(0.0, 25.0)
    assert bucket.wait_s(0.0) == pytest.approx(2.0)
    assert bucket.wait_s(1.5) == pytest.approx(0.5)
    assert bucket.wait_s(2.0, 1.0) == pytest.approx(0.1)
    assert taken(bucket, 2.11) == 1


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30))
def test_no_interval_gives_more_than_the_rate_and_what_was_saved(
    times_s: list[float],
) -> None:
    bucket = TokenBucket(3.0, 7.0)
    times_s.sort()
    total = sum(taken(bucket, now_s) for now_s in times_s)
    assert total <= 7.0 + 3.0 * (times_s[-1] - times_s[0]) + 1e-6


def test_a_clock_that_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(10.0, 5.0)
    taken(bucket, 5.0)
    assert taken(bucket, 4.0) == 0
    assert [taken(bucket, now_s) for now_s in (4.5, 4.9, 5.0)] == [0, 0, 0]


def test_one_user_cannot_spend_the_budget_of_another() -> None:
    budgets = Budgets(4096)
    while budgets.take(A, Spending.CONNECTS, 0.0):
        pass
    assert budgets.take(B, Spending.CONNECTS, 0.0)
    assert [each.user for each in budgets.throttled(0.0)] == [A]


def test_root_and_the_user_of_the_daemon_have_no_budget() -> None:
    budgets = Budgets(0)
    for user in (0, os.geteuid()):
        assert all(budgets.take(user, Spending.POSTS, 0.0) for _ in range(5000))
        assert budgets.hold(user, Holding.PROCESSES, 0.0)
        assert budgets.spend(user, Spending.MESSAGES, 0.0, 1e9) == 0.0
    assert not budgets.throttled(0.0)


def test_a_user_holds_a_quarter_of_the_descriptors_and_all_three_quarters() -> None:
    budgets = Budgets(400)
    users = range(65_100, 65_110)
    held = {
        user: sum(budgets.hold(user, Holding.PROCESSES, 0.0) for _ in range(200))
        for user in users
    }
    assert held[65_100] == 100
    assert sum(held.values()) == 300
    # What is released can be held again.
    budgets.release(65_100, Holding.PROCESSES)
    assert budgets.hold(B, Holding.CONNECTIONS, 0.0)
    # What exists already is counted, whatever the budget.
    budgets.keep(B, Holding.JOBS)
    assert budgets.held(B, Holding.JOBS) == 1


def test_what_operators_hold_takes_nothing_from_users() -> None:
    budgets = Budgets(400)
    for _ in range(400):
        assert budgets.hold(os.geteuid(), Holding.PROCESSES, 0.0)
    assert sum(budgets.hold(A, Holding.PROCESSES, 0.0) for _ in range(200)) == 100
    for _ in range(400):
        budgets.release(os.geteuid(), Holding.PROCESSES)
    users = range(65_100, 65_110)
    held = [budgets.hold(user, Holding.JOBS, 0.0) for user in users for _ in range(50)]
    assert held.count(True) == 200


def test_what_was_refused_is_shown_for_a_minute_and_then_forgotten() -> None:
    budgets = Budgets(4096)
    budgets.refuse(A, Spending.POSTS, 10.0, 3)
    budgets.refuse(A, Spending.POSTS, 20.0)
    (shown,) = budgets.throttled(30.0)
    assert (shown.user, shown.times, shown.age_s) == (A, 4, 10.0)
    assert shown.what == str(Spending.POSTS)
    assert not budgets.throttled(81.0)
    assert not budgets._users


def test_a_message_that_costs_much_makes_its_user_wait() -> None:
    budgets = Budgets(4096)
    assert budgets.spend(A, Spending.MESSAGES, 0.0, 1000.0) == 0.0
    assert budgets.spend(A, Spending.MESSAGES, 0.0, 50.0) == pytest.approx(0.5)
    assert budgets.debt_s(A, Spending.MESSAGES, 0.25) == pytest.approx(0.25)
    assert budgets.debt_s(B, Spending.MESSAGES, 0.25) == 0.0


def test_what_is_done_in_any_case_is_charged_and_not_called_refused() -> None:
    budgets = Budgets(4096)
    budgets.charge(65_001, Spending.DRAINS, 0.0, 60.0)
    assert budgets.debt_s(65_001, Spending.DRAINS, 0.0) > 0.0
    assert budgets.throttled(0.0) == []
