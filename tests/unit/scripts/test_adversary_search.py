# SPDX-License-Identifier: MIT
"""The search for bad instances: bounded, repeatable, and better than chance."""

from __future__ import annotations

import pytest
from adversary_search import Candidate, Search, evaluate, find_worst
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError, UnknownNameError

QUICK = Search(seed=3, restarts=2, steps=60)

operations = st.tuples(st.integers(0, 128), st.integers(1, 128))
candidates = st.lists(
    st.lists(operations, min_size=1, max_size=4).map(tuple), min_size=2, max_size=4
).map(tuple)


def test_the_same_search_finds_the_same_instance() -> None:
    first, second = (find_worst("greedy-yield", QUICK) for _ in range(2))
    assert first.instance.digest() == second.instance.digest()
    assert first.distance == second.distance


def test_more_steps_never_end_lower() -> None:
    short = Search(seed=3, restarts=2, steps=5)
    few, many = (find_worst("soft-deadline", s).distance for s in (short, QUICK))
    assert many >= few - 1e-6
    assert many > 0.1


def test_an_instance_is_within_the_limits() -> None:
    limits = Search(
        seed=5, restarts=1, steps=80, max_applications=3, max_operations=2, window_s=8.0
    )
    instance = find_worst("fcfs", limits).instance
    assert 2 <= len(instance.applications) <= 3
    assert instance.window.end == 8.0
    for application in instance.applications:
        assert 1 <= len(application.volume) <= 2
        assert (application.volume % 0.125 == 0).all()
        assert (application.volume <= 8.0).all()


@given(candidate=candidates)
@settings(max_examples=25)
def test_no_policy_exceeds_the_bound_or_the_best_known(candidate: Candidate) -> None:
    case = evaluate("soft-deadline", Search().instance(candidate))
    assert case.distance >= -1e-9
    assert case.min_yield <= case.best_known <= case.bound + 1e-9


@pytest.mark.parametrize(
    ("setting", "value"), [("restarts", 0), ("steps", 0), ("max_operations", 0)]
)
def test_a_search_for_nothing_is_refused(setting: str, value: int) -> None:
    with pytest.raises(InputError, match=setting):
        Search(**{setting: value})


@pytest.mark.parametrize("most", [1, 9])
def test_numbers_of_applications_are_checked(most: int) -> None:
    with pytest.raises(InputError, match="give 2 to 8"):
        Search(max_applications=most)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no-such"):
        find_worst("no-such", QUICK)
