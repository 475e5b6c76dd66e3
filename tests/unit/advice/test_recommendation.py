# SPDX-License-Identifier: MIT
"""The verdict follows from gains that are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.advice.recommendation import (
    FEWEST_OPERATIONS,
    WORTHWHILE,
    Answer,
    PolicyOutcome,
    Recommendation,
    recommend,
)
from penstock.advice.scenarios import Uncertainty, draw_scenarios
from penstock.errors import InputError
from penstock.policies import RECOMMENDED
from penstock.sim import simulate
from unit.samples import app, make, pair, steady_three


def _long_and_short(operations: int = 8) -> object:
    """Return a job of long operations beside one of short ones, both often in I/O.

    With fcfs the short job waits for whole long operations. With fair-share its
    operations take twice as long.
    """
    long = [("work", 10.0), ("io", 20.0)] * operations
    short = [("work", 3.0), ("io", 0.5)] * (8 * operations)
    return make(
        app("long", *long, ("work", 999.0)),
        app("short", *short, ("work", 999.0)),
        window=(0.0, 150.0),
    )


def test_a_lone_job_keeps_the_policy() -> None:
    alone = make(app("a", *[("work", 1.0), ("io", 1.0)] * 9), window=(0.0, 15.0))
    result = recommend([alone])
    assert result.verdict is Answer.KEEP
    assert result.policy == "fair-share"
    assert result.gain == 0.0


def test_fcfs_is_left_where_short_operations_wait_for_long_ones() -> None:
    scenarios = draw_scenarios([_long_and_short()], 12, Uncertainty(), 1)  # type: ignore[list-item]
    result = recommend(scenarios, present="fcfs")
    assert result.verdict is Answer.CHANGE
    assert result.policy == result.candidate.policy != "fcfs"
    low, high = result.gain_interval
    assert 0 < low <= result.gain <= high
    assert result.present.min_yield + result.gain <= result.bound + 1e-9


def test_the_outcome_of_one_scenario_is_its_simulation() -> None:
    instance = steady_three()
    result = recommend([instance], "fair-share", ["fcfs"])
    by_policy = {outcome.policy: outcome for outcome in result.outcomes}
    assert set(by_policy) == {"fair-share", "fcfs"}
    for policy, outcome in by_policy.items():
        run = simulate(instance, policy, steady=False)
        assert outcome.min_yield == run.yields.min()
        assert list(outcome.yields.values()) == run.yields.tolist()


def test_two_operations_are_too_few() -> None:
    result = recommend([pair()], "fcfs")
    assert result.operations == 2 < FEWEST_OPERATIONS
    assert result.verdict is Answer.THIN_EVIDENCE
    assert result.policy == "fcfs"


def test_the_number_of_operations_can_be_that_of_all_logs() -> None:
    result = recommend([pair()], "fcfs", operations=20)
    assert result.verdict is not Answer.THIN_EVIDENCE


def test_no_instance_is_refused() -> None:
    with pytest.raises(InputError, match="no instance"):
        recommend([])


def _outcome(policy: str, *min_yields: float) -> PolicyOutcome:
    columns = np.array(min_yields)
    return PolicyOutcome(policy, columns, columns, {"a": float(columns.mean())})


def _result(present: PolicyOutcome, candidate: PolicyOutcome) -> Recommendation:
    return Recommendation(
        Answer.CHANGE, present, candidate, (candidate, present), 1.0, 2, 9
    )


def test_gains_are_differences_on_the_same_scenario() -> None:
    result = _result(_outcome("a", 0.2, 0.8), _outcome("b", 0.3, 0.9))
    assert result.gain == pytest.approx(0.1)
    assert result.gain_interval == pytest.approx((0.1, 0.1))
    assert result.part_without_gain == 0.0


def test_the_part_of_losing_scenarios_counts_scenarios() -> None:
    result = _result(_outcome("a", 0.5, 0.5), _outcome("b", 0.9, 0.4))
    assert result.part_without_gain == 0.5
    assert result.gain_interval[0] < 0


def test_the_largest_loss_names_the_job() -> None:
    before = PolicyOutcome("a", np.ones(1), np.ones(1), {"x": 0.9, "y": 0.6})
    after = PolicyOutcome("b", np.ones(1), np.ones(1), {"x": 0.7, "y": 0.7})
    name, loss = _result(before, after).largest_loss
    assert name == "x"
    assert loss == pytest.approx(0.2)


def test_the_recommended_policy_is_preferred_to_one_that_is_hardly_better() -> None:
    instance = steady_three()
    result = recommend([instance], "fcfs")
    best = result.outcomes[0]
    reached = {o.policy: o.min_yield for o in result.outcomes}
    if best.min_yield - reached[RECOMMENDED] < WORTHWHILE:
        assert result.candidate.policy == RECOMMENDED
    else:
        assert result.candidate is best


def test_a_job_that_comes_late_and_never_waits_does_not_lower_the_efficiency() -> None:
    phases = [("work", 9.0), ("io", 1.0)] * 5
    late = app("late", *phases, release=70.0)
    instance = make(app("a", ("work", 99.0)), late, window=(0.0, 100.0))
    advice = recommend([instance], "fcfs", ["fair-share"])
    assert advice.present.efficiency == pytest.approx(1.0)
