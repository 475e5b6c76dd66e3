# SPDX-License-Identifier: MIT
"""best-next-event against the exact optimum: decision by decision, and in whole runs.

The policy searches for the best largest loss with a bracketed secant, the oracle
looks at every horizon at which anything changes. Rates need not be the same, but
the sorted yields at the event must be as good.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from oracle import (
    Active,
    BestNextEvent,
    State,
    achieved_vector,
    best_vector,
)
from oracle import simulate as simulate_exactly
from penstock.model import Application, Instance, Platform, Window
from penstock.sim import simulate
from support import seeded
from support.views import Scene, decide, permuted, random_scene

F = Fraction
TOLERANCE = F(1, 10**9)


# --- Decisions ----------------------------------------------------------------


def spread_scene(seed: int) -> Scene:
    """Return 2 to 5 applications of ages and volumes over orders of magnitude.

    Caps are unequal, or all B; some applications have lost nothing; one may have
    just been released; the window may end before anything can complete.
    """
    rng = seeded(seed)
    count = rng.randint(2, 5)
    equal = rng.random() >= 0.7
    capacity = rng.choice([1.0, 4.0, 10.0])
    ages = [10 ** rng.uniform(0, 4) for _ in range(count)]
    if rng.random() < 0.2:
        ages[0] = 0.0

    def cap() -> float:
        return capacity if equal else min(rng.uniform(0.1, 1.2) * capacity, capacity)

    def lost(age: float) -> float:
        if rng.random() < 0.3:
            return 0.0
        return age * rng.choice([rng.random(), rng.random() * 0.1, 1e-6])

    return Scene(
        cap=[cap() for _ in ages],
        remaining=[10 ** rng.uniform(-1, 3) for _ in ages],
        release=[-age for age in ages],
        lost=[lost(age) for age in ages],
        capacity=capacity,
        window_end=10 ** rng.uniform(-1, 4),
    )


def small_scene(seed: int) -> Scene:
    """Return 2 to 5 applications of small round numbers: many coincidences."""
    rng = seeded(seed)
    count = rng.randint(2, 5)
    capacity = float(rng.randint(1, 6))
    ages = [float(rng.randint(0, 12)) for _ in range(count)]
    return Scene(
        cap=[min(float(rng.randint(1, 6)), capacity) for _ in ages],
        remaining=[rng.randint(1, 20) / 2 for _ in ages],
        release=[-age for age in ages],
        lost=[age * rng.randint(0, 8) / 8 for age in ages],
        capacity=capacity,
        window_end=rng.randint(1, 40) / 2,
    )


def state_of(scene: Scene) -> State:
    """Return `scene` as the oracle sees it."""
    now = F(scene.now)
    active = tuple(
        Active(
            index=i,
            cap=F(scene.cap[i]),
            posted_at=now,
            volume=F(scene.remaining[i]),
            remaining=F(scene.remaining[i]),
            age=now - F(scene.release[i]),
            lost=F(scene.lost[i]),
        )
        for i in scene.active_indices
    )
    begin, end = F(scene.window_begin), F(scene.window_end)
    return State(now, begin, end, F(scene.capacity), active)


def assert_best(scene: Scene) -> None:
    """Assert that no event has better sorted yields than the policy's."""
    state = state_of(scene)
    best = best_vector(state)
    rates = {i: F(rate) for i, rate in enumerate(decide("best-next-event", scene)[0])}
    # Bandwidth left over is given away, which may hide the horizon that was meant;
    # it then is the horizon of the oracle, since its yields are the best.
    achieved = achieved_vector(state, rates, best.h)
    for achieved_yield, optimal in zip(achieved, best.vector, strict=True):
        if abs(achieved_yield - optimal) > TOLERANCE:
            pytest.fail(f"yields {show(achieved)}, but {show(best.vector)} can be had")


def show(vector: tuple[Fraction, ...]) -> str:
    """Return yields for a message."""
    return ", ".join(f"{float(y):.12g}" for y in vector)


@pytest.mark.parametrize("seed", range(0, 200, 4))
def test_spread(seed: int) -> None:
    """States of all sizes."""
    assert_best(spread_scene(seed))


@pytest.mark.parametrize("seed", range(40))
def test_small(seed: int) -> None:
    """States of small numbers, in which plans tie."""
    assert_best(small_scene(seed))


