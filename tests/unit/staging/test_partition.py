# SPDX-License-Identifier: MIT
"""Parts of the storage targets: how many targets each application has, and which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.staging import ApplicationStatus, Situation
from penstock.staging.partition import halved, parts, proportional, weights


def test_parts_of_several_sizes() -> None:
    assert proportional([1.0, 1.0, 1.0], 8) == [3, 3, 2]
    assert proportional([1e9, 1.0, 1.0], 4) == [2, 1, 1]
    assert proportional([0.0, 1.0], 4) == [1, 3]
    assert halved(1, 5) == [5]
    assert halved(3, 8) == [4, 2, 2]
    assert parts([2, 1]) == [(0, 1), (2,)]


@given(
    shares=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=6).filter(sum),
    spare=st.integers(0, 20),
)
def test_proportional_parts_use_all_targets_and_are_near_their_quotas(
    shares: list[float], spare: int
) -> None:
    targets = len(shares) + spare
    counts = proportional(shares, targets)
    assert sum(counts) == targets
    assert min(counts) >= 1
    for share, count in zip(shares, counts, strict=True):
        # Only the first target may exceed a quota by more than one.
        assert count == 1 or count < targets * share / sum(shares) + 1


@given(sharers=st.integers(1, 5), targets=st.integers(1, 40))
def test_halves_use_all_targets_or_are_refused(sharers: int, targets: int) -> None:
    try:
        counts = halved(sharers, targets)
    except InputError:
        assert targets < 2 ** (sharers - 1)
        return
    assert sum(counts) == targets
    assert counts == sorted(counts, reverse=True) or counts[-2] <= counts[-1]


def test_more_sharers_than_targets_are_refused() -> None:
    with pytest.raises(InputError, match="there are 1"):
        proportional([1.0, 1.0], 1)
    with pytest.raises(InputError, match="there are 1"):
        halved(2, 1)


def test_weights_are_data_processes_nodes_or_equal() -> None:
    known = ApplicationStatus("a", phase_bytes=3.0, processes=2, nodes=7)
    unknown = ApplicationStatus("b", processes=5)
    more = ApplicationStatus("c", phase_bytes=5.0)
    situation = Situation(0.0, 4, (known, unknown, more))
    assert weights(situation, [0, 1, 2], "data") == [3.0, 4.0, 5.0]
    assert weights(situation, [0, 1], "processes") == [2.0, 5.0]
    assert weights(situation, [0, 1], "nodes") == [7.0, 1.0]
    assert weights(situation, [1], "data") == [1.0]


@given(st.lists(st.integers(1, 5), max_size=6))
def test_parts_are_consecutive_numbers(counts: list[int]) -> None:
    numbers = [target for part in parts(counts) for target in part]
    assert numbers == list(range(sum(counts)))
    assert [len(part) for part in parts(counts)] == counts
