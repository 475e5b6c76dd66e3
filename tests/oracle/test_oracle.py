# SPDX-License-Identifier: MIT
"""The oracle against numbers computed by hand, and against its own rules."""

# mypy: disable-error-code="comparison-overlap"

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from oracle.best_next_event import (
    BestNextEvent,
    achieved_vector,
    best_vector,
    better,
    rates_to,
    sorted_yields,
)
from oracle.simulator import Active, OracleError, State, simulate
from oracle.strategies import STRATEGIES, make_strategy, set_number
from penstock.model import Application, Instance, Platform, Window

F = Fraction
Phases = list[tuple[str, float]]


def application(name: str, phases: Phases, nodes: int = 1, **rest: Any) -> Application:
    """Return an application of `phases`."""
    return Application.from_phases(name, nodes, phases, **rest)


def instance(
    *applications: Application,
    end: float,
    begin: float = 0,
    bandwidth: float = 1,
    node_bandwidth: float = 1,
) -> Instance:
    """Return an instance with the window [begin, end]."""
    platform = Platform(bandwidth, node_bandwidth)
    return Instance(platform, Window(begin, end), applications)


def active(
    index: int, remaining: Any, age: Any = 10, lost: Any = 0, **rest: Any
) -> Active:
    """Return an active application of cap 1 that posted at 0, unless told otherwise."""
    volume = F(remaining)
    given = {"cap": F(1), "posted_at": F(0), "volume": volume, "remaining": volume}
    return Active(index=index, age=F(age), lost=F(lost), **(given | rest))


def state(*applications: Active, bandwidth: Any = 1, end: Any = 1000) -> State:
    """Return a state at instant 0."""
    return State(F(0), F(0), F(end), F(bandwidth), applications)


def test_fcfs_two_applications() -> None:
    """The second to post waits for the first."""
    # A posts at 2 and transfers up to 5. B posts at 3, waits 2 s for A, and transfers
    # from 5 to 9. B has lost 2 of 20 s. From 4 on, A transfers 1 and works 15, B
    # transfers 4 and works 11.
    a = application("a", [("work", 2), ("io", 3), ("work", 99)])
    b = application("b", [("work", 3), ("io", 4), ("work", 99)])
    run = simulate(instance(a, b, begin=4, end=20), make_strategy("fcfs"))
    assert run.log == [
        (2, "post", 0),
        (3, "post", 1),
        (5, "completion", 0),
        (9, "completion", 1),
    ]
    assert run.decisions == [(2, {0: 1}), (3, {0: 1, 1: 0}), (5, {1: 1})]
    assert run.events == 4
    assert run.lost == [0, 2]
    assert run.yields == [1, F(9, 10)]
    assert run.work_in_window == [15, 11]
    assert run.volume_in_window == [1, 4]


def test_fcfs_fills_with_unequal_caps() -> None:
    """The second to post gets what the first leaves."""
    # Caps 3 and 2, B = 4: the second to post gets what is left, 1.
    a = application("a", [("work", 1), ("io", 30)], nodes=3)
    b = application("b", [("io", 20)], nodes=2)
    run = simulate(instance(a, b, bandwidth=4, end=2), make_strategy("fcfs"))
    assert run.decisions == [(0, {1: 2}), (1, {0: 2, 1: 2})]
    assert run.lost == [F(1, 3), 0]


def test_fair_share_with_unequal_caps() -> None:
    """All get the same fraction of their caps."""
    # B = 4, caps 4 and 2. A runs alone at 4 up to 1 (12 left). Then alpha =
    # 4 / 6 = 2/3: A 8/3 and B 4/3. B's 2 take 1.5 s, in which A moves 4 (8 left),
    # and the rest takes 2 s. Each has lost 1.5 (1 - 2/3) = 0.5 s.
    a = application("a", [("io", 16), ("work", 99)], nodes=4)
    b = application("b", [("work", 1), ("io", 2), ("work", 99)], nodes=2)
    run = simulate(instance(a, b, bandwidth=4, end=10), make_strategy("fair-share"))
    assert run.decisions == [
        (0, {0: 4}),
        (1, {0: F(8, 3), 1: F(4, 3)}),
        (F(5, 2), {0: 4}),
    ]
    assert run.log[-1] == (F(9, 2), "completion", 0)
    assert run.lost == [F(1, 2), F(1, 2)]
    assert run.yields == [F(19, 20), F(19, 20)]


