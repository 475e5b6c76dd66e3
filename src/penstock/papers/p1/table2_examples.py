# SPDX-License-Identifier: MIT
"""The examples behind Table 2 of bandwidth sharing: instances that defeat policies.

Each function builds the instance of one example for a policy (with an adversary,
`penstock.analysis.adversary`, where the example needs one), runs the policy, and runs
better schedules to compare with. The better schedules are simulated as well, so they
are feasible.

Example 2 is in section 5 of the paper. The others are in its companion report and are
rebuilt here from their results. In all of them b_i = B = 1 and p_i = 1; m is the number
of applications.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from penstock.analysis import Metrics, measure
from penstock.analysis.adversary import (
    UNIT,
    Completion,
    Phases,
    Rule,
    listed,
    play,
)
from penstock.model import Application, Instance, Window
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
    """A policy on the instance of an example, and better schedules."""

    policy: str
    """Name and parameters of the policy."""
    instance: Instance
    ours: Metrics
    """Objectives of the policy."""
    references: tuple[Metrics, ...]
    """Objectives of the better schedules; which one is best depends on the "
    "objective."""
    predicted: Mapping[str, float]
    """Objective -> smallest ratio that the proof gives for these parameters.

    It applies to the policies that the example is about.
    """

    def best(self, objective: str) -> float:
        """Return the value of an objective in the best schedule."""
        return max(float(getattr(r, objective)) for r in self.references)

    def ratio(self, objective: str) -> float:
        """Return the best value over that of the policy; infinite if that is 0."""
        ours = float(getattr(self.ours, objective))
        return self.best(objective) / ours if ours > 0 else math.inf

    def margin(self, objective: str) -> float:
        """Return the ratio over the predicted one: at least 1 if the proof holds."""
        if math.isinf(self.ratio(objective)):
            return math.inf
        return self.ratio(objective) / self.predicted[objective]


def example_1(policy: str, m: int, length: float) -> Case:
    """MinYield of fair-share: m L / (L + 1), which tends to m as L grows.

    One fresh application and m - 1 with a perfect history of length L, all in I/O
    during the window [0, 1]. With equal shares the fresh application has yield 1/m at
    the end. Served alone, it has yield 1, and the others, which wait, L / (L + 1).
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
    """Efficiency: no policy has a ratio under m/4. Utilization: no policy has a ratio.

    m is even, and at least 4. All applications post a volume of 2/m at time 0; at most
    m/2 of them can complete by time 1. The adversary makes those category B: little
    work, alpha = eps / (m/2 - 1), then I/O to the end. The others are category A: they
    would work to the end after their operation.

    Efficiency: (m/4 + 1/2) / (1 + eps). With any policy, the window holds transfers of
    at most 1 and work of category B of at most (m/2 - 1) alpha = eps: efficiency
    (1 + eps) / m. A better schedule serves category A one after the other: the k-th
    loses 2 (k - 1) / m, and the sum over k <= m/2 of 1 - 2 (k - 1) / m is
    (m/2 + 1) / 2.

    Utilization: (m - 2) / (4 eps), without bound. Only m/2 - 1 applications of category
    B complete early enough to work, alpha each: utilization at most eps / m. When
    category A is served one after the other, the k-th works 1 - 2 k / m: utilization
    (m - 2) / (4 m).

    MinYield: infinite for a policy that serves one operation after the other. Half of
    the operations fill the window, so that the other half has yield 0; equal shares
    give a yield of 1/m to all.
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

    One application is far behind and began a long operation before the window [0, 1].
    The others have yield 1, need eps of I/O, and then work to the end. These policies
    continue the long operation, which is first by post time and by yield: efficiency
    1/m. A better schedule serves the short operations first: the j-th of the m - 1
    waits (j - 1) eps and the long one (m - 1) eps, m (m - 1) eps / 2 in all.
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

    Fresh applications repeat I/O of length 1 and work of length m - 1. With delta -> 0
    the yields stay equal, and so do the shares: all complete after m (the first of them
    up to (m - 1) delta sooner), work at the same time for m - 1, and progress by m in
    2 m - 1. A better schedule serves in the order of posting: the k-th waits k - 1 once
    and never again, because m operations of length 1 fill a cycle of length m. The
    window has the length `cycles` * (2 m - 1).
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
    """MinYield of any policy: (3 m - 1) / (2 m), which tends to 3/2.

    The adversary is `all_return_together`. A cycle lasts R, in which the k-th
    application progresses by 1 + R - c_k: by m on average. As c_k >= k,
    R >= m - 1 + (m + 1) / 2 = (3 m - 1) / 2: the mean yield, and so the minimum, is at
    most 2 m / (3 m - 1), with any policy.

    A schedule that knows all phases staggers the applications: for some order of the
    first operations they hardly meet again. Each application then waits at most m - 1
    for its first operation and never again: yield 1 - (m - 1) / T, T being the length
    of the window. All m! orders are tried, so m is small. They contain such an order
    for best-next-event only if m is even, for greedy-yield only if m is odd.

    The window has the length of `cycles` shortest cycles.
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
    """Return the adversary of example 5.

    In every cycle all applications post a volume of 1 at the same time. The one that
    completes after c_k gets the work R - c_k with R = m - 1 + mean(c), so that all post
    again after R. All work ends after the last completion (R >= m), so that no policy
    can know R before that.
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

    All 2 n applications have a perfect history of length L. n applications post a long
    operation V at time 0 and would then work. n others repeat short I/O e and work
    (n - 1) e, each e later than the one before; served at once, they fill the
    bandwidth. The best next event is always the completion of a short operation
    (e < V), so the long ones wait for the whole window, (n - 1 - e/V) L: their yield
    falls to 1 / (n - e/V), apart from the part of V that moves while no short operation
    is active. A better schedule serves the long operations first, which costs the
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
    """Return m applications, released at 0, whose phases the adversary will choose."""
    return [Application.from_phases(f"a{i}", 1, [("work", 0.0)]) for i in range(m)]


def _with_history(name: str, phases: Phases, length: float) -> Application:
    """Return an application that worked for `length` before time 0 without a loss."""
    return Application.from_phases(
        name, 1, phases, release=-length, start=0.0, done_work=length
    )


def _measured(instance: Instance, policy: str) -> Metrics:
    return measure(simulate(instance, policy))
