# SPDX-License-Identifier: MIT
"""The schedule of reports: jobs of a user over budget are looked at in turn."""

from __future__ import annotations

from collections import Counter
from math import inf
from types import SimpleNamespace
from typing import Any

from penstock.live.node.budgets import Budgets, Spending, TokenBucket
from penstock.live.node.report_schedule import ReportSchedule

USER = 60_000
#: Looks per second of a user.
RATE = 1.0 / TokenBucket.of(Spending.LOOKS).wait_s(0.0, 1001.0)


def make(jobs: int, user: int = USER) -> tuple[ReportSchedule, dict[str, Any]]:
    """Return a schedule, and jobs of a user who has used up the budget."""
    budgets = Budgets(100_000)
    budgets.spend(user, Spending.LOOKS, 0.0, 1000.0)
    all_jobs = {
        f"{user}:{number}": SimpleNamespace(
            key=f"{user}:{number}",
            note=SimpleNamespace(user=user),
            report_due_s=inf,
            turn_s=inf,
        )
        for number in range(jobs)
    }
    return ReportSchedule(all_jobs, budgets), all_jobs  # type: ignore[arg-type]


def looks(schedule: ReportSchedule, until_s: float, pause_s: float) -> Counter[str]:
    """Look at all jobs that are due, every 5 ms; return how often each was looked at.

    A job is due again `pause_s` after a look.
    """
    seen: Counter[str] = Counter()
    for tick in range(round(until_s / 0.005)):
        now_s = tick * 0.005
        for job in schedule.take_due(now_s):
            seen[job.key] += 1
            schedule.put(job, now_s + pause_s)
    return seen


def test_jobs_of_a_user_over_budget_are_looked_at_equally_often() -> None:
    schedule, jobs = make(int(0.4 * RATE))
    for job in jobs.values():
        schedule.put(job, 0.0)
    # All are due at the same instants; without a budget each would be seen 50 times.
    seen = looks(schedule, 5.0, pause_s=0.1)
    assert set(seen) == set(jobs)
    assert max(seen.values()) - min(seen.values()) <= 1
    assert 0.9 * 5.0 * RATE <= seen.total() <= 5.0 * RATE + 1


def test_a_job_that_waits_for_its_turn_takes_no_second_token() -> None:
    schedule, (job,) = (made := make(1))[0], made[1].values()
    schedule._budgets.spend(USER, Spending.LOOKS, 0.0, 0.5 * RATE)
    assert not schedule.may_look(job, 0.0)
    turn_s = job.turn_s
    # It posts again and again meanwhile.
    assert not any(schedule.may_look(job, 0.01 * step) for step in range(50))
    assert job.turn_s == turn_s == schedule.next_s()
    assert schedule.take_due(turn_s) == [job]


def test_operators_have_no_budget() -> None:
    schedule, jobs = make(300, user=0)
    for job in jobs.values():
        schedule.put(job, 0.0)
    seen = looks(schedule, 1.0, pause_s=0.1)
    assert min(seen.values()) >= 9


def test_a_job_that_has_left_is_not_due() -> None:
    schedule, jobs = make(2)
    for job in jobs.values():
        schedule.put(job, 1.0)
    jobs.clear()
    assert schedule.next_s() == inf
    assert len(schedule) == 0