def test_greedy_yield_tie_goes_to_the_lowest_index() -> None:
    """Applications never delayed tie, whatever their ages."""
    # Ages differ (7 and 2 at the posts), but neither was ever delayed: both yields
    # are 1, and index 0 is served. When it completes at 5, index 1 has lost 3 s.
    a = application("a", [("work", 7), ("io", 3), ("work", 99)], release=-5)
    b = application("b", [("work", 2), ("io", 1), ("work", 99)])
    run = simulate(instance(a, b, end=10), make_strategy("greedy-yield"))
    assert run.decisions == [(2, {0: 1, 1: 0}), (5, {1: 1})]
    assert run.yields == [1, F(7, 10)]


def test_greedy_yield_counts_the_history() -> None:
    """Time lost before the start counts."""
    # At 0, A has a yield of 1 and B one of (4 + 2/1) / 10 = 0.6: B goes first. At 3
    # B completes; A has lost 3 of then 13 s.
    a = application("a", [("io", 3), ("work", 99)], release=-10, start=0, done_work=10)
    b = application(
        "b",
        [("io", 3), ("work", 99)],
        release=-10,
        start=0,
        done_work=4,
        done_volume=2,
    )
    run = simulate(instance(a, b, end=10), make_strategy("greedy-yield"))
    assert run.decisions == [(0, {0: 0, 1: 1}), (3, {0: 1})]
    assert run.lost == [3, 4]
    assert run.yields == [F(17, 20), F(16, 20)]


def test_greedy_com_serves_the_shortest() -> None:
    """The shortest is the one with the least time at its cap, not the least volume."""
    # V/b is 6/3 = 2 for the first, 3/2 for the second: the second gets its cap of 2,
    # the first what is left of 3.
    now = state(active(0, 6, cap=F(3)), active(1, 3, cap=F(2)), bandwidth=3)
    assert make_strategy("greedy-com").decide(now)[0] == {0: 1, 1: 2}


def test_look_ahead_prefers_the_short_operation() -> None:
    """It differs from GreedyYield if the lowest yield belongs to a long operation."""
    # Yields 8/10 and 9/10, V = 10 and 1.
    # First 0: horizon 10, yields 18/20 and 9/20, so Z = 9/20.
    # First 1: horizon 1, yields 8/11 and 10/11, so Z = 8/11: kept.
    # GreedyYield serves 0, the lower yield.
    now = state(active(0, 10, lost=2), active(1, 1, lost=1))
    assert make_strategy("look-ahead-greedy-yield").decide(now)[0] == {0: 0, 1: 1}
    assert make_strategy("greedy-yield").decide(now)[0] == {0: 1, 1: 0}


def test_look_ahead_tie_is_first_in_greedy_yield_order() -> None:
    """With equal minimum yields, the first in GreedyYield order is served."""
    # Both at yield 1/2 and alike, so the two Z are equal: index 0.
    now = state(active(0, 2, lost=5), active(1, 2, lost=5))
    assert make_strategy("look-ahead-greedy-yield").decide(now)[0] == {0: 1, 1: 0}


def two_endless() -> Instance:
    """Return two applications that transfer all the time from 0 to 8."""
    a = application("a", [("io", 50)])
    b = application("b", [("io", 50)])
    return instance(a, b, end=8)


def test_periodic_greedy_yield_alternates() -> None:
    """With the default delta two endless operations take turns."""
    # 0: yields 0 and 0, serve 0. 2: 1 and 0, serve 1. 4: 1/2 and 1/2, serve 0.
    # 6: 4/6 and 2/6, serve 1. E = 2 (1 + 1) = 4, so delta = 8/4 = 2; none at 8.
    run = simulate(two_endless(), make_strategy("periodic-greedy-yield"))
    assert [(t, r[0]) for t, r in run.decisions] == [(0, 1), (2, 0), (4, 1), (6, 0)]
    assert run.log[2:] == [(2, "wake", -1), (4, "wake", -1), (6, "wake", -1)]
    assert run.events == 2
    assert run.yields == [F(1, 2), F(1, 2)]


def test_periodic_clocks() -> None:
    """One clock is fixed to the window, the other to the last decision."""
    # a posts at -1, before the window: the window's clock (delta 2) begins at 0, the
    # other one strikes at 1. b posts at 2.5: only the other one starts anew then.
    a = application("a", [("io", 50)], release=-1)
    b = application("b", [("work", 2.5), ("io", 50)])
    both = instance(a, b, end=8)
    expected = {"window": [0, 2, 4, 6], "event": [1, F(9, 2), F(13, 2)]}
    for clock, wakes in expected.items():
        strategy = make_strategy("periodic-greedy-yield", delta=2, clock=clock)
        run = simulate(both, strategy)
        assert [t for t, kind, _ in run.log if kind == "wake"] == wakes


