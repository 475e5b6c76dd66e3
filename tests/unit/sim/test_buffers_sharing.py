# SPDX-License-Identifier: MIT
"""How a policy shares one target among writers and drains."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policies import get_policy
from penstock.sim.buffers_sharing import (
    Columns,
    FlowDemand,
    Shares,
    TargetRules,
    ask,
    share_target,
)

FAIR = get_policy("fair-share")


def columns(applications: int) -> Columns:
    """Return columns without any history: writings, then drains."""
    entries = 2 * applications
    return Columns(
        window_begin=0.0,
        window_end=100.0,
        dedicated_events=2.0,
        release=[0.0] * entries,
        nodes=[1] * entries,
        lost=[0.0] * entries,
        operations=[0] * entries,
        iterations=[0] * entries,
        iteration_time=[0.0] * entries,
        work_before=[0.0] * entries,
    )


def demand(entry: int, cap: float = 10.0) -> FlowDemand:
    return FlowDemand(entry, cap, remaining=50.0, volume=50.0, posted=0.0)


def shared(
    *demands: FlowDemand, background: bool = False, efficiency: float = 1.0
) -> Shares:
    """Share a target of capacity 10 among two applications, at time 1."""
    rules = TargetRules(FAIR, FAIR, 10.0, efficiency, background)
    return share_target(rules, 1.0, demands, columns(2))


def test_an_unused_target_needs_no_new_decision() -> None:
    assert ask(FAIR, 1.0, 10.0, [], columns(1)) == Shares({}, inf)


def test_writers_and_drains_share_alike() -> None:
    assert shared(demand(0), demand(3)).rates == {0: 5.0, 3: 5.0}


def test_drains_in_the_background_get_what_writers_leave() -> None:
    assert shared(demand(0), demand(3), background=True).rates == {0: 10.0}
    rates = shared(demand(0, cap=4.0), demand(3), background=True).rates
    assert rates == {0: 4.0, 3: 6.0}
    rates = shared(demand(2), demand(3), background=True).rates
    assert rates == {2: 5.0, 3: 5.0}


def test_interference_costs_capacity_only_among_several_applications() -> None:
    rates = shared(demand(0), demand(1), efficiency=0.8).rates
    assert rates == pytest.approx({0: 4.0, 1: 4.0})
    # One application that writes and drains does not interfere with itself.
    assert shared(demand(0), demand(2), efficiency=0.8).rates == {0: 5.0, 2: 5.0}
    assert shared(demand(0), efficiency=0.8).rates == {0: 10.0}


def test_drains_beside_a_writer_pay_for_interference() -> None:
    rates = shared(demand(0, 4.0), demand(3), background=True, efficiency=0.8).rates
    assert rates == pytest.approx({0: 4.0, 3: 4.0})


@given(
    caps=st.lists(st.floats(0.1, 20.0), min_size=4, max_size=4),
    present=st.sets(st.integers(0, 3), min_size=1),
    background=st.booleans(),
    efficiency=st.floats(0.1, 1.0),
)
def test_no_rate_exceeds_its_cap_and_all_rates_the_capacity(
    caps: list[float], present: set[int], background: bool, efficiency: float
) -> None:
    demands = [demand(entry, caps[entry]) for entry in sorted(present)]
    rates = shared(*demands, background=background, efficiency=efficiency).rates
    for entry, rate in rates.items():
        assert 0.0 <= rate <= caps[entry] * (1 + 1e-9)
    assert sum(rates.values()) <= 10.0 * (1 + 1e-9)