#: Found by a search over some thousand seeds, with what went wrong once.
HARD = {
    1906: "horizon off by an ulp: the operation that ends there anyway was not seen",
    2538: "horizon off by an ulp: the operation that ends there anyway was not seen",
    5389: "a plan that ties with the end of the window, but for rounding, replaced it",
    2200: "a jump in the gap: the secant was not done after 80 steps",
    2740: "a jump in the gap: the secant was not done after 80 steps",
    5176: "a jump in the gap: the secant was not done after 80 steps",
    7259: "an end of the bracket far off: the secant was not done after 80 steps",
    7296: "an end of the bracket far off: the secant was not done after 80 steps",
}


@pytest.mark.parametrize("seed", HARD)
def test_hard(seed: int) -> None:
    """States that need care with rounding errors."""
    assert_best(spread_scene(seed))


def test_flat_optimum() -> None:
    """All horizons from 4 to 5 give 1/3 to the three lowest; the fourth decides.

    Three who can use all the bandwidth get 1/3 each at the level 1/3.
    """
    scene = small_scene(1002)
    assert best_vector(state_of(scene)).h == 4
    assert_best(scene)


def test_numbering_does_not_matter() -> None:
    """Who is made to complete does not hang on a rounding error of the horizon."""
    scene = random_scene(103)
    order = list(range(len(scene.cap)))
    seeded(103).shuffle(order)
    rates = decide("best-next-event", scene)[0]
    others = decide("best-next-event", permuted(scene, order))[0]
    assert others == pytest.approx([rates[i] for i in order], rel=0.0, abs=1e-9)


def test_at_the_release() -> None:
    """All released and posted now: ages 0, nothing lost."""
    scene = Scene(
        cap=[1.0, 1.0, 0.5],
        remaining=[1.0, 3.0, 2.0],
        release=[0.0] * 3,
        lost=[0.0] * 3,
        window_end=50.0,
    )
    assert_best(scene)


def test_nothing_to_share() -> None:
    """Without contention all have their caps."""
    scene = Scene(cap=[1.0, 2.0], capacity=4.0, lost=[3.0, 0.0])
    assert decide("best-next-event", scene)[0] == [1.0, 2.0]


def test_no_volume_left() -> None:
    """An operation of which rounding left nothing is served first."""
    scene = Scene(cap=[1.0, 1.0], remaining=[5.0, 0.0], lost=[50.0, 0.0])
    assert decide("best-next-event", scene)[0] == [0.0, 1.0]


# --- Whole runs ---------------------------------------------------------------


def few_events(seed: int) -> Instance:
    """Return three applications that post some operations."""
    rng = seeded(seed)
    platform = Platform(4.0, 1.0)
    applications = []
    for number in range(3):
        nodes = rng.choice([2, 3, 4])
        cap = platform.cap(nodes)
        phases: list[tuple[str, float]] = []
        for _ in range(5):
            phases.append(("work", rng.uniform(1.0, 4.0)))
            phases.append(("io", rng.uniform(0.5, 3.0) * cap))
        phases.append(("work", 1e4))
        age = rng.choice([0.0, float(rng.randint(1, 20))])
        applications.append(
            Application.from_phases(
                f"a{number}",
                nodes,
                phases,
                release=-age,
                start=0.0,
                done_work=age * rng.randint(4, 8) / 8,
            )
        )
    return Instance(platform, Window(1.0, 10.0), tuple(applications))


def one_bandwidth(seed: int) -> Instance:
    """Return three equal applications that can each use all the bandwidth."""
    rng = seeded(seed)
    applications = tuple(
        Application.from_phases(
            f"a{number}",
            1,
            [("work", rng.uniform(0.5, 2.0)), ("io", rng.uniform(0.5, 2.0))] * 4
            + [("work", 1e4)],
        )
        for number in range(3)
    )
    return Instance(Platform(1.0, 1.0), Window(0.0, 12.0), applications)


@pytest.mark.parametrize("make", [few_events, one_bandwidth])
@pytest.mark.parametrize("seed", range(6))
def test_runs(make: Callable[[int], Instance], seed: int) -> None:
    """Yields and events of whole runs."""
    instance = make(seed)
    exact = simulate_exactly(instance, BestNextEvent())
    run = simulate(instance, "best-next-event", validate=True)
    assert run.events == exact.events
    assert run.decisions == len(exact.decisions)
    for i in range(len(instance.applications)):
        assert abs(F(run.yields[i]) - exact.yields[i]) <= TOLERANCE
        assert abs(F(run.work[i]) - exact.work_in_window[i]) <= 10 * TOLERANCE