@pytest.mark.parametrize(
    ("omega", "number"),
    # log10: 0, 0.477, 0.602, 1.491, 1.505, -0.523, -0.495, 3, -2
    [
        ("1", 0),
        ("3", 0),
        ("4", 1),
        ("31", 1),
        ("32", 2),
        ("0.3", -1),
        ("0.32", 0),
        ("1000", 3),
        ("0.01", -2),
    ],
)
def test_set_number_is_the_nearest_integer(omega: str, number: int) -> None:
    """It is the integer nearest to the decimal logarithm."""
    assert set_number(F(omega)) == number


def test_set_10_with_unequal_caps() -> None:
    """The extended algorithm, in all policies of the IO-SETS method."""
    # B = 10. S_0 (weight 1): cap 2. S_1 (weight 0.1): caps 3 and 5. S_2 (0.01):
    # caps 4 and 4.
    # Round 1: alpha = 100/111, 10/111, 1/111; beta = 0.2, 0.8, 0.8: S_0 gets its 2.
    # Round 2, 8 left: alpha = 10/11 and 1/11; beta = 8/8 and 8/8: no one limited.
    # S_1 shares 80/11 = 7.27 by post time: 5 for the older, 25/11 for the other.
    # S_2 shares 8/11: all for the older, index 4.
    now = state(
        active(0, 9, cap=F(2), period=F(1), posted_at=F(-1)),
        active(1, 9, cap=F(3), period=F(10), posted_at=F(-1)),
        active(2, 9, cap=F(5), period=F(10), posted_at=F(-2)),
        active(3, 9, cap=F(4), period=F(100), posted_at=F(-1)),
        active(4, 9, cap=F(4), period=F(100), posted_at=F(-3)),
        bandwidth=10,
    )
    rates = make_strategy("set-10", period="given").decide(now)[0]
    assert rates == {0: 2, 1: F(25, 11), 2: 5, 3: 0, 4: F(8, 11)}
    # All priorities 1. Round 1: alpha 1/3 each: S_0 gets its 2 (0.2 <= 1/3).
    # Round 2: 4 for each of the others: S_1 gives it to index 2, S_2 to index 4.
    rates = make_strategy("set-fair-share", period="given").decide(now)[0]
    assert rates == {0: 2, 1: 0, 2: 4, 3: 0, 4: 4}
    # A set for each, total weight 1.22. Round 1: 0 could have 8.2, gets 2. Round 2,
    # 8 left among 0.1, 0.1, 0.01, 0.01: 40/11 = 3.64 for 1 and 2 each: 1 gets its 3.
    # Round 3, 5 left among 0.1, 0.01, 0.01: 2 could have 50/12 = 4.17 < 5; 3 and 4
    # 5/12 each.
    rates = make_strategy("share-priority", period="given").decide(now)[0]
    assert rates == {0: 2, 1: 3, 2: F(50, 12), 3: F(5, 12), 4: F(5, 12)}
    # One set for all, by post time: 4 (4), 2 (5), then 0 what is left (1).
    rates = make_strategy("exclusive-fcfs").decide(now)[0]
    assert rates == {0: 1, 1: 0, 2: 5, 3: 0, 4: 4}


def test_set_10_initial_set() -> None:
    """Before its first iteration an application has precedence, or a weight."""
    # Indices 0 and 1 have no iteration yet, caps 2 and 3; 2 is in S_0, cap 4. B = 6.
    now = state(
        active(0, 9, cap=F(2), current_iteration=F(1)),
        active(1, 9, cap=F(3), posted_at=F(-1)),
        active(2, 9, cap=F(4), iterations=(F(1), F(2))),
        bandwidth=6,
    )
    # Precedence: 3 and 2, and 1 is left.
    assert make_strategy("set-10", update="strict").decide(now)[0] == {0: 2, 1: 3, 2: 1}
    # Weight 2 against 1: 4 for the initial set, cap 5, by post time 3 and 1; 2 for S_0.
    weight: Any = {"initial": "weight", "initial_weight": 2, "update": "strict"}
    assert make_strategy("set-10", **weight).decide(now)[0] == {0: 1, 1: 3, 2: 2}
    # Share + priority: a set each, 2, 2 and 1: 2.4 each for 0 and 1, 0 gets its 2.
    # 4 left, by 2 and 1: 8/3 < 3 and 4/3 < 4.
    strategy = make_strategy("share-priority", **weight)
    assert strategy.decide(now)[0] == {0: 2, 1: F(8, 3), 2: F(4, 3)}
    # In its second operation, index 0 has omega 1 and joins S_0: FCFS there, 3 left
    # for 0 and 2. With update=strict it is still in the initial set, as the first.
    rates = make_strategy("set-10").decide(now)[0]
    assert rates == {0: 2, 1: 3, 2: 1}
    # With update=post the initial set has weight 100 of 101: more than its cap, 3.
    assert make_strategy("set-10", update="post").decide(now)[0] == rates


