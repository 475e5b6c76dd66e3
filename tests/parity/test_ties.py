# SPDX-License-Identifier: MIT
"""Ties: what is equal in exact arithmetic is equal in the program.

Round numbers (small integers for works and volumes, caps such as 7.5 of 10) make many
events, yields and remaining times equal. In doubles they differ in the last bits. The
oracle computes with fractions and so decides ties exactly; every decision of the engine
must be the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from parity.test_oracle_agreement import TOLERANCE, compare
from penstock.model import Application, Instance, Platform, Window
from penstock.sim import Run, simulate
from support import seeded
from support.views import Scene, decide

#: All policies, with the parameters that change what is compared.
POLICIES = (
    "fair-share",
    "fcfs",
    "exclusive-fcfs",
    "greedy-yield",
    "greedy-com",
    "look-ahead-greedy-yield",
    "look-ahead-greedy-yield:horizon=window",
    "periodic-greedy-yield",
    "periodic-greedy-yield:delta=0.75,clock=event",
    "set-10",
    "set-10:update=post",
    "set-10:update=strict",
    "set-fair-share",
    "share-priority",
    "earliest-deadline",
    "short-over-loss",
    "soft-deadline",
)
#: (B, b): caps are multiples of b, at most B.
_PLATFORMS = (
    *((10.0, 2.5), (10.0, 7.5), (10.0, 10.0), (12.0, 2.5), (1.0, 1.0)),
    *((3.0, 1.0), (6.0, 1.0), (7.0, 3.0), (5.0, 1.5)),
)


def rational_instance(seed: int) -> Instance:
    """Return 2 to 6 applications of small integers, every other time with one cap."""
    rng = seeded(seed)
    platform = Platform(*rng.choice(_PLATFORMS))
    nodes, one_cap = rng.randint(1, 4), rng.random() < 0.5
    unit = rng.choice([1, 1, 2, 3, 5, 10])
    applications = []
    for number in range(rng.choice([2, 3, 3, 4, 5, 6])):
        phases = [("work", float(rng.randint(0, 6)))]
        for _ in range(12):
            volume = rng.randint(0, 8) * unit
            phases += [("io", float(volume)), ("work", float(rng.randint(0, 6)))]
        start = float(rng.choice([0, 0, 0, 0, -2, 1, 3]))
        age = rng.choice([0, 0, 0, rng.randint(1, 30)])
        applications.append(
            Application.from_phases(
                f"a{number}",
                nodes if one_cap else rng.randint(1, 4),
                [*phases, ("work", 5000.0)],
                release=start - age,
                start=start,
                done_work=float(rng.randint(0, age)),
            )
        )
    begin = float(rng.choice([0, 0, 1, 2]))
    window = Window(begin, begin + rng.choice([12.0, 20.0, 40.0, 60.0]))
    return Instance(platform, window, tuple(applications))


@pytest.mark.parametrize("text", POLICIES)
@pytest.mark.parametrize("seed", range(12))
def test_every_decision_is_that_of_exact_arithmetic(text: str, seed: int) -> None:
    instance = rational_instance(seed)
    exact = compare(instance, text, TOLERANCE)
    run = simulate(instance, text)
    for lost, exactly_lost in zip(run.lost.tolist(), exact.lost, strict=True):
        assert (lost == 0.0) == (exactly_lost == 0)


# --- Yields and Z ---------------------------------------------------------------


@pytest.mark.parametrize("volumes", [(1.0, 1.0), (3.0, 7.0), (7.0, 3.0), (11.0, 0.1)])
def test_two_fresh_jobs_tie_whatever_their_volumes(volumes: Any) -> None:
    """Caps of 7.5 on B = 10: whoever is first, the other one has yield 1/3."""
    phases = [[("io", volume), ("work", 99.0)] for volume in volumes]
    run = first_rates("look-ahead-greedy-yield", *phases, nodes=1, platform=(10.0, 7.5))
    assert run == [7.5, 2.5]


def first_rates(
    policy: str, *phases: Any, nodes: int, platform: tuple[float, float]
) -> list[float]:
    """Return the rates of the first decision."""
    applications = tuple(
        Application.from_phases(f"a{number}", nodes, listed)
        for number, listed in enumerate(phases)
    )
    instance = Instance(Platform(*platform), Window(0.0, 50.0), applications)
    grants = simulate(instance, policy, record=True).grants
    assert grants is not None
    first = grants.time == grants.time[0]
    rates = dict.fromkeys(range(len(phases)), 0.0)
    chosen = grants.application[first].tolist(), grants.rate[first].tolist()
    rates |= dict(zip(*chosen, strict=True))
    return list(rates.values())


@pytest.mark.parametrize("policy", ["greedy-yield", "look-ahead-greedy-yield"])
def test_equal_yields_after_a_loss_tie(policy: str) -> None:
    """0.1 + 0.2 lost of 1 and 0.3 lost of 1: the lower index first, either way."""
    for lost in ([0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]):
        scene = Scene(cap=[1.0, 1.0], lost=lost, release=[-1.0, -1.0])
        assert decide(policy, scene)[0] == [1.0, 0.0]


def test_equal_remaining_times_tie() -> None:
    """0.3 s to go, as computed from volumes at a late clock, in two ways."""
    late = 1000000.3 - 1000000.0
    for remaining in ([late, 0.3], [0.3, late]):
        scene = Scene(cap=[1.0, 1.0], remaining=remaining, now=1e6, window_end=2e6)
        for policy in ("greedy-com", "earliest-deadline", "short-over-loss"):
            assert decide(policy, scene)[0] == [1.0, 0.0]


# --- Instants -------------------------------------------------------------------


def run_phases(
    *phases: Any, end: float, policy: str = "fcfs", platform: Any = (1.0, 1.0)
) -> Run:
    """Run applications of one node with these phases up to `end`."""
    applications = tuple(
        Application.from_phases(f"a{number}", 1, [*listed, ("work", 99.0)])
        for number, listed in enumerate(phases)
    )
    instance = Instance(Platform(*platform), Window(0.0, end), applications)
    return simulate(instance, policy, record=True, validate=True)


def test_events_at_equal_times_are_one_instant_with_one_decision() -> None:
    """0.1 + 0.2 = 0.3: both post then, and the lower index is served first."""
    thirds = [("work", 0.1), ("io", 0.0), ("work", 0.2), ("io", 1.0)]
    assert 0.1 + 0.2 > 0.3
    run = run_phases(thirds, [("work", 0.3), ("io", 1.0)], end=3.0)
    assert run.log is not None
    assert run.log.time[run.log.application >= 0].tolist()[2:4] == [0.3, 0.3]
    # At 0.3, 1.3 and 2.3 (the second one's completion leaves no one to serve).
    assert run.decisions == 2
    assert run.lost.tolist() == [0.0, pytest.approx(1.0)]


def test_completions_at_equal_times_are_one_instant() -> None:
    """Three at a third each complete together, and the fourth posts then."""
    # Volumes 1, 1 and 1 at 1/3 complete at 3; the fourth application posts at 3, after
    # works of 0.1 s, of which thirty add up to 3.0000000000000013 s.
    works = [item for _ in range(29) for item in (("work", 0.1), ("io", 0.0))]
    late = [*works, ("work", 0.1), ("io", 1.0)]
    run = run_phases(*[[("io", 1.0)]] * 3, late, end=9.0, policy="fair-share")
    # At 0 and at 3: the empty operations need decisions, too.
    assert run.log is not None
    instants = {time for time in run.log.time.tolist() if abs(time - 3.0) < 1e-9}
    assert len(instants) == 1
    assert run.lost.tolist() == [2.0, 2.0, 2.0, 0.0]


def test_events_a_nanosecond_apart_are_two_instants() -> None:
    run = run_phases(
        [("work", 1.0 + 1e-9), ("io", 1.0)], [("work", 1.0), ("io", 1.0)], end=9.0
    )
    assert run.lost.tolist() == [pytest.approx(1.0), 0.0]


def test_an_event_at_the_end_of_the_window_is_not_handled() -> None:
    """The end is 0.1 + 0.2, the post at 0.3: the same, in exact arithmetic."""
    run = run_phases([("work", 0.3), ("io", 1.0)], end=0.1 + 0.2)
    assert run.events == 0


# --- Lost time ------------------------------------------------------------------


def test_a_rate_one_bit_below_the_cap_loses_nothing() -> None:
    """0.1 + 0.1 + 0.1 > 0.3: fair-share gives a bit less than 0.1 each."""
    assert 0.1 + 0.1 + 0.1 > 0.3
    for policy in ("fair-share", "fcfs", "greedy-yield", "set-10", "share-priority"):
        run = run_phases(
            *[[("io", 1.0)]] * 3, end=20.0, policy=policy, platform=(0.3, 0.1)
        )
        assert run.lost.tolist() == [0.0] * 3, policy
        assert run.yields.tolist() == [1.0] * 3


def test_a_history_without_delay_has_lost_nothing() -> None:
    """0.1 s of work and 0.2 s of I/O in 0.3 s: in doubles, 6e-17 s are missing."""
    a = Application.from_phases(
        "a",
        1,
        [("work", 9.0)],
        release=-0.3,
        start=0.0,
        done_work=0.1,
        done_volume=0.2 * (1 - 2.0**-52),
    )
    assert 0.3 - (0.1 + a.done_volume) > 0.0
    assert a.lost_at_start(1.0) == 0.0
