# SPDX-License-Identifier: MIT
"""The policies of bandwidth sharing: they exist, and its groups contain them."""

from __future__ import annotations

from penstock.papers.p1.policies import (
    ALL_BUT_FAIR_SHARE,
    ALL_POLICIES,
    FAIR_SHARE,
    GREEDY_COM,
    SECOND_SET,
    THIRD_SET,
    YIELD_BASED,
)
from penstock.policies import POLICIES


def test_all_eight_are_policies_of_penstock() -> None:
    assert len(set(ALL_POLICIES)) == 8
    assert set(ALL_POLICIES) < set(POLICIES)


def test_the_three_sets_hold_all_policies_but_fair_share() -> None:
    assert (
        {GREEDY_COM, *SECOND_SET, *THIRD_SET}
        == set(ALL_BUT_FAIR_SHARE)
        == set(ALL_POLICIES) - {FAIR_SHARE}
    )
    assert len(ALL_BUT_FAIR_SHARE) == 1 + len(SECOND_SET) + len(THIRD_SET)
    assert set(THIRD_SET) < set(YIELD_BASED) < set(ALL_POLICIES)