def learning() -> Instance:
    """Return two applications of omega 10 and 1 that post together at 20."""
    # Their first operations, of volume 0, are no iterations.
    first: Phases = [("io", 0), ("work", 9), ("io", 1)]
    a = application("a", [*first, ("work", 10), ("io", 5), ("work", 99)])
    first = [("io", 0), ("work", 0.5), ("io", 0.5)]
    b = application("b", [*first, ("work", 8), ("io", 5), ("work", 99)], release=11)
    return instance(a, b, end=40)


def test_set_10_learns_omega() -> None:
    """omega comes from completed iterations, or from posted ones too."""
    # omega is 9 + 1 = 10 for a (S_1, weight 0.1), 0.5 + 0.5 = 1 for b (S_0, 1): from
    # 20 on 1/11 and 10/11. b is done at 20 + 5.5; then a has 4.5 left, done at 30.
    run: Any = simulate(learning(), make_strategy("set-10"))
    assert run.decisions[-2:] == [(20, {0: F(1, 11), 1: F(10, 11)}), (F(51, 2), {0: 1})]
    assert run.log[-1] == (30, "completion", 0)
    # Counting what is posted: (10 + 15) / 2 = 12.5 and (1 + 13) / 2 = 7, both S_1.
    run = simulate(learning(), make_strategy("set-10", update="post"))
    assert run.decisions[-2:] == [(20, {0: 1, 1: 0}), (25, {1: 1})]


def test_initial_operation_is_no_iteration() -> None:
    """The first operation does not count, nor does the work before it."""
    # The first operation (0 to 2) is no iteration; the second one (3 to 5) ends
    # an iteration of 1 + 2 = 3 s, as is seen at the third one's post at 8.
    a = application("a", [("io", 2), ("work", 1), ("io", 2), ("work", 3), ("io", 9)])
    seen: list[tuple[Fraction, ...]] = []

    class Watch:
        def decide(self, state: State) -> Any:
            seen.append(state.active[0].iterations)
            return make_strategy("fcfs").decide(state)

    simulate(instance(a, end=10), Watch())
    assert seen == [(), (), (3,)]
    seen.clear()
    a = application("a", [("work", 1), *[("io", 1), ("work", 2)] * 3, ("io", 9)])
    simulate(instance(a, end=11), Watch())
    assert seen == [(), (), (3,), (3, 3)]


def test_zero_phases_pass_at_once() -> None:
    """Phases of length 0 are events all the same."""
    # At 0 two operations of volume 0 with no work between, then 1 s of work, a third
    # one of 0, and one of 2 right behind it, transferred from 1 to 3.
    a = application(
        "a",
        [("io", 0), ("io", 0), ("work", 1), ("io", 0), ("io", 2), ("work", 9)],
    )
    run = simulate(instance(a, end=5), make_strategy("set-10"))
    assert run.log == [
        *[(0, "post", 0), (0, "completion", 0)] * 2,
        *[(1, "post", 0), (1, "completion", 0)],
        *[(1, "post", 0), (3, "completion", 0)],
    ]
    assert run.decisions == [(1, {0: 1})]
    assert run.events == 8
    assert run.work_in_window == [3]


def test_everything_at_one_instant_then_one_decision() -> None:
    """Completions first, then posts, then one decision."""
    # At 2, a completes and posts again (no work between), b posts: one decision.
    a = application("a", [("io", 2), ("io", 3), ("work", 9)])
    b = application("b", [("work", 2), ("io", 1), ("work", 99)])
    run: Any = simulate(instance(b, a, end=5), make_strategy("fcfs"))
    assert run.log[1:4] == [(2, "completion", 1), (2, "post", 0), (2, "post", 1)]
    assert run.decisions[1] == (2, {0: 1, 1: 0})
    assert len(run.decisions) == 3


