# SPDX-License-Identifier: MIT
"""Table 2 of papers/1: lower bounds on competitive ratios, entry by entry.

Every test builds the instance of one example (played by an adversary where the
example asks for one), runs the policy, and divides the objective of a schedule
that is known to be better by the policy's. The better schedule is always a run of
the simulator too, so that it is feasible beyond doubt, and its objective is
compared with the formula that the example gives for it.

Example 2 is in papers/1 section 5; the others are in the companion report, and
are rebuilt here from what they claim. In all of them b_i = B = 1 and p_i = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import pytest

from penstock.analysis.metrics import measure
from penstock.model import Application, Instance, Window
from penstock.sim import simulate
from theory.adversary import UNIT, Completion, Phases, Rule, listed, play

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
#: "Any strategy": the other policies of penstock as well.
ANY = (*TABLE, "exclusive-fcfs", "set-fair-share", "share-priority")


def fresh(m: int) -> list[Application]:
    """Return m applications that are released at 0; their phases come later."""
    return [Application.from_phases(f"a{i}", 1, [("work", 0.0)]) for i in range(m)]


# --- Example 1: FairShare, MinYield, m ----------------------------------------


@pytest.mark.parametrize("m", [2, 5, 16])
@pytest.mark.parametrize("length", [1.0, 10.0, 1e6])
def test_example_1_min_yield_of_fair_share(m: int, length: float) -> None:
    """Ratio m L / (L + 1), which tends to m: bandwidth for those who need none.

    One fresh application and m - 1 with a perfect history of length L, all in I/O
    during the window [0, 1]. Shared, the fresh one has yield 1/m at the end. Served
    alone it has 1, and the others, who stand still, L / (L + 1).
    """
    io: Phases = [("io", 2.0)]
    rich = [
        Application.from_phases(
            f"rich{i}", 1, io, release=-length, start=0.0, done_work=length
        )
        for i in range(m - 1)
    ]
    instance = Instance(
        UNIT, Window(0.0, 1.0), (Application.from_phases("poor", 1, io), *rich)
    )
    ours = measure(simulate(instance, "fair-share")).min_yield
    best = measure(simulate(instance, "greedy-yield")).min_yield
    assert ours == pytest.approx(1 / m, rel=1e-12)
    assert best == pytest.approx(length / (length + 1), rel=1e-12)
    assert best / ours == pytest.approx(m * length / (length + 1), rel=1e-12)


# --- Example 2: MinYield infinite, Efficiency m/4, Utilization infinite -------


def example_2(policy: str, m: int, epsilon: float) -> Instance:
    """Return the instance of example 2 into which the adversary leads `policy`.

    All m applications post 2/m at 0; at most m/2 of them can complete by 1. Those
    that do are of category B: next to no work, then I/O to the end. The others turn
    out to be of category A: they would have worked to the end.
    """
    alpha = epsilon / (m / 2 - 1)

    def rule(seen: Sequence[Completion]) -> list[Phases]:
        phases: list[Phases] = [[("io", 2 / m)] for _ in range(m)]
        first = [c.application for c in seen if c.number == 0]
        for i in first[: m // 2]:
            phases[i] += [("work", alpha), ("io", 1.0)]
        return phases

    return play(policy, rule, fresh(m), Window(0.0, 1.0))


def category_a_first(instance: Instance) -> Instance:
    """Return the instance with the applications of category A listed first."""
    m = len(instance.applications)
    in_b = [len(a.volume) > 1 for a in instance.applications]
    assert sum(in_b) <= m // 2
    return listed(instance, sorted(range(m), key=lambda i: in_b[i]))


@pytest.mark.parametrize(
    "policy", ["fcfs", "set-10", "greedy-yield", "greedy-com", TABLE[5]]
)
@pytest.mark.parametrize("m", [4, 10])
def test_example_2_min_yield(policy: str, m: int) -> None:
    """A policy that serves one operation after the other starves somebody.

    Half of the operations fill the window, so that the other half has yield 0; shared
    equally among the m applications, the window gives 1/m to each.
    """
    instance = example_2(policy, m, epsilon=1 / 64)
    assert measure(simulate(instance, policy)).min_yield == 0.0
    best = measure(simulate(instance, "fair-share")).min_yield
    assert best == pytest.approx(1 / m, rel=1e-12)


@pytest.mark.parametrize("policy", ["fair-share", PERIODIC, "best-next-event"])
def test_example_2_min_yield_of_those_who_share(policy: str) -> None:
    """The other policies of the table are not fooled by example 2: 1/m."""
    instance = example_2(policy, 8, epsilon=1 / 64)
    ours = measure(simulate(instance, policy)).min_yield
    assert ours == pytest.approx(1 / 8, rel=1e-9)


@pytest.mark.parametrize("policy", ANY)
@pytest.mark.parametrize("m", [4, 8, 20])
def test_example_2_efficiency(policy: str, m: int) -> None:
    """No policy is better than m/4: the ratio tends to m/4 + 1/2.

    Whatever the policy, the transfers of the window amount to at most 1, and the
    work of category B to at most (m/2 - 1) alpha = eps: efficiency (1 + eps) / m.
    Category A one after the other: the k-th begins 2 (k - 1) / m late and loses
    no more, sum over k <= m/2 of 1 - 2 (k - 1) / m = (m/2 + 1) / 2.
    """
    epsilon = 1 / 1024
    instance = example_2(policy, m, epsilon)
    ours = measure(simulate(instance, policy)).efficiency
    best = measure(simulate(category_a_first(instance), "fcfs")).efficiency
    assert ours <= (1 + epsilon) / m * (1 + 1e-12)
    assert best == pytest.approx((m / 2 + 1) / (2 * m), rel=1e-12)
    assert best / ours >= (m / 4 + 1 / 2) / (1 + epsilon) * (1 - 1e-12)
    assert best / ours > m / 4


@pytest.mark.parametrize("policy", ANY)
def test_example_2_utilization(policy: str) -> None:
    """No policy has a competitive ratio: (m - 2) / (4 eps), without bound.

    Only m/2 - 1 applications of category B complete early enough to work, alpha
    each: utilization at most eps / m, against (m - 2) / (4 m) for category A in turn,
    the k-th of which works 1 - 2 k / m.
    """
    m = 8
    ratios = []
    for epsilon in (1e-1, 1e-3, 1e-6):
        instance = example_2(policy, m, epsilon)
        ours = measure(simulate(instance, policy)).utilization
        best = measure(simulate(category_a_first(instance), "fcfs")).utilization
        assert best == pytest.approx((m - 2) / (4 * m), rel=1e-12)
        assert ours <= epsilon / m * (1 + 1e-9)
        ratios.append(best / ours if ours > 0 else math.inf)
        assert ratios[-1] >= (m - 2) / (4 * epsilon) * (1 - 1e-9)
    assert ratios == sorted(ratios)


# --- Example 3: Efficiency m --------------------------------------------------


@pytest.mark.parametrize(
    "policy", ["fcfs", "set-10", "greedy-yield", TABLE[5], PERIODIC, "best-next-event"]
)
@pytest.mark.parametrize("m", [2, 8])
@pytest.mark.parametrize("epsilon", [2.0**-6, 2.0**-12])
def test_example_3_efficiency(policy: str, m: int, epsilon: float) -> None:
    """Ratio m (1 - eps (m - 1) / 2), which tends to m: all wait for one.

    An application that is far behind began a long operation before the window; the
    others are at yield 1, need eps of I/O, and would then work to the end. These
    policies go on with the long one, which is first by post time and by yield:
    efficiency 1/m. The short ones first: the j-th of the m - 1 waits (j - 1) eps, the
    long one (m - 1) eps, m (m - 1) eps / 2 in all.
    """
    length = 1e4
    late = Application.from_phases(
        "late", 1, [("io", 8.0)], release=-length, start=-1.0
    )
    rich = [
        Application.from_phases(
            f"rich{i}",
            1,
            [("io", epsilon), ("work", 2.0)],
            release=-length,
            start=0.0,
            done_work=length,
        )
        for i in range(m - 1)
    ]
    instance = Instance(UNIT, Window(0.0, 1.0), (*rich, late))
    ours = measure(simulate(instance, policy)).efficiency
    best = measure(simulate(instance, "greedy-com")).efficiency
    assert ours == pytest.approx(1 / m, rel=1e-9)
    assert best == pytest.approx(1 - epsilon * (m - 1) / 2, rel=1e-12)
    assert best / ours == pytest.approx(m * (1 - epsilon * (m - 1) / 2), rel=1e-9)


# --- Example 4: PeriodicGreedyYield, MinYield, 2 ------------------------------


@pytest.mark.parametrize("m", [2, 4, 8, 16])
def test_example_4_min_yield_of_periodic(m: int) -> None:
    """Ratio (2 m - 1) / m, which tends to 2: sharing keeps all in step.

    Fresh applications repeat I/O 1, work m - 1. With delta -> 0 the yields stay equal,
    hence so do the shares: all complete after m, work together for m - 1, and
    progress by m in 2 m - 1. In the order of posting, the k-th waits k - 1 once and
    never again: m operations of length 1 tile a cycle of length m.
    """
    cycles = 32
    end = float(cycles * (2 * m - 1))
    pair: Phases = [("io", 1.0), ("work", m - 1.0)]
    applications = tuple(
        Application.from_phases(f"a{i}", 1, pair * (2 * cycles)) for i in range(m)
    )
    instance = Instance(UNIT, Window(0.0, end), applications)
    best = measure(simulate(instance, "fcfs")).min_yield
    assert best == pytest.approx(1 - (m - 1) / end, rel=1e-12)
    errors = []
    for delta in (2.0**-4, 2.0**-7, 2.0**-10):
        policy = f"periodic-greedy-yield:delta={delta!r}"
        ours = measure(simulate(instance, policy)).min_yield
        errors.append(abs(ours - m / (2 * m - 1)))
        # The last to be served ends at m, the first up to (m - 1) delta sooner.
        assert errors[-1] <= m * delta
    assert errors == sorted(errors, reverse=True)
    assert best / ours == pytest.approx((2 * m - 1) / m, rel=0.02)


# --- Example 5: any strategy, MinYield, 3/2 -----------------------------------


def all_return_together(m: int) -> Rule:
    """Return the rule of example 5.

    In every cycle all post 1 at once. Whoever completes c_k later gets the work
    R - c_k with R = m - 1 + mean(c): all post again R after they last did. The works
    end after the last completion (R >= m), so nobody knows them before.
    """

    def rule(seen: Sequence[Completion]) -> list[Phases]:
        phases: list[Phases] = [[("io", 1.0)] for _ in range(m)]
        start = 0.0
        for cycle in range(len(seen) // m):
            delays = {c.application: c.time - start for c in seen if c.number == cycle}
            length = m - 1 + math.fsum(delays.values()) / m
            for i in range(m):
                phases[i] += [("work", length - delays[i]), ("io", 1.0)]
            start += length
        return phases

    return rule


@pytest.mark.parametrize("policy", ANY)
def test_example_5_min_yield_of_any_strategy(policy: str) -> None:
    """Ratio (3 m - 1) / (2 m), which tends to 3/2, as the window grows.

    A cycle lasts R, in which the k-th progresses by 1 + R - c_k: by m on average. As
    c_k >= k, R >= m - 1 + (m + 1) / 2 = (3 m - 1) / 2: the mean yield, and so the
    minimum, is at most 2 m / (3 m - 1), whatever the policy. Whoever knows the works
    staggers the applications; among the orders of the first operations there is one
    from which on they hardly meet, or the policy is worse than it need be.
    """
    # For best-next-event, the orders tried are good enough with an even m only.
    m = 4 if policy == "best-next-event" else 5
    limit = (3 * m - 1) / (2 * m)
    end = 40 * (3 * m - 1) / 2
    instance = play(policy, all_return_together(m), fresh(m), Window(0.0, end))
    ours = measure(simulate(instance, policy)).min_yield
    assert ours <= 1 / limit * (1 + 1e-9)
    best = max(
        measure(simulate(listed(instance, order), reference)).min_yield
        for order in permutations(range(m))
        for reference in ("fcfs", "greedy-yield")
    )
    assert best / ours >= limit * (1 - (m - 1) / end) * (1 - 1e-9)


@pytest.mark.parametrize("m", [3, 5])
@pytest.mark.parametrize("policy", ["greedy-yield", "look-ahead-greedy-yield"])
def test_example_5_is_tight_for_greedy_yield(policy: str, m: int) -> None:
    """The bound is met: ours is 2 m / (3 m - 1), the best 1 - (m - 1) / T.

    Served in turn, c = 1 ... m; the next time the order is reversed, and after two
    cycles all yields are equal again. In the best schedule each waits at most m - 1
    for its first operation, and never again.
    """
    end = 20 * (3 * m - 1.0)
    instance = play(policy, all_return_together(m), fresh(m), Window(0.0, end))
    ours = measure(simulate(instance, policy)).min_yield
    best = max(
        measure(simulate(listed(instance, order), "fcfs")).min_yield
        for order in permutations(range(m))
    )
    assert ours == pytest.approx(2 * m / (3 * m - 1), rel=1e-12)
    assert best == pytest.approx(1 - (m - 1) / end, rel=1e-12)


# --- Example 6: BestNextEvent, MinYield, m/2 - 4 ------------------------------


@pytest.mark.parametrize("n", [6, 8, 12])
def test_example_6_min_yield_of_best_next_event(n: int) -> None:
    """Ratio near n - e/V, more than m/2 - 4 for m = 2 n: the long ones starve.

    All 2 n applications have a perfect history of length L. n long ones post V at 0 and
    would then work; n short ones repeat I/O e, work (n - 1) e, each e later than the
    one before, so that served at once they fill the bandwidth. The best next event is
    always the completion of a short one (e < V), and the long ones stand still for
    the whole window, (n - 1 - e/V) L: their yield falls to 1 / (n - e/V). The long ones
    first would cost all others n V << L only.
    """
    e, v, length = 0.5, 1.0, 100.0 * n
    end = (n - 1 - e / v) * length
    history = {"release": -length, "start": 0.0, "done_work": length}
    long = [
        Application.from_phases(
            f"long{i}", 1, [("io", v), ("work", 2 * end)], **history
        )
        for i in range(n)
    ]
    pair: Phases = [("io", e), ("work", (n - 1) * e)]
    repeats = math.ceil(end / (n * e)) + 2
    short = [
        Application.from_phases(
            f"short{i}", 1, [("work", i * e), *pair * repeats], **history
        )
        for i in range(n)
    ]
    instance = Instance(UNIT, Window(0.0, end), (*long, *short))
    run = simulate(instance, "best-next-event")
    ours = measure(run).min_yield
    best = measure(simulate(instance, "fcfs")).min_yield
    assert best >= 1 - 2 * n * v / length
    assert ours == pytest.approx(1 / (n - e / v), rel=0.02)
    assert best / ours >= n - 4
