# SPDX-License-Identifier: MIT
"""Why a job has what it has, in words; `test_controller` has the usual cases."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from penstock.live.control.jobs import JobHistory, JobState, by_rate, explain

STATE = JobState(
    job="7:a",
    user="7",
    group="7",
    nodes=1,
    cap=100.0,
    limit=inf,
    active=True,
    rate=50.0,
    frugal=False,
    waits=4.0,
    volume=1000.0,
    remaining=500.0,
    completion=14.0,
    release=0.0,
    age=10.0,
    lost=2.0,
    iterations=1,
    iteration_time=3.0,
)


def others(count: int) -> list[JobState]:
    """Return active jobs of different rates."""
    return [replace(STATE, job=f"8:o{n}", rate=float(n)) for n in range(count)]


def test_what_it_has_done() -> None:
    assert STATE.past == JobHistory(0.0, 2.0, 1, 3.0)
    assert STATE.progress_yield == 0.8
    assert replace(STATE, age=0.0, lost=0.0).progress_yield == 1.0


def test_by_rate() -> None:
    states = [*others(3), replace(STATE, active=False)]
    assert [state.rate for state in by_rate(states)] == [2.0, 1.0, 0.0]


def test_at_most_three_are_named() -> None:
    words = explain(STATE, by_rate([*others(7), STATE]), "set-10", str)
    assert "8:o6 6 B/s (yield 0.800), 8:o5 5 B/s" in words
    assert "and 3 more." in words


def test_strangers_are_not_named() -> None:
    def name(job: str) -> str | None:
        return "mine" if job == STATE.job else None

    words = explain(STATE, by_rate([*others(2), STATE]), "set-10", name)
    assert words.startswith("mine has 50 B/s, 50% of the 100 B/s that it can use")
    assert "Served besides: another user's job 1 B/s." in words
    assert "8:" not in words


def test_who_lends() -> None:
    words = explain(replace(STATE, frugal=True), [STATE], "fcfs")
    assert "it drew less than it was granted, so the rest is lent" in words
    assert "Served besides" not in words