def test_end_inside_the_window() -> None:
    """An error in a steady run, fine in an open one."""
    a = application("short", [("work", 1), ("io", 1), ("work", 1)])
    b = application("long", [("work", 1), ("io", 1), ("work", 99)])
    with pytest.raises(OracleError, match="'short'"):
        simulate(instance(a, b, end=4), make_strategy("fcfs"))
    # It ends at 3 exactly, as the window does, and that is not processed.
    run = simulate(instance(a, b, end=3), make_strategy("fcfs"))
    assert run.work_in_window == [2, 1]
    # At its own end, 3, it has lost nothing; the other one lost 1 of 4 s.
    run = simulate(instance(a, b, end=4), make_strategy("fcfs"), steady=False)
    assert run.yields == [1, F(3, 4)]
    assert run.work_in_window == [2, 2]


def test_events_at_the_end_are_not_processed() -> None:
    """A completion at the very end does not count."""
    a = application("a", [("work", 1), ("io", 2), ("work", 9)])
    run = simulate(instance(a, end=3), make_strategy("fcfs"))
    assert (run.events, run.volume_in_window) == (1, [2])


def test_best_next_event_by_hand() -> None:
    """Two applications, the best event where their yields cross."""
    # Both A = P = 10, caps B = 1, V = 1 and 4.
    # k = 0: y_0 = 11/(10+h) falls; index 1 gets 1 - 1/h, y_1 = (9+h)/(10+h) rises
    # (up to its completion at h = 5). They cross at h = 2: 11/12 both,
    # with rates 1/2 and 1/2.
    # k = 1: h >= 4, y_1 = 14/(10+h); y_0 = (6+h)/(10+h) rises up to its completion at
    # h = 5 and is 11/15 there at the most: worse.
    now = state(active(0, 1), active(1, 4), end=100)
    best = best_vector(now)
    assert (best.k, best.h) == (0, 2)
    assert best.vector == (F(11, 12), F(11, 12))
    assert BestNextEvent().decide(now) == ({0: F(1, 2), 1: F(1, 2)}, None)
    assert achieved_vector(now, {0: F(1, 2), 1: F(1, 2)}) == best.vector
    assert achieved_vector(now, {0: F(1), 1: F(0)}) == (F(10, 11), 1)


def test_best_next_event_at_an_irrational_horizon() -> None:
    """The crossing is a root of a quadratic."""
    # A = P = 10 and 20, V = 1 and 40. k = 0: y_0 = 11/(10+h), y_1 = (19+h)/(20+h); they
    # cross where h^2 + 18 h - 30 = 0, h = sqrt(111) - 9 = 1.54.
    # k = 1: h >= 40, y_0 <= 11/50.
    now = state(active(0, 1), active(1, 40, age=20), end=100)
    best = best_vector(now)
    assert best.k == 0
    assert abs((best.h + 9) ** 2 - 111) < F(1, 10**55)
    assert abs(best.vector[1] - best.vector[0]) < F(1, 10**55)


def test_best_next_event_with_no_completion_in_reach() -> None:
    """The window's end is the event."""
    # V = 40 and 60 cannot complete within 10 s. At 10, yields (10 + x) / 20 and
    # (8 + 10 - x) / 20: equal at x = 4, rates 0.4 and 0.6.
    now = state(active(0, 40), active(1, 60, lost=2), end=10)
    best = best_vector(now)
    assert (best.k, best.h) == (None, 10)
    assert best.vector == (F(14, 20), F(14, 20))
    assert best.rates == {0: F(2, 5), 1: F(3, 5)}


def test_best_next_event_with_unequal_caps() -> None:
    """Yields count volumes by the cap."""
    # B = 3, caps 1 and 3, A = P = 10, V = 2 and 30. V/b = 2 and 10.
    # k = 0: h >= 2; index 1 gets min(3 - 2/h, 3): y_0 = 12/(10+h), y_1 =
    # (10 + h - 2/3)/(10+h); they cross at h = 8/3: 36/38.
    # k = 1: h >= 10, y_0 <= 12/20.
    now = state(active(0, 2), active(1, 30, cap=F(3)), bandwidth=3, end=100)
    best = best_vector(now)
    assert (best.k, best.h) == (0, F(8, 3))
    assert best.vector == (F(18, 19), F(18, 19))
    assert best.rates == {0: F(3, 4), 1: F(9, 4)}


