# SPDX-License-Identifier: MIT
"""Instances on which policies do badly: the examples behind Table 2 of papers/1.

Each function builds the instance of one example for a policy (an adversary plays it
where the example asks for one), runs the policy, and runs schedules that are known
to be better. These are runs of the simulator as well: feasible beyond doubt.

Example 2 is in papers/1 section 5; the others are in the companion report, and
are rebuilt here from what they claim. In all of them b_i = B = 1 and p_i = 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from penstock.analysis import Metrics, measure
from penstock.model import Application, Instance, Window
from penstock.papers.p1.adversary import (
    UNIT,
    Completion,
    Phases,
    Rule,
    listed,
    play,
)
from penstock.sim import simulate

__all__ = [
    "Case",
    "all_return_together",
    "example_1",
    "example_2",
    "example_3",
    "example_4",
    "example_5",
    "example_6",
]

_UNIT_WINDOW: Final = Window(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Case:
    """A policy on an instance, and schedules that do better."""

    policy: str
    """With its parameters."""
    instance: Instance
    ours: Metrics
    """Objectives of the policy."""
    references: tuple[Metrics, ...]
    """Objectives of the better schedules; which is best depends on the objective."""
    predicted: Mapping[str, float]
    """Objective -> ratio that the argument gives for these parameters, at least.

    It speaks of the policies that the example is about.
    """

    def best(self, objective: str) -> float:
        """Return the value of an objective in the best of the schedules."""
        return max(float(getattr(r, objective)) for r in self.references)

    def ratio(self, objective: str) -> float:
        """Return how many times better than the policy that is; infinite if it is 0."""
        ours = float(getattr(self.ours, objective))
        return self.best(objective) / ours if ours > 0 else math.inf

    def margin(self, objective: str) -> float:
        """Return the ratio over what is predicted of it, at least 1 if all is well."""
        if math.isinf(self.ratio(objective)):
            return math.inf
        return self.ratio(objective) / self.predicted[objective]


def example_1(policy: str, m: int, length: float) -> Case:
    """MinYield of fair-share: m L / (L + 1), which tends to m as L grows.

    One fresh application and m - 1 with a perfect history of length L, all in I/O
    during the window [0, 1]. Shared, the fresh one has yield 1/m at the end. Served
    alone it has 1, and the others, who stand still, L / (L + 1).
    """
    io: Phases = [("io", 2.0)]
    poor = Application.from_phases("poor", 1, io)
    rich = [_with_history(f"rich{i}", io, length) for i in range(m - 1)]
    instance = Instance(UNIT, _UNIT_WINDOW, (poor, *rich))
    return Case(
        policy,
        instance,
        _measured(instance, policy),
        (_measured(instance, "greedy-yield"),),
        {"min_yield": m * length / (length + 1)},
    )


def example_2(policy: str, m: int, epsilon: float) -> Case:
    """No policy is better than m/4 for Efficiency, or has a ratio for Utilization.

    m is even, and at least 4. All applications post 2/m at 0; at most m/2 of them can
    complete by 1. Those that do are of category B: next to no work, alpha =
    eps / (m/2 - 1), then I/O to the end. The others turn out to be of category A: they
    would have worked to the end.

    Efficiency: (m/4 + 1/2) / (1 + eps). Whatever the policy, the transfers of the
    window amount to at most 1, and the work of category B to at most (m/2 - 1) alpha =
    eps: efficiency (1 + eps) / m. Category A one after the other: the k-th begins
    2 (k - 1) / m late and loses no more, sum over k <= m/2 of 1 - 2 (k - 1) / m =
    (m/2 + 1) / 2.

    Utilization: (m - 2) / (4 eps), without bound. Only m/2 - 1 applications of category
    B complete early enough to work, alpha each: utilization at most eps / m, against
    (m - 2) / (4 m) for category A in turn, the k-th of which works 1 - 2 k / m.

    MinYield: infinite for a policy that serves one operation after the other. Half of
    the operations fill the window, so that the other half has yield 0; shared equally
    among the m applications, the window gives 1/m to each.
    """
    alpha = epsilon / (m / 2 - 1)

    def rule(seen: Sequence[Completion]) -> list[Phases]:
        phases: list[Phases] = [[("io", 2 / m)] for _ in range(m)]
        first = [c.application for c in seen if c.number == 0]
        for i in first[: m // 2]:
            phases[i] += [("work", alpha), ("io", 1.0)]
        return phases

    instance = play(policy, rule, _fresh(m), _UNIT_WINDOW)
    in_b = [len(a.volume) > 1 for a in instance.applications]
    a_first = listed(instance, sorted(range(m), key=lambda i: in_b[i]))
    return Case(
        policy,
        instance,
        _measured(instance, policy),
        (_measured(instance, "fair-share"), _measured(a_first, "fcfs")),
        {
            "min_yield": math.inf,
            "efficiency": (m / 4 + 1 / 2) / (1 + epsilon),
            "utilization": (m - 2) / (4 * epsilon),
        },
    )


def example_3(policy: str, m: int, epsilon: float) -> Case:
    """Efficiency of most policies: m (1 - eps (m - 1) / 2), which tends to m.

    An application that is far behind began a long operation before the window [0, 1];
    the others are at yield 1, need eps of I/O, and would then work to the end. These
    policies go on with the long one, which is first by post time and by yield:
    efficiency 1/m. The short ones first: the j-th of the m - 1 waits (j - 1) eps, the
    long one (m - 1) eps, m (m - 1) eps / 2 in all.
    """
    length = 1e4
    late = Application.from_phases(
        "late", 1, [("io", 8.0)], release=-length, start=-1.0
    )
    phases: Phases = [("io", epsilon), ("work", 2.0)]
    rich = [_with_history(f"rich{i}", phases, length) for i in range(m - 1)]
    instance = Instance(UNIT, _UNIT_WINDOW, (*rich, late))
    return Case(
        policy,
        instance,
        _measured(instance, policy),
        (_measured(instance, "greedy-com"),),
        {"efficiency": m * (1 - epsilon * (m - 1) / 2)},
    )


def example_4(m: int, delta: float, cycles: int = 32) -> Case:
    """MinYield of periodic-greedy-yield, delta -> 0: (2 m - 1) / m, which tends to 2.

    Fresh applications repeat I/O 1, work m - 1. With delta -> 0 the yields stay equal,
    hence so do the shares: all complete after m (the first of them up to (m - 1) delta
    sooner), work together for m - 1, and progress by m in 2 m - 1. In the order of
    posting, the k-th waits k - 1 once and never again: m operations of length 1 tile
    a cycle of length m. The window holds `cycles` times 2 m - 1.
    """
    end = float(cycles * (2 * m - 1))
    pair: Phases = [("io", 1.0), ("work", m - 1.0)]
    applications = tuple(
        Application.from_phases(f"a{i}", 1, pair * (2 * cycles)) for i in range(m)
    )
    instance = Instance(UNIT, Window(0.0, end), applications)
    policy = f"periodic-greedy-yield:delta={delta!r}"
    return Case(
        policy,
        instance,
        _measured(instance, policy),
        (_measured(instance, "fcfs"),),
        {"min_yield": (1 - (m - 1) / end) * (2 * m - 1) / (m + (m - 1) * delta)},
    )


def example_5(policy: str, m: int, cycles: int = 40) -> Case:
    """MinYield of any strategy: (3 m - 1) / (2 m), which tends to 3/2.

    The rule is `all_return_together`. A cycle lasts R, in which the k-th progresses by
    1 + R - c_k: by m on average. As c_k >= k, R >= m - 1 + (m + 1) / 2 = (3 m - 1) / 2:
    the mean yield, and so the minimum, is at most 2 m / (3 m - 1), whatever the policy.

    Whoever knows the works staggers the applications; among the orders of the first
    operations there is one from which on they hardly meet, or the policy is worse
    than it need be. Each waits at most m - 1 for its first operation, and never
    again: 1 - (m - 1) / T. All m! orders are tried, so m is small; for best-next-event
    they are good enough with an even m only, for greedy-yield with an odd one.

    The window holds `cycles` of the shortest cycles.
    """
    end = cycles * (3 * m - 1) / 2
    instance = play(policy, all_return_together(m), _fresh(m), Window(0.0, end))
    references = tuple(
        _measured(listed(instance, order), reference)
        for order in permutations(range(m))
        for reference in ("fcfs", "greedy-yield")
    )
    predicted = (3 * m - 1) / (2 * m) * (1 - (m - 1) / end)
    return Case(
        policy,
        instance,
        _measured(instance, policy),
        references,
        {"min_yield": predicted},
    )


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


def example_6(policy: str, n: int, length: float) -> Case:
    """MinYield of best-next-event: near n - e/V, more than m/2 - 4 with m = 2 n.

    All 2 n applications have a perfect history of length L. n long ones post V at 0 and
    would then work; n short ones repeat I/O e, work (n - 1) e, each e later than the
    one before, so that served at once they fill the bandwidth. The best next event is
    always the completion of a short one (e < V), and the long ones stand still for
    the whole window, (n - 1 - e/V) L: their yield falls to 1 / (n - e/V), but for the
    part of V that is moved while no short one is there. The long ones first cost all
    others n V << L, once.

    So the ratio is at least ((n - e/V) L - n V) / (L + V). Here e = 1/2, V = 1.
    """
    e, v = 0.5, 1.0
    end = (n - 1 - e / v) * length
    long = [
        _with_history(f"long{i}", [("io", v), ("work", 2 * end)], length)
        for i in range(n)
    ]
    pair: Phases = [("io", e), ("work", (n - 1) * e)]
    repeats = math.ceil(end / (n * e)) + 2
    short = [
        _with_history(f"short{i}", [("work", i * e), *pair * repeats], length)
        for i in range(n)
    ]
    instance = Instance(UNIT, Window(0.0, end), (*long, *short))
    return Case(
        policy,
        instance,
        _measured(instance, policy),
        (_measured(instance, "fcfs"),),
        {"min_yield": ((n - e / v) * length - n * v) / (length + v)},
    )


def _fresh(m: int) -> list[Application]:
    """Return m applications that are released at 0; their phases come later."""
    return [Application.from_phases(f"a{i}", 1, [("work", 0.0)]) for i in range(m)]


def _with_history(name: str, phases: Phases, length: float) -> Application:
    """Return an application that worked for `length` before 0 and lost nothing."""
    return Application.from_phases(
        name, 1, phases, release=-length, start=0.0, done_work=length
    )


def _measured(instance: Instance, policy: str) -> Metrics:
    return measure(simulate(instance, policy))
