# SPDX-License-Identifier: MIT
"""An adversary reacts to a policy, and `play` detects one that sees the future."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.analysis.adversary import (
    Completion,
    Phases,
    listed,
    play,
    with_phases,
)
from penstock.errors import InternalError
from penstock.model import Window
from penstock.sim import simulate
from unit.samples import app, make, pair

TWO = [app("a", ("work", 0.0)), app("b", ("work", 0.0))]


def test_the_rule_sees_every_completion_once_and_in_order() -> None:
    calls: list[list[Completion]] = []

    def rule(seen: Sequence[Completion]) -> list[Phases]:
        calls.append(list(seen))
        return [[("io", 1.0), ("work", 1.0), ("io", 1.0)], [("io", 1.0)]]

    play("fcfs", rule, TWO, Window(0.0, 10.0))
    ends = [Completion(1.0, 0, 0), Completion(2.0, 1, 0), Completion(3.0, 0, 1)]
    assert calls == [ends[:count] for count in range(4)]


def test_completions_at_one_instant_come_together() -> None:
    calls: list[int] = []

    def rule(seen: Sequence[Completion]) -> list[Phases]:
        calls.append(len(seen))
        return [[("io", 1.0)], [("io", 1.0)]]

    play("fair-share", rule, TWO, Window(0.0, 10.0))
    assert calls == [0, 2]


@pytest.mark.parametrize(("policy", "first"), [("fcfs", "a"), ("greedy-com", "b")])
def test_the_phases_that_follow_depend_on_the_policy(policy: str, first: str) -> None:
    """The application that completes first gets a second operation."""

    def rule(seen: Sequence[Completion]) -> list[Phases]:
        phases: list[Phases] = [[("io", 2.0)], [("io", 1.0)]]
        if seen:
            phases[seen[0].application] += [("work", 0.0), ("io", 9.0)]
        return phases

    instance = play(policy, rule, TWO, Window(0.0, 5.0))
    again = [a.name for a in instance.applications if len(a.volume) > 1]
    assert again == [first]
    # The result is an ordinary instance, with work until the end of the window.
    assert simulate(instance, policy).work.max() > 0
    assert all(a.work[-1] >= 5.0 for a in instance.applications)


def test_a_policy_that_sees_the_future_is_detected() -> None:
    """The default delta of periodic-greedy-yield depends on later phases."""

    def rule(seen: Sequence[Completion]) -> list[Phases]:
        more: Phases = [("work", 0.1), ("io", 0.1)] * len(seen)
        return [[("io", 1.0), *more], [("io", 1.5), *more]]

    with pytest.raises(InternalError, match="its past decisions depend on the future"):
        play("periodic-greedy-yield", rule, TWO, Window(0.0, 10.0))
    play("periodic-greedy-yield:delta=0.5", rule, TWO, Window(0.0, 10.0))


def test_listed_changes_the_order_and_nothing_else() -> None:
    instance = pair()
    turned = listed(instance, [1, 0])
    assert [a.name for a in turned.applications] == ["b", "a"]
    assert (turned.platform, turned.window) == (instance.platform, instance.window)
    assert listed(turned, [1, 0]).applications == instance.applications


def test_with_phases_keeps_the_history() -> None:
    old = app("a", ("io", 1.0), release=-5.0, start=-1.0, done_work=3.0, nodes=4)
    new = with_phases(old, [("work", 2.0), ("io", 7.0)])
    assert (new.name, new.nodes, new.release, new.start) == ("a", 4, -5.0, -1.0)
    assert new.done_work == 3.0
    assert new.volume.tolist() == [7.0]
    assert make(new, window=(0.0, 1.0)).applications == (new,)
