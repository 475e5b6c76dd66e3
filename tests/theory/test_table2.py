# SPDX-License-Identifier: MIT
"""Table 2 of bandwidth sharing: lower bounds on competitive ratios, entry by entry.

The examples are in `penstock.papers.p1.table2_examples`. Every test runs a policy on
the instance of one example and compares the objective of the policy, that of the best
known schedule, and their ratio with the formulas of the example.
"""

from __future__ import annotations

import pytest

from penstock.papers.p1.table2_examples import (
    example_1,
    example_2,
    example_3,
    example_4,
    example_5,
    example_6,
)

#: delta of periodic-greedy-yield, for which the table takes the limit 0.
PERIODIC = "periodic-greedy-yield:delta=0.0078125"

#: The rows of the table.
TABLE = (
    "fair-share",
    "fcfs",
    "set-10",
    "greedy-yield",
    "greedy-com",
    "look-ahead-greedy-yield",
    PERIODIC,
    "best-next-event",
)
#: The row "any strategy": the other policies of penstock as well.
ANY = (*TABLE, "exclusive-fcfs", "set-fair-share", "share-priority")


@pytest.mark.parametrize("m", [2, 5, 16])
@pytest.mark.parametrize("length", [1.0, 10.0, 1e6])
def test_example_1_min_yield_of_fair_share(m: int, length: float) -> None:
    case = example_1("fair-share", m, length)
    assert case.ours.min_yield == pytest.approx(1 / m, rel=1e-12)
    best = case.best("min_yield")
    assert best == pytest.approx(length / (length + 1), rel=1e-12)
    ratio = case.ratio("min_yield")
    assert ratio == pytest.approx(m * length / (length + 1), rel=1e-12)
    assert case.predicted == {"min_yield": pytest.approx(ratio, rel=1e-12)}


@pytest.mark.parametrize(
    "policy", ["fcfs", "set-10", "greedy-yield", "greedy-com", TABLE[5]]
)
@pytest.mark.parametrize("m", [4, 10])
def test_example_2_min_yield(policy: str, m: int) -> None:
    case = example_2(policy, m, epsilon=1 / 64)
    assert case.ours.min_yield == 0.0
    assert case.best("min_yield") == pytest.approx(1 / m, rel=1e-12)


@pytest.mark.parametrize("policy", ["fair-share", PERIODIC, "best-next-event"])
def test_example_2_min_yield_of_policies_that_share(policy: str) -> None:
    """The other policies of the table have MinYield 1/m in example 2."""
    case = example_2(policy, 8, epsilon=1 / 64)
    assert case.ours.min_yield == pytest.approx(1 / 8, rel=1e-9)


@pytest.mark.parametrize("policy", ANY)
@pytest.mark.parametrize("m", [4, 8, 20])
def test_example_2_efficiency(policy: str, m: int) -> None:
    epsilon = 1 / 1024
    case = example_2(policy, m, epsilon)
    assert sum(len(a.volume) > 1 for a in case.instance.applications) <= m // 2
    assert case.ours.efficiency <= (1 + epsilon) / m * (1 + 1e-12)
    best = case.best("efficiency")
    assert best == pytest.approx((m / 2 + 1) / (2 * m), rel=1e-12)
    ratio = case.ratio("efficiency")
    assert ratio >= (m / 4 + 1 / 2) / (1 + epsilon) * (1 - 1e-12)
    assert ratio > m / 4


@pytest.mark.parametrize("policy", ANY)
def test_example_2_utilization(policy: str) -> None:
    m = 8
    ratios = []
    for epsilon in (1e-1, 1e-3, 1e-6):
        case = example_2(policy, m, epsilon)
        best = case.best("utilization")
        assert best == pytest.approx((m - 2) / (4 * m), rel=1e-12)
        assert case.ours.utilization <= epsilon / m * (1 + 1e-9)
        ratios.append(case.ratio("utilization"))
        assert ratios[-1] >= (m - 2) / (4 * epsilon) * (1 - 1e-9)
    assert ratios == sorted(ratios)


