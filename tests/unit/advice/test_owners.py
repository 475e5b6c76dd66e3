# SPDX-License-Identifier: MIT
"""Advice for owners: each remedy appears where its condition holds, and only there."""

from __future__ import annotations

from penstock.advice.owners import advice_for_owners
from penstock.model import Instance
from penstock.policies import get_policy
from unit.samples import app, make

FAIR = get_policy("fair-share")


def _twins(work: float, *, volume: float = 2.0, shift: float = 0.0) -> Instance:
    """Return two jobs of the same period that post at the same instants."""
    phases = [("work", work), ("io", volume)] * 10
    return make(
        app("a", *phases, ("work", 999.0)),
        app("b", ("work", shift), *phases, ("work", 999.0)),
        window=(0.0, 60.0),
    )


def _said(advice: dict[str, list[str]], name: str) -> str:
    return " ".join(advice[name])


def test_jobs_that_lose_nothing_get_no_advice() -> None:
    apart = make(
        app("a", ("work", 1.0), ("io", 1.0), ("work", 50.0)),
        app("b", ("work", 5.0), ("io", 1.0), ("work", 50.0)),
    )
    assert advice_for_owners(apart, FAIR) == {"a": [], "b": []}


def test_jobs_of_one_period_are_told_to_start_later() -> None:
    advice = advice_for_owners(_twins(4.0), FAIR)
    assert "Start its operations about" in _said(advice, "a")


def test_jobs_of_one_period_that_do_not_meet_are_left_alone() -> None:
    advice = advice_for_owners(_twins(4.0, shift=3.0), FAIR)
    assert "Start its operations" not in _said(advice, "a")


def test_staging_is_advised_where_the_next_operation_comes_late_enough() -> None:
    assert "--stage" in _said(advice_for_owners(_twins(6.0), FAIR), "a")
    assert "--stage" not in _said(advice_for_owners(_twins(2.5), FAIR), "a")


def test_a_hint_is_advised_where_volumes_differ() -> None:
    varied = [("work", 4.0), ("io", 1.0), ("work", 4.0), ("io", 3.0)] * 5
    instance = make(
        app("a", *varied, ("work", 999.0)),
        app("b", *[("work", 4.0), ("io", 2.0)] * 10, ("work", 999.0)),
        window=(0.0, 60.0),
    )
    advice = advice_for_owners(instance, FAIR)
    assert "Announce its volumes" in _said(advice, "a")
    assert "Announce its volumes" not in _said(advice, "b")


def test_more_nodes_are_advised_where_nodes_limit_more_than_others() -> None:
    narrow = make(
        app("narrow", *[("work", 1.0), ("io", 4.0)] * 9, ("work", 999.0), nodes=1),
        app("wide", *[("work", 2.0), ("io", 30.0)] * 9, ("work", 999.0), nodes=10),
        bandwidth=10.0,
        node_bandwidth=1.0,
        window=(0.0, 40.0),
    )
    advice = advice_for_owners(narrow, FAIR)
    assert "Let more of its nodes write" in _said(advice, "narrow")
    assert "Let more of its nodes write" not in _said(advice, "wide")


def test_a_job_with_one_operation_is_not_told_when_the_next_one_comes() -> None:
    single = make(
        app("a", ("work", 6.0), ("io", 2.0), ("work", 999.0)),
        app("b", ("work", 6.0), ("io", 2.0), ("work", 999.0)),
        window=(0.0, 20.0),
    )
    assert "--stage" not in _said(advice_for_owners(single, FAIR), "a")
