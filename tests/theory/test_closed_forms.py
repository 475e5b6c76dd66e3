# SPDX-License-Identifier: MIT
"""The simulator against schedules worked out by hand.

The comments give the derivations. Where all numbers are exact in binary the comparison
is exact; elsewhere it allows for rounding (1e-12).
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.analysis.metrics import measure
from penstock.model import Application, Instance, Platform, Window
from penstock.policies import POLICIES
from penstock.sim import Run, simulate
from penstock.sim.state import COMPLETION, POST

Phases = list[tuple[str, float]]

PERIODIC = "periodic-greedy-yield:delta=1"
#: All policies, and some with another value of a parameter.
SETTINGS = (
    *POLICIES,
    PERIODIC,
    "periodic-greedy-yield:clock=event",
    "set-10:initial=weight,update=post",
)
#: Work that lasts to the end of every window below.
REST = ("work", 1000.0)


def app(name: str, phases: Phases, nodes: int = 1, **rest: Any) -> Application:
    """Return an application of `phases`."""
    return Application.from_phases(name, nodes, phases, **rest)


def case(
    *applications: Application,
    end: float,
    begin: float = 0.0,
    B: float = 1.0,
    b: float = 1.0,
) -> Instance:
    """Return an instance with the window [begin, end]."""
    return Instance(Platform(B, b), Window(begin, end), applications)


def close(value: Any) -> Any:
    """Return `value` with a tolerance for rounding."""
    return pytest.approx(value, rel=1e-12, abs=1e-12)


def run(instance: Instance, policy: str) -> Run:
    """Simulate with all checks and an event log."""
    return simulate(instance, policy, validate=True, record=True)


def completions(outcome: Run, kind: int = COMPLETION) -> list[list[float]]:
    """Return the times of the completions (or posts) of every application."""
    assert outcome.log is not None
    times: list[list[float]] = [[] for _ in outcome.instance.applications]
    for when, logged_kind, application in zip(
        outcome.log.time, outcome.log.kind, outcome.log.application, strict=True
    ):
        if logged_kind == kind:
            times[application].append(float(when))
    return times


def rates(outcome: Run, instant: float) -> list[float]:
    """Return the bandwidth that every application holds just after `instant`."""
    assert outcome.grants is not None
    held = [0.0] * len(outcome.instance.applications)
    for when, application, rate in zip(
        outcome.grants.time,
        outcome.grants.application,
        outcome.grants.rate,
        strict=True,
    ):
        if when <= instant:
            held[application] = float(rate)
    return held


# --- One application ----------------------------------------------------------


@pytest.mark.parametrize("policy", SETTINGS)
@pytest.mark.parametrize("nodes", [1, 7])
def test_alone_nothing_is_lost(policy: str, nodes: int) -> None:
    """An application alone runs at its cap: yield 1 to the last bit."""
    # Lengths that are not exact in binary: the lost time must still be 0.
    phases: Phases = [("work", 0.1), ("io", 0.7), ("work", 1.3), ("io", 0.9)] * 30
    instance = case(app("a", [*phases, REST], nodes), end=100.7, B=0.3, b=0.1)
    outcome = run(instance, policy)
    assert outcome.yields.tolist() == [1.0]
    assert outcome.lost.tolist() == [0.0]
    cap = min(nodes * 0.1, 0.3)
    assert measure(outcome).efficiency == close(1.0)
    assert outcome.work[0] + outcome.volume[0] / cap == close(100.7)


@pytest.mark.parametrize("policy", SETTINGS)
def test_without_contention_nothing_is_lost(policy: str) -> None:
    """Two applications whose caps add up to B do not disturb each other."""
    phases: Phases = [("work", 0.1), ("io", 0.7), ("work", 0.3), ("io", 0.9)] * 5
    first = app("a", [*phases, REST], 1)
    second = app("b", [("io", 0.33), *phases, REST], 2)
    outcome = run(case(first, second, end=90.0, B=0.3, b=0.1), policy)
    # 0.1 + 0.2 exceeds 0.3 in the last bit: a share may be short by as much.
    assert outcome.yields.tolist() == close([1.0, 1.0])


# --- Two equal applications, one operation of volume V each -------------------

# V = 12, B = 4: V / B = 3.
_SERVED = ([3.0], [6.0])
_SHARED = ([6.0], [6.0])
_TWO_EQUAL = {
    # Half of the bandwidth each: both end at 2 V / B.
    "fair-share": _SHARED,
    # One after the other, lowest index first: V / B, then 2 V / B. At 0 the yields
    # are 0 by definition, the volumes are equal, both are in the initial set.
    "fcfs": _SERVED,
    "greedy-yield": _SERVED,
    "greedy-com": _SERVED,
    "set-10": _SERVED,
    "exclusive-fcfs": _SERVED,
    "set-fair-share": _SERVED,
    "share-priority": _SERVED,
    # Either first: horizon 3, yields 1 and 0; a tie, so the first in order.
    "look-ahead-greedy-yield": _SERVED,
    # One completes after h with yield 3 / h, the other has (h - 3) / h: the minimum
    # is largest, 1/2, at h = 6, where both complete.
    "best-next-event": _SHARED,
    # At 0 a; at 1 yields 1, 0: b; at 2 yields 1/2, 1/2, a tie: a; at 3 yields 2/3, 1/3:
    # b; at 4 a tie: a, which has done 2 of 3 s and completes at 5; then b.
    PERIODIC: ([5.0], [6.0]),
    # delta = 24 / (2 x 2 operations) = 6: the wake-up comes too late to matter.
    "periodic-greedy-yield": _SERVED,
}


@pytest.mark.parametrize("policy", SETTINGS)
def test_two_equal_applications(policy: str) -> None:
    """With equal shares both end at 2 V / B; served in order, at V / B and 2 V / B."""
    pair = [app(name, [("io", 12.0), REST], nodes=4) for name in "ab"]
    outcome = run(case(*pair, end=24.0, B=4.0), policy)
    expected = _TWO_EQUAL.get(policy, _SERVED)
    assert completions(outcome) == [close(times) for times in expected]
    lost = [times[0] - 3.0 for times in expected]
    assert outcome.lost.tolist() == close(lost)
    assert outcome.yields.tolist() == close([1 - x / 24 for x in lost])


def test_best_next_event_may_end_with_the_window() -> None:
    """If no operation can complete in the window, both progress alike."""
    # As above, but the window ends at 4, when 16 of 24 are transferred: 8 each is 2 s
    # of progress in 4 s. Any completion by then would leave the other below 1/2.
    pair = [app(name, [("io", 12.0), REST], nodes=4) for name in "ab"]
    outcome = run(case(*pair, end=4.0, B=4.0), "best-next-event")
    assert completions(outcome) == [[], []]
    assert outcome.volume.tolist() == close([8.0, 8.0])


# --- Orders -------------------------------------------------------------------


def test_fcfs_serves_by_post_time_not_by_index() -> None:
    """The first to post is served first, and not interrupted."""
    # b posts at 1 and transfers until 5; a posts at 2, waits 3 s, transfers until 7.
    a = app("a", [("work", 2.0), ("io", 2.0), REST])
    b = app("b", [("work", 1.0), ("io", 4.0), REST])
    outcome = run(case(a, b, end=10.0), "fcfs")
    assert completions(outcome) == [[7.0], [5.0]]
    assert outcome.lost.tolist() == [3.0, 0.0]


def test_greedy_com_interrupts_for_a_shorter_rest() -> None:
    """The operation with the least left is served, even if it comes later."""
    # At 1, a has 4 left. b with 3 goes first, until 4; then a until 8. With 4.5, b
    # waits until 5. c comes at 4 with 4: a tie with a's rest, which goes to a.
    a = app("a", [("io", 5.0), REST])
    for volume, expected in ((3.0, [[8.0], [4.0]]), (4.5, [[5.0], [9.5]])):
        b = app("b", [("work", 1.0), ("io", volume), REST])
        assert completions(run(case(a, b, end=20.0), "greedy-com")) == expected
    b = app("b", [("work", 1.0), ("io", 3.0), REST])
    c = app("c", [("work", 4.0), ("io", 4.0), REST])
    outcome = run(case(a, b, c, end=20.0), "greedy-com")
    assert completions(outcome) == [[8.0], [4.0], [12.0]]


def test_greedy_yield_makes_up_for_past_losses() -> None:
    """The application that lost most, relative to its age, is served first."""
    # Both are 10 s old at 0. a lost nothing, b lost 6. b first (yield 0.4): 0 to 5; a
    # loses 5, 5 to 10. At 20: a 1 - 5/30, b 1 - 6/30.
    history: dict[str, Any] = {"release": -10.0, "start": 0.0}
    a = app("a", [("io", 5.0), REST], done_work=10.0, **history)
    b = app("b", [("io", 5.0), REST], done_work=1.0, done_volume=3.0, **history)
    outcome = run(case(a, b, end=20.0), "greedy-yield")
    assert completions(outcome) == [[10.0], [5.0]]
    assert outcome.yields.tolist() == close([25 / 30, 24 / 30])
    # fcfs ignores the past: a from 0 to 5, b from 5 to 10, and b has lost 11.
    outcome = run(case(a, b, end=20.0), "fcfs")
    assert outcome.yields.tolist() == close([1.0, 19 / 30])


def test_greedy_yield_decides_anew_at_every_event() -> None:
    """A new application (yield 0) interrupts; the others continue by their yields."""
    # a is served from 0. c is released at 2 and posts at once: yield 0, served until 4.
    # At 4: a has lost 2 of its 14 s, b 4 of its 14 s: b, until 9. Then a, from 9 to 12.
    history: dict[str, Any] = {"release": -10.0, "start": 0.0, "done_work": 10.0}
    a = app("a", [("io", 5.0), REST], **history)
    b = app("b", [("io", 5.0), REST], **history)
    c = app("c", [("io", 2.0), REST], release=2.0)
    outcome = run(case(a, b, c, end=22.0), "greedy-yield")
    assert completions(outcome) == [[12.0], [9.0], [4.0]]
    # a waited 2 to 9, b 0 to 4, c never.
    assert outcome.lost.tolist() == [7.0, 4.0, 0.0]
    assert outcome.yields.tolist() == close([25 / 32, 28 / 32, 1.0])


def test_look_ahead_prefers_a_short_operation_to_the_lowest_yield() -> None:
    """The lowest yield waits if its long operation would lower the minimum more."""
    # Age 10. a lost 5 and needs 10 s, b lost 4 and needs 1 s.
    # a first: at 10, a has lost 5/20 and b 14/20: Z = 6/20.
    # b first: at 1, a has lost 6/11 and b 4/11: Z = 5/11. So b first.
    history: dict[str, Any] = {"release": -10.0, "start": 0.0}
    a = app("a", [("io", 10.0), REST], done_work=5.0, **history)
    b = app("b", [("io", 1.0), REST], done_work=6.0, **history)
    instance = case(a, b, end=30.0)
    look_ahead = run(instance, "look-ahead-greedy-yield")
    assert completions(look_ahead) == [[11.0], [1.0]]
    assert look_ahead.yields.tolist() == close([34 / 40, 36 / 40])
    greedy = run(instance, "greedy-yield")
    assert completions(greedy) == [[10.0], [11.0]]
    assert greedy.yields.tolist() == close([35 / 40, 26 / 40])


def test_look_ahead_serves_the_lowest_yield_if_operations_are_equal() -> None:
    """Of operations of equal length, that of the lowest yield is served first."""
    # Age 10. a lost 2, b lost 5, 2 s each. a first: b 7/12; b first: b 5/12, a 4/12.
    history: dict[str, Any] = {"release": -10.0, "start": 0.0}
    a = app("a", [("io", 2.0), REST], done_work=8.0, **history)
    b = app("b", [("io", 2.0), REST], done_work=5.0, **history)
    outcome = run(case(a, b, end=10.0), "look-ahead-greedy-yield")
    assert completions(outcome) == [[4.0], [2.0]]


def test_periodic_default_delta_is_the_window_over_e() -> None:
    """Two operations in dedicated mode: E = 4, delta = 12 / 4 = 3."""
    # At 0 a; at 3 yields 1, 0: b; at 6 yields 1/2, 1/2, a tie: a, which has 2 left and
    # completes at 8; b has 2 left as well and completes at 10.
    pair = [app(name, [("io", 5.0), REST]) for name in "ab"]
    outcome = run(case(*pair, end=12.0), "periodic-greedy-yield")
    assert completions(outcome) == [[8.0], [10.0]]
    assert outcome.lost.tolist() == [3.0, 5.0]


def test_periodic_counts_from_the_begin_of_the_window() -> None:
    """Wake-ups at T_begin + k delta, k >= 0; or delta after the last event."""
    # The window begins at 2 and delta is 4. b posts at 1, when a is served (yield 0 at
    # 0); both lose nothing until then, so a (index) goes on.
    # Window clock: at 2, a has yield 1, b 1 - 1/2: b; it needs 3 s and completes at
    # 5; a goes on at 5 with 6 left, completes at 11.
    a = app("a", [("io", 8.0), REST])
    b = app("b", [("work", 1.0), ("io", 3.0), REST])
    instance = case(a, b, begin=2.0, end=22.0)
    outcome = run(instance, "periodic-greedy-yield:delta=4")
    assert completions(outcome) == [[11.0], [5.0]]
    # Event clock: the post at 1 is the last event, so the wake-up is at 5: b, which has
    # lost 4 of 5 s, until 8. Then a has 3 left and completes at 11.
    outcome = run(instance, "periodic-greedy-yield:delta=4,clock=event")
    assert completions(outcome) == [[11.0], [8.0]]


@pytest.mark.parametrize("clock", ["window", "event"])
def test_periodic_wakes_up_at_representable_times_only(clock: str) -> None:
    """At 10^9 s, doubles are 10^-7 s apart: a smaller delta has no effect."""
    begin = 1e9
    pair = [app(name, [("io", 5e-7), REST], release=begin) for name in "ab"]
    instance = case(*pair, begin=begin, end=begin + 10.0)
    outcome = run(instance, f"periodic-greedy-yield:delta=1e-9,clock={clock}")
    assert outcome.volume.tolist() == pytest.approx([5e-7, 5e-7], rel=0.3)


# --- Unequal caps -------------------------------------------------------------


def test_fair_share_has_one_fraction_for_all() -> None:
    """Caps 2 and 6 at B = 6: alpha = 6/8 for both, although a could have its cap."""
    # a needs 3 at 1.5 B/s: 2 s. By then b moved 9; its other 9 take 1.5 s at 6 B/s.
    a = app("a", [("io", 3.0), REST], nodes=2)
    b = app("b", [("io", 18.0), REST], nodes=9)
    outcome = run(case(a, b, end=8.0, B=6.0), "fair-share")
    assert rates(outcome, 0.0) == [1.5, 4.5]
    assert rates(outcome, 2.0) == [0.0, 6.0]
    assert completions(outcome) == [[2.0], [3.5]]
    # Both held 3/4 of their caps for 2 s: 0.5 s lost each.
    assert outcome.lost.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("policy", ["fcfs", "greedy-yield", "greedy-com"])
def test_the_next_application_gets_the_rest_of_the_bandwidth(policy: str) -> None:
    """Caps 3, 2, 2 at B = 4: 3 for the first, 1 for the next, 0 for the third."""
    # Each order agrees with the index: posts at 0; yields 0 at 0; V/b 1, 2 and 3.
    # a completes at 1. b has 3 of 4 left; b and c at 2 each: b completes at 2.5, when c
    # has 3 of 6 left: at 4.
    a = app("a", [("io", 3.0), REST], nodes=3)
    b = app("b", [("io", 4.0), REST], nodes=2)
    c = app("c", [("io", 6.0), REST], nodes=2)
    outcome = run(case(a, b, c, end=10.0, B=4.0), policy)
    assert rates(outcome, 0.0) == [3.0, 1.0, 0.0]
    assert rates(outcome, 1.0) == [0.0, 2.0, 2.0]
    assert completions(outcome) == [[1.0], [2.5], [4.0]]
    assert outcome.lost.tolist() == [0.0, 0.5, 1.0]


# --- IO-SETS ------------------------------------------------------------------


def test_set_10_shares_by_priority() -> None:
    """Periods 0.1 and 1: sets -1 and 0, priorities 10 and 1, shares 10/11 and 1/11."""
    # a: 10 at 10/11 B/s, b: 1 at 1/11 B/s: both need 11 s.
    a = app("a", [("io", 10.0), REST], period=0.1)
    b = app("b", [("io", 1.0), REST], period=1.0)
    outcome = run(case(a, b, end=20.0), "set-10:period=given")
    assert rates(outcome, 0.0) == close([10 / 11, 1 / 11])
    assert completions(outcome) == [close([11.0]), close([11.0])]
    # Without the priorities: half each, so b at 2 and a at 11.
    outcome = run(case(a, b, end=20.0), "set-fair-share:period=given")
    assert completions(outcome) == [close([11.0]), close([2.0])]


def test_set_10_learns_the_period() -> None:
    """The mean length of completed iterations decides, not the current iteration."""
    # a: an iteration of 0.125 s (set -1: 10^-1.5 <= 0.125 < 10^-0.5) after an empty
    # first operation, then work up to 1. b: likewise an iteration of 1 s (set 0), the
    # third operation at once. Both post at 1.
    small: Phases = [("io", 0.0), ("work", 0.0625), ("io", 0.0625)]
    a = app("a", [*small, ("work", 0.875), ("io", 10.0), REST])
    b = app("b", [("io", 0.0), ("work", 0.5), ("io", 0.5), ("io", 1.0), REST])
    outcome = run(case(a, b, end=20.0), "set-10")
    assert rates(outcome, 1.0) == close([10 / 11, 1 / 11])
    assert completions(outcome) == [close([0.0, 0.125, 12.0]), close([0.0, 1.0, 12.0])]
    # With update=post, the operations posted count: the mean of a is 5.5, half of
    # 0.125 + 10.875, set 1 (10^0.5 <= 5.5 < 10^1.5); that of b is 1, set 0.
    outcome = run(case(a, b, end=20.0), "set-10:update=post")
    assert rates(outcome, 1.0) == close([1 / 11, 10 / 11])


def test_set_10_serves_newcomers_before_all_sets() -> None:
    """Applications in their first operation come first, in posting order."""
    # a is in its second operation, an iteration of 2.875 s (set 0), and holds the
    # bandwidth from 1. c posts at 2, b at 3: c until 4, b until 6, and a, with 1 of 2
    # left, from 6 to 7.
    a = app("a", [("work", 0.0625), ("io", 0.0625), ("work", 0.875), ("io", 2.0), REST])
    b = app("b", [("work", 3.0), ("io", 2.0), REST])
    c = app("c", [("work", 2.0), ("io", 2.0), REST])
    outcome = run(case(a, b, c, end=20.0), "set-10")
    assert completions(outcome) == [[0.125, 7.0], [6.0], [4.0]]
    # As a set of priority 100 instead: c, the first of its set, has 100/101.
    for settings in ("initial=weight", "update=post"):
        outcome = run(case(a, b, c, end=20.0), f"set-10:{settings}")
        assert rates(outcome, 3.0) == close([1 / 101, 0.0, 100 / 101])
    # If only completed iterations count, a precedes the sets, too, and was first.
    outcome = run(case(a, b, c, end=20.0), "set-10:update=strict")
    assert completions(outcome) == [[0.125, 3.0], [7.0], [5.0]]


@pytest.mark.parametrize(
    ("policy", "lost"),
    [("set-10", [1.4, 15.0]), ("set-10:update=post", [1.401, 15.0])],
)
def test_what_precedes_the_first_operation_is_no_iteration(
    policy: str, lost: list[float]
) -> None:
    """The mean of set-10 starts with the second operation: yields .986 and .85."""
    # x has iterations of 3 s (set 0), y of 20 s (set 1). The 32 s before the first
    # operation of x do not count, so from its second one on x has 10/11 beside y:
    # an operation of x then takes 1.1 s, and delays y by 1 s.
    #   y posts at 29. x is served at 32 (first operation, alone), 35, 38.1 and 41.2:
    #   y completes at 29 + 11 + 4 = 44.
    #   y posts at 53; x at 53.3, 56.4, ..., 68.8 (6 times): y completes at 70.
    #   y posts at 79; x at 80.9, 84, ..., 93.3 (5 times): y completes at 95.
    # y has lost 4 + 6 + 5 s, x 0.1 s in each of 3 + 6 + 5 operations. With update=post
    # the first operation of x has 1000/1001 (weights 100 and 0.1): 0.001 s more.
    later_x: Phases = [("work", 2.0), ("io", 1.0)] * 40
    x = app("x", [("work", 30.0), ("work", 2.0), ("io", 1.0), *later_x])
    later_y: Phases = [("work", 9.0), ("io", 11.0)] * 9
    y = app("y", [("work", 19.0), ("io", 1.0), *later_y])
    outcome = run(case(x, y, end=100.0), policy)
    assert outcome.lost.tolist() == close(lost)
    assert [round(float(value), 3) for value in outcome.yields] == [0.986, 0.85]
    assert completions(outcome)[1] == close([20.0, 44.0, 70.0, 95.0])


def test_history_gives_no_iteration() -> None:
    """The phase before the first operation of the run may have begun before it."""
    # a has done 10 s of work and an operation before 0. The rest of a work phase, 1 s,
    # is no iteration: at 1, a precedes b, which is in set 0 and served since 0.5.
    a = app(
        "a",
        [("work", 1.0), ("io", 1.0), REST],
        release=-12.0,
        start=0.0,
        done_work=10.0,
        done_volume=2.0,
    )
    b = app("b", [("io", 0.0), ("work", 0.5), ("io", 2.0), REST])
    outcome = run(case(a, b, end=20.0), "set-10")
    assert completions(outcome) == [[2.0], [0.0, 3.5]]


def test_set_10_extended_to_unequal_caps() -> None:
    """Sets leave what they cannot use (bandwidth sharing, section 4.2)."""
    # B = 111, priorities 100, 10, 1.
    # Round 1: shares 100, 10, 1. Set -2 can use 20 <= 100: gets 20, 91 left. Set -1 can
    # use 82 > 10 and set 0 can use 50 > 1: not yet.
    # Round 2: shares 91 x 10/11 = 82.7 and 8.3. Set -1 gets its 82; 9 left.
    # Round 3: set 0, which can use 50, gets the 9 that are left, in the order of
    # posting: e (6), then d (3 of 44).
    a = app("a", [("io", 1e4), REST], nodes=20, period=0.01)
    b = app("b", [("io", 1e4), REST], nodes=41, period=0.1)
    c = app("c", [("io", 1e4), REST], nodes=41, period=0.1)
    d = app("d", [("io", 1e4), REST], nodes=44, period=1.0)
    e = app("e", [("io", 1e4), REST], nodes=6, period=1.0, release=-1.0)
    instance = case(a, b, c, d, e, end=1.0, B=111.0)
    outcome = run(instance, "set-10:period=given")
    assert rates(outcome, 0.0) == close([20.0, 41.0, 41.0, 3.0, 6.0])


def test_set_10_extended_within_a_set() -> None:
    """A set that can use more than its share serves in order, up to its share."""
    # B = 11: set -1 has 10 of it: 6 + 4 + 0; set 0 has 1 of it.
    members = [app(f"a{i}", [("io", 1e3), REST], 6, period=0.1) for i in range(3)]
    other = app("b", [("io", 1e3), REST], 3, period=1.0)
    outcome = run(case(*members, other, end=1.0, B=11.0), "set-10:period=given")
    assert rates(outcome, 0.0) == close([6.0, 4.0, 0.0, 1.0])
    # Without the sets (a set each): 10 : 10 : 10 : 1 of 11, all below their caps.
    outcome = run(case(*members, other, end=1.0, B=11.0), "share-priority:period=given")
    assert rates(outcome, 0.0) == close([110 / 31, 110 / 31, 110 / 31, 11 / 31])


# --- Degenerate phases --------------------------------------------------------


def test_zero_phases_pass_at_once_and_are_events() -> None:
    """Operations without volume are posted and completed in the same instant."""
    # At 0: two empty operations; at 2: two more, then one of 3 s. 5 operations.
    phases: Phases = [("io", 0.0), ("work", 0.0), ("io", 0.0), ("work", 2.0)]
    phases += [("io", 0.0), ("io", 0.0), ("io", 3.0), REST]
    outcome = run(case(app("a", phases), end=10.0), "fcfs")
    assert completions(outcome, POST) == [[0.0, 0.0, 2.0, 2.0, 2.0]]
    assert completions(outcome) == [[0.0, 0.0, 2.0, 2.0, 5.0]]
    assert outcome.events == 10
    assert (outcome.work[0], outcome.volume[0]) == (7.0, 3.0)


def test_consecutive_works_are_one() -> None:
    """Two work phases in a row are the same as one of both lengths."""
    split = app("a", [("work", 1.0), ("work", 0.0), ("work", 2.0), ("io", 1.0), REST])
    joined = app("a", [("work", 3.0), ("io", 1.0), REST])
    assert split.work.tolist() == joined.work.tolist()
    assert completions(run(case(split, end=9.0), "fcfs")) == [[4.0]]


def test_an_empty_operation_ends_an_iteration() -> None:
    """Work 0.125 and an empty operation make a period of 0.125: set -1."""
    # Otherwise as in `test_set_10_learns_the_period`.
    empty: Phases = [("io", 0.0), ("work", 0.125), ("io", 0.0)]
    a = app("a", [*empty, ("work", 0.875), ("io", 10.0), REST])
    b = app("b", [("io", 0.0), ("work", 0.5), ("io", 0.5), ("io", 1.0), REST])
    outcome = run(case(a, b, end=20.0), "set-10")
    assert rates(outcome, 1.0) == close([10 / 11, 1 / 11])


# --- The window ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end", "work", "volume"),
    [
        (0.0, 8.0, 6.0, 4.0),  # everything: 4 s work, 2 s I/O, 2 s work
        (2.0, 7.0, 3.0, 4.0),  # 2 to 4 and 6 to 7 work
        (1.0, 5.0, 3.0, 2.0),  # the end cuts the operation in half
        (5.0, 10.0, 4.0, 2.0),  # so does the begin
        (4.5, 5.5, 0.0, 2.0),  # both do
        (1.0, 3.0, 2.0, 0.0),  # both cut the work
        (-2.0, 1.0, 1.0, 0.0),  # the window begins before the application
    ],
)
def test_phases_count_pro_rata(
    begin: float, end: float, work: float, volume: float
) -> None:
    """Work 0 to 4, I/O of 4 bytes at 2 B/s from 4 to 6, work from 6 on."""
    instance = case(
        app("a", [("work", 4.0), ("io", 4.0), REST], 2), begin=begin, end=end, B=2.0
    )
    outcome = run(instance, "fcfs")
    assert (outcome.work[0], outcome.volume[0]) == (work, volume)
    assert outcome.yields.tolist() == [1.0]


def test_shared_operations_count_pro_rata() -> None:
    """A window inside two shared operations counts the volume moved in it."""
    # Half of 1 B/s each from 0 on; window 2 to 5: 1.5 each, and half of 5 s lost.
    pair = [app(name, [("io", 9.0), REST]) for name in "ab"]
    outcome = run(case(*pair, begin=2.0, end=5.0), "fair-share")
    assert outcome.volume.tolist() == [1.5, 1.5]
    assert outcome.yields.tolist() == [0.5, 0.5]


def test_the_yield_counts_from_the_release() -> None:
    """The yield depends on the history, not on the begin of the window."""
    # Released at -6, started at 0 with 4 s of progress (2 s work, 2 s I/O: 4 bytes at
    # 2 B/s). Then dedicated: at 14, progress 18 of 20 s.
    a = app(
        "a",
        [("work", 1.0), ("io", 2.0), REST],
        nodes=2,
        release=-6.0,
        start=0.0,
        done_work=2.0,
        done_volume=4.0,
    )
    for begin in (-3.0, 0.0, 1.5, 10.0):
        outcome = run(case(a, begin=begin, end=14.0, B=2.0), "greedy-yield")
        assert outcome.yields.tolist() == close([18 / 20])
        # The history lies before the start, and is no part of the window.
        length = 14.0 - max(begin, 0.0)
        assert outcome.work[0] + outcome.volume[0] / 2.0 == close(length)


# --- Rotation -----------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fcfs", "exclusive-fcfs", "set-10"])
def test_identical_applications_rotate(policy: str) -> None:
    """M applications repeat I/O 1, work w <= M - 1: one operation per M s each."""
    # Once every application was served, each posts w after it completed, M - 1 - w
    # before its turn comes again: the storage is never idle. Per M seconds an
    # application transfers 1, works w and loses M - 1 - w.
    m, cycles = 5, 12
    for w in (4.0, 2.5, 0.5):
        phases: Phases = [("io", 1.0), ("work", w)] * (3 * cycles) + [REST]
        apps = [app(f"a{k}", phases) for k in range(m)]
        begin, end = float(m), float(m * (cycles + 1))
        outcome = run(case(*apps, begin=begin, end=end), policy)
        assert outcome.volume.tolist() == close([cycles] * m)
        assert outcome.work.tolist() == close([cycles * w] * m)
        metrics = measure(outcome)
        assert metrics.efficiency == close((1 + w) / m)
        assert metrics.utilization == close(w / m)
        # Before: by M, the k-th (from 0) transferred 1 and worked for w, or up to M.
        lost = [m - 1 - min(w, m - 1 - k) + cycles * (m - 1 - w) for k in range(m)]
        assert outcome.lost.tolist() == close(lost)


def test_greedy_com_starves_the_last_of_equals() -> None:
    """M - 1 applications with I/O 1, work M - 2 fill the storage: the last waits."""
    # From M - 1 on, whenever one of the first M - 1 completes, another one posts; all
    # have 1 left, as has the last one, which never began: ties go to the lower index.
    m = 5
    phases: Phases = [("io", 1.0), ("work", m - 2.0)] * 20 + [REST]
    apps = [app(f"a{k}", phases) for k in range(m)]
    outcome = run(case(*apps, end=40.0), "greedy-com")
    assert outcome.yields.tolist() == close([1 - k / 40 for k in range(m - 1)] + [0.0])


# --- Metrics ------------------------------------------------------------------


def test_metrics_by_hand() -> None:
    """Objectives: bandwidth sharing, eqs 8 to 10, and IO-SETS, eqs 6 and 7."""
    # B = 3, caps 1 and 3. Both post at 4; a first: it has 1 and b 2 of 3. a completes
    # at 6, when b has 2 of 6 left, at 3 B/s: 6 2/3. Until 10:
    # a: work 4 + 4 = 8, volume 2 (2 s alone); b: work 4 + 10/3 = 22/3, volume 6 (2 s).
    a = app("a", [("work", 4.0), ("io", 2.0), REST], nodes=1)
    b = app("b", [("work", 4.0), ("io", 6.0), REST], nodes=3)
    metrics = measure(run(case(a, b, end=10.0, B=3.0), "fcfs"))
    assert metrics.min_yield == close(1 - (2 / 3) / 10)
    assert metrics.utilization == close((1 * 8 + 3 * 22 / 3) / (10 * 4))
    assert metrics.efficiency == close((1 * 10 + 3 * 28 / 3) / (10 * 4))
    assert metrics.set_utilization == close((8 + 22 / 3) / (2 * 10))
    assert metrics.stretch == close(10 / (28 / 3))
    # In I/O: 2 s for 2 s, and 10 - 22/3 = 8/3 s for 2 s.
    assert metrics.io_slowdown == close(math.sqrt(1 * (4 / 3)))


def test_metrics_without_any_progress() -> None:
    """No progress in the window: stretch and slowdown are infinite, the yield 0."""
    pair = [app(name, [("io", 20.0), REST]) for name in "ab"]
    metrics = measure(run(case(*pair, end=10.0), "fcfs"))
    assert metrics.min_yield == 0.0
    assert metrics.stretch == math.inf
    assert metrics.io_slowdown == math.inf
    assert metrics.efficiency == close(1 / 2)
    assert metrics.utilization == 0.0


def test_metrics_without_any_io() -> None:
    """An application without I/O has no slowdown, and counts in all other metrics."""
    # a and b transfer 2 each from 0: a until 2, b until 4, of 8 s. c works.
    a, b = (app(name, [("io", 2.0), REST]) for name in "ab")
    c = app("c", [REST])
    metrics = measure(run(case(a, b, c, end=8.0), "fcfs"))
    assert metrics.io_slowdown == close(math.sqrt((2 / 2) * (4 / 2)))
    assert metrics.utilization == close((6 + 4 + 8) / 24)
    assert metrics.stretch == close(8 / 6)
    assert measure(run(case(c, end=8.0), "fcfs")).io_slowdown == 1.0


def test_pressure_by_hand() -> None:
    """Dedicated mode, operations cut at the window (bandwidth sharing, eq. 11)."""
    # B = 2, window 1 to 7. a (2 B/s): I/O 0 to 4 and 6 to 8, of which 3 s and 1 s
    # count: 8 bytes. b (1 B/s): I/O 3 to 13, 4 s count: 4 bytes. W = 12 / (2 x 6).
    a = app("a", [("io", 8.0), ("work", 2.0), ("io", 4.0), REST], nodes=2)
    b = app("b", [("work", 3.0), ("io", 10.0), REST], nodes=1)
    assert case(a, b, begin=1.0, end=7.0, B=2.0).pressure() == close(1.0)
    # a alone from 0 to 8: 12 bytes of 16.
    assert case(a, end=8.0, B=2.0).pressure() == close(12 / 16)
    # A window outside of any operation, and an application without I/O.
    assert case(a, begin=4.0, end=6.0, B=2.0).pressure() == 0.0
    assert case(app("c", [REST]), end=6.0).pressure() == 0.0


def test_dedicated_events_by_hand() -> None:
    """Twice the operations initiated in [T_begin, T_end) (bandwidth sharing, eq. 5)."""
    # a posts at 0 and 6, b at 3.
    a = app("a", [("io", 8.0), ("work", 2.0), ("io", 4.0), REST], nodes=2)
    b = app("b", [("work", 3.0), ("io", 10.0), REST], nodes=1)
    for begin, end, expected in (
        (0.0, 7.0, 6),  # all three
        (1.0, 7.0, 4),  # a's first was initiated before
        (0.0, 6.0, 4),  # a's second is initiated at the end, not before it
        (3.0, 6.0, 2),  # b's at the begin counts
        (3.5, 6.0, 0),
    ):
        instance = case(a, b, begin=begin, end=end, B=2.0)
        assert instance.dedicated_events() == expected
