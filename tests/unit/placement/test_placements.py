# SPDX-License-Identifier: MIT
"""random, greedy-non-clairvoyant and greedy-clairvoyant on written-out problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis import given

from penstock.model.problem import Problem
from penstock.placement import Placement, get_placement
from unit.placement.problems import application, problem, problems


def place(text: str, it: Problem, allocation: Sequence[int]) -> Placement:
    """Return where a placement puts the applications."""
    return get_placement(text).place(it, allocation)


def some_allocation(it: Problem, seed: int) -> tuple[int, ...]:
    """Return any lawful allocation."""
    return tuple(
        1 + (seed >> 4 * j) % it.most_targets(j) for j in range(len(it.applications))
    )


# --- greedy-non-clairvoyant -------------------------------------------------------


def test_the_turn_goes_on_from_application_to_application() -> None:
    """4 to b, then 3 to d from target 4 on, then 2 to a, then 1 to c."""
    it = problem(5, *(application(name) for name in "abcd"))
    assert place("greedy-non-clairvoyant", it, (2, 4, 1, 3)) == (
        (2, 3),
        (0, 1, 2, 3),
        (4,),
        (0, 1, 4),
    )


def test_equal_numbers_are_dealt_by_index() -> None:
    it = problem(3, *(application(name) for name in "abcd"))
    assert place("greedy-non-clairvoyant", it, (1, 1, 2, 1)) == (
        (2,),
        (0,),
        (0, 1),
        (1,),
    )


def test_all_targets_for_everybody() -> None:
    it = problem(2, application("a"), application("b"))
    assert place("greedy-non-clairvoyant", it, (2, 2)) == ((0, 1), (0, 1))


@given(problems(), st.integers(0, 2**32))
def test_targets_have_the_same_number_of_applications(it: Problem, seed: int) -> None:
    chosen = place("greedy-non-clairvoyant", it, some_allocation(it, seed))
    users = Counter(r for targets in chosen for r in targets)
    counts = [users[r] for r in range(it.resources)]
    assert max(counts) - min(counts) <= 1


# --- greedy-clairvoyant -----------------------------------------------------------


def test_the_least_loaded_targets_by_hand() -> None:
    """b (3/4) on 0; a (1/2) on 1 and 2; c (1/4) on the same; all are equal: d on 0."""
    flat = [1.0, 1.0, 1.0]
    it = problem(
        3,
        application("a", flat, work=1, volume=1),
        application("b", flat, work=1, volume=3),
        application("c", flat, work=3, volume=1),
        application("d", flat, work=3, volume=1),
    )
    expected = ((1, 2), (0,), (1, 2), (0,))
    assert place("greedy-clairvoyant", it, (2, 1, 2, 1)) == expected


def test_the_ratio_is_that_of_the_number_allocated() -> None:
    # On 1 target a spends 3/4 of its time in I/O, on 2 it is 1/4; b always 1/2.
    it = problem(
        3,
        application("a", [1.0, 9.0], work=1, volume=3),
        application("b", [1.0, 1.0], work=1, volume=1),
    )
    assert place("greedy-clairvoyant", it, (1, 1)) == ((0,), (1,))
    assert place("greedy-clairvoyant", it, (2, 1)) == ((1, 2), (0,))


@given(problems(), st.integers(0, 2**32))
def test_loads_differ_by_the_largest_ratio_at_most(it: Problem, seed: int) -> None:
    allocation = some_allocation(it, seed)
    chosen = place("greedy-clairvoyant", it, allocation)
    ratios = [it.io_ratio(j, n) for j, n in enumerate(allocation)]
    load = [
        sum(ratios[j] for j, targets in enumerate(chosen) if r in targets)
        for r in range(it.resources)
    ]
    assert max(load) - min(load) <= max(ratios) + 1e-12


# --- random -----------------------------------------------------------------------


def test_random_reaches_every_target_and_depends_on_the_seed() -> None:
    it = problem(4, *(application(f"a{j}") for j in range(400)))
    one, other = (place(f"random:seed={s}", it, [2] * 400) for s in (1, 2))
    assert one != other
    pairs = Counter(one)
    # Six pairs, 67 times each, with a standard deviation of 7.5.
    assert len(pairs) == 6
    assert all(abs(count - 400 / 6) < 40 for count in pairs.values())


@given(problems(), st.integers(0, 2**32))
def test_random_draws_for_an_application_whatever_the_others_are(
    it: Problem, seed: int
) -> None:
    allocation = some_allocation(it, seed)
    first = Problem(it.resources, it.compute_nodes + 1, it.applications[:1])
    alone = place("random", first, allocation[:1])
    assert place("random", it, allocation)[:1] == alone
