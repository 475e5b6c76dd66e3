# SPDX-License-Identifier: MIT
"""The policies of bandwidth sharing: they exist, and its groups contain them."""

from __future__ import annotations

from penstock.papers.p1.policies import (
    COM,
    EIGHT,
    FAIR,
    SECOND_SET,
    SEVEN,
    THIRD_SET,
    YIELD_BASED,
)
from penstock.policies import POLICIES


def test_all_eight_are_policies_of_penstock() -> None:
    assert len(set(EIGHT)) == 8
    assert set(EIGHT) < set(POLICIES)


def test_the_three_sets_hold_all_policies_but_fair_share() -> None:
    assert {COM, *SECOND_SET, *THIRD_SET} == set(SEVEN) == set(EIGHT) - {FAIR}
    assert len(SEVEN) == 1 + len(SECOND_SET) + len(THIRD_SET)
    assert set(THIRD_SET) < set(YIELD_BASED) < set(EIGHT)