def test_best_next_event_gives_the_rest_away() -> None:
    """No bandwidth is left idle."""
    # Alone: at the cap. With caps 1 and 1 of B = 3 both at their caps, although the
    # event is the first one's completion at 1.
    now = state(active(0, 1), bandwidth=3)
    assert BestNextEvent().decide(now)[0] == {0: 1}
    now = state(active(0, 1), active(1, 5), bandwidth=3)
    assert BestNextEvent().decide(now)[0] == {0: 1, 1: 1}


def random_state(rng: random.Random, count: int) -> State:
    """Return a state of small round numbers, with many coincidences."""
    bandwidth = F(rng.randint(2, 6))
    applications = []
    for index in range(count):
        age = F(rng.randint(0, 12))
        applications.append(
            active(
                index,
                F(rng.randint(1, 20), 2),
                age=age,
                lost=age * F(rng.randint(0, 4), 8),
                cap=min(F(rng.randint(1, 6)), bandwidth),
            )
        )
    return state(*applications, bandwidth=bandwidth, end=F(rng.randint(1, 40), 2))


@pytest.mark.parametrize("seed", range(15))
def test_no_grid_point_beats_best_next_event(seed: int) -> None:
    """No other (k, h) is better."""
    rng = random.Random(seed)
    now = random_state(rng, rng.randint(1, 4))
    best = best_vector(now)
    end = now.window_end
    for k in now.active:
        for step in range(51):
            h = k.time_at_cap + (end - k.time_at_cap) * F(step, 50)
            if k.time_at_cap <= end:
                vector = sorted_yields(now, rates_to(now, k, h), h)
                assert not better(vector, best.vector)
    assert not better(achieved_vector(now, best.rates), best.vector)
    assert not better(best.vector, achieved_vector(now, best.rates))
    given = BestNextEvent().decide(now)[0]
    assert not better(best.vector, achieved_vector(now, given, best.h))


@pytest.mark.parametrize("seed", range(15))
def test_no_random_rates_beat_best_next_event(seed: int) -> None:
    """No other rates are better."""
    rng = random.Random(seed)
    now = random_state(rng, rng.randint(2, 4))
    best = best_vector(now)
    near = BestNextEvent().decide(now)[0]
    for _ in range(100):
        rates = {}
        for a in now.active:
            other = a.cap * F(rng.randint(0, 16), 16)
            part = F(1, 2 ** rng.randint(0, 10))
            rates[a.index] = near[a.index] * (1 - part) + other * part
        total = sum(rates.values(), F(0))
        if total > now.bandwidth:
            rates = {i: r * now.bandwidth / total for i, r in rates.items()}
        assert not better(achieved_vector(now, rates), best.vector)


def random_instance(rng: random.Random) -> Instance:
    """Return four applications of different caps that run on beyond the window."""
    applications = []
    for index in range(4):
        phases: Phases = []
        for _ in range(30):
            phases.append(("work", float(rng.choice([0, 1, 1, 2, 5]))))
            phases.append(("io", float(rng.choice([0, 1, 2, 4]))))
        phases.append(("work", 99))
        release = float(rng.randint(-3, 0))
        applications.append(
            application(str(index), phases, rng.randint(1, 3), release=release)
        )
    return instance(*applications, bandwidth=3, begin=-3, end=12)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", range(3))
def test_lost_time_is_age_less_progress(name: str, seed: int) -> None:
    """Lost time and eq. 6 agree under every strategy."""
    chosen = random_instance(random.Random(seed))
    run = simulate(chosen, make_strategy(name))
    for index, a in enumerate(chosen.applications):
        # The window holds the whole run: eq. 6 from work and volume.
        progress = run.work_in_window[index]
        progress += run.volume_in_window[index] / min(a.nodes, 3)
        age = 12 - F(a.release)
        assert progress == age - run.lost[index]
        assert run.yields[index] == progress / age
    kinds = [kind for _, kind, _ in run.log]
    assert run.events == kinds.count("post") + kinds.count("completion")
    assert [t for t, _, _ in run.log] == sorted(t for t, _, _ in run.log)
    assert len({t for t, _ in run.decisions}) == len(run.decisions)


@pytest.mark.parametrize("seed", range(3))
def test_exclusive_fcfs_is_fcfs(seed: int) -> None:
    """One set for all is FCFS."""
    chosen = random_instance(random.Random(seed))
    assert simulate(chosen, make_strategy("exclusive-fcfs")) == simulate(
        chosen, make_strategy("fcfs")
    )
