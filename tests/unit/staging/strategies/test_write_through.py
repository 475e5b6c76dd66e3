# SPDX-License-Identifier: MIT
"""Strategy ``none``: all applications write through."""

from __future__ import annotations

from math import inf

import pytest

from penstock.staging import Situation
from penstock.staging.strategies.write_through import coordinate
from support.staging_plans import A, B, C, decide, draining, staging, with_data


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_no_application_stages_and_each_uses_all_targets(count: int) -> None:
    plan = decide("none", *(A, B, C)[:count])
    assert staging(plan) == [False] * count
    assert [order.targets for order in plan.orders] == [tuple(range(8))] * count


def test_data_staged_by_an_earlier_strategy_are_drained_at_any_time() -> None:
    plan = decide("none", A, with_data(B), with_data(C, blocked=True))
    assert draining(plan)[1:] == [True, True]


def test_drains_have_no_limit_and_there_is_no_need_to_decide_again() -> None:
    plan = coordinate(Situation(3.0, 2, (A, with_data(B))))
    assert [order.drain_bytes_per_s for order in plan.orders] == [inf, inf]
    assert (plan.wake_s, plan.drains_in_background) == (inf, False)