@pytest.mark.parametrize(
    "policy", ["fcfs", "set-10", "greedy-yield", TABLE[5], PERIODIC, "best-next-event"]
)
@pytest.mark.parametrize("m", [2, 8])
@pytest.mark.parametrize("epsilon", [2.0**-6, 2.0**-12])
def test_example_3_efficiency(policy: str, m: int, epsilon: float) -> None:
    case = example_3(policy, m, epsilon)
    assert case.ours.efficiency == pytest.approx(1 / m, rel=1e-9)
    best = case.best("efficiency")
    assert best == pytest.approx(1 - epsilon * (m - 1) / 2, rel=1e-12)
    ratio = case.ratio("efficiency")
    assert ratio == pytest.approx(m * (1 - epsilon * (m - 1) / 2), rel=1e-9)


@pytest.mark.parametrize("m", [2, 4, 8, 16])
def test_example_4_min_yield_of_periodic(m: int) -> None:
    deltas = (2.0**-4, 2.0**-7, 2.0**-10)
    cases = [example_4(m, delta) for delta in deltas]
    for case in cases:
        end = case.instance.window.end
        best = case.best("min_yield")
        assert best == pytest.approx(1 - (m - 1) / end, rel=1e-12)
    errors = [abs(case.ours.min_yield - m / (2 * m - 1)) for case in cases]
    for error, delta in zip(errors, deltas, strict=True):
        # The last application ends at m, the first one up to (m - 1) delta sooner.
        assert error <= m * delta
    assert errors == sorted(errors, reverse=True)
    ratio = cases[-1].ratio("min_yield")
    assert ratio == pytest.approx((2 * m - 1) / m, rel=0.02)
    for case in cases:
        assert case.ratio("min_yield") >= case.predicted["min_yield"] * (1 - 1e-9)


@pytest.mark.parametrize("policy", ANY)
def test_example_5_min_yield_of_any_policy(policy: str) -> None:
    # Example 5 needs an even m for best-next-event.
    m = 4 if policy == "best-next-event" else 5
    limit = (3 * m - 1) / (2 * m)
    case = example_5(policy, m)
    end = case.instance.window.end
    assert end == 40 * (3 * m - 1) / 2
    assert case.ours.min_yield <= 1 / limit * (1 + 1e-9)
    ratio = case.ratio("min_yield")
    assert ratio >= limit * (1 - (m - 1) / end) * (1 - 1e-9)


@pytest.mark.parametrize("m", [3, 5])
@pytest.mark.parametrize("policy", ["greedy-yield", "look-ahead-greedy-yield"])
def test_example_5_is_tight_for_greedy_yield(policy: str, m: int) -> None:
    """Both have MinYield 2 m / (3 m - 1); the best schedule has 1 - (m - 1) / T.

    The policy serves one application after the other, c = 1 ... m; in the next cycle
    the order is reversed, and after two cycles all yields are equal again. In the best
    schedule each application waits at most m - 1 for its first operation and never
    again.
    """
    case = example_5(policy, m)
    end = case.instance.window.end
    assert case.ours.min_yield == pytest.approx(2 * m / (3 * m - 1), rel=1e-12)
    assert case.best("min_yield") == pytest.approx(1 - (m - 1) / end, rel=1e-12)


@pytest.mark.parametrize("n", [6, 8, 12])
def test_example_6_min_yield_of_best_next_event(n: int) -> None:
    length = 100.0 * n
    case = example_6("best-next-event", n, length)
    assert case.best("min_yield") >= 1 - 2 * n / length
    assert case.ours.min_yield == pytest.approx(1 / (n - 0.5), rel=0.02)
    assert case.ratio("min_yield") >= n - 4
    assert case.ratio("min_yield") >= case.predicted["min_yield"] * (1 - 1e-9)
