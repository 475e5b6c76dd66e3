# SPDX-License-Identifier: MIT
"""Rules for every policy: one test suite for all of them.

A new policy is tested by being in the table. One from outside is added to
`EXTRA`, by the name that `get_policy` takes. `TRAITS` says what a policy promises
beyond the rules; a policy without an entry is taken to serve in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nextafter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policies import get_policy
from penstock.policies.policy import Policy
from support import ALL_POLICIES, seeded
from support.views import (
    Scene,
    decide,
    make_view,
    permuted,
    random_scene,
    scaled,
    tied_scene,
    used_memory,
)

#: Further policies: dotted names, names of installed ones, any with parameters.
EXTRA: tuple[str, ...] = ()


@dataclass(frozen=True)
class Traits:
    """Promises of a policy beyond the rules."""

    serves: bool = True
    """Gives bandwidth in an order; ties go to the lowest index."""
    times_scale: bool = True
    """Does not care about the unit of time (set-10 does: a set is a magnitude)."""
    permutation: float = 0.0
    """Relative error when applications are numbered otherwise; 0: same bits."""
    conserves: bool = True
    """Leaves no bandwidth idle that an active application can use."""


SHARES = Traits(serves=False, permutation=1e-14)
SETS = Traits(times_scale=False, permutation=1e-14)
TRAITS = {
    "fair-share": SHARES,
    "best-next-event": Traits(serves=False, permutation=1e-9),
    "exclusive-fcfs": Traits(permutation=1e-14),
    "set-10": SETS,
    "set-fair-share": SETS,
    "share-priority": replace(SETS, serves=False),
}


def traits(policy: str) -> Traits:
    """Return the promises of a policy."""
    return TRAITS.get(policy.partition(":")[0], Traits())


def those_that(promise: str) -> pytest.MarkDecorator:
    """Parametrise a test by the policies that keep a promise of `Traits`."""
    chosen = [p for p in [*ALL_POLICIES, *EXTRA] if getattr(traits(p), promise)]
    return pytest.mark.parametrize("policy", chosen)


every_policy = pytest.mark.parametrize("policy", [*ALL_POLICIES, *EXTRA])
every_scene = given(seed=st.integers(0, 2**32))
quickly = settings(deadline=None, derandomize=True, max_examples=40)


def scene_of(seed: int) -> Scene:
    """Return a random scene: two in three without ties, one with many."""
    return random_scene(seed, grid=0.25 if seed % 3 == 0 else None)


# --- Rates --------------------------------------------------------------------


@every_policy
@every_scene
@quickly
def test_rates_are_lawful(policy: str, seed: int) -> None:
    """No more than the caps and B, nothing negative, nothing for the inactive."""
    scene = scene_of(seed)
    rates, _ = decide(policy, scene, dirt=seed)
    for i, rate in enumerate(rates):
        assert rate >= 0.0
        assert rate <= scene.cap[i] * (1 + 1e-12)
        assert i in scene.active_indices or rate == 0.0
    assert sum(rates) <= scene.capacity * (1 + 1e-12)


@those_that("conserves")
@every_scene
@quickly
def test_work_conserving(policy: str, seed: int) -> None:
    """All bandwidth that the active applications can use is granted."""
    scene = scene_of(seed)
    rates, _ = decide(policy, scene)
    usable = min(scene.capacity, sum(scene.cap[i] for i in scene.active_indices))
    assert sum(rates) == pytest.approx(usable, rel=1e-9)


@those_that("conserves")
def test_alone(policy: str) -> None:
    """A single application has its cap, to the bit."""
    for cap, capacity in ((0.3, 1.0), (1.0, 1.0), (0.1, 0.1)):
        scene = Scene(
            cap=[0.2, cap, 0.2], active=[1], capacity=capacity, lost=[0.0, 3.0, 0.0]
        )
        assert decide(policy, scene)[0] == [0.0, cap, 0.0]


@those_that("conserves")
def test_at_the_release(policy: str) -> None:
    """An age of 0 causes no division by 0."""
    scene = Scene(
        cap=[1.0, 1.0, 1.0],
        remaining=[3.0, 2.0, 4.0],
        release=[0.0, 0.0, 0.0],
        lost=[0.0, 0.0, 0.0],
        capacity=1.5,
    )
    rates, _ = decide(policy, scene)
    assert sum(rates) == pytest.approx(1.5)


@those_that("conserves")
def test_nothing_left_of_an_operation(policy: str) -> None:
    """Rates stay valid if rounding leaves 0 bytes of an operation."""
    scene = Scene(
        cap=[1.0, 1.0, 0.5],
        remaining=[0.0, 2.0, 0.0],
        volume=[1.0, 2.0, 1.0],
        lost=[1.0, 0.0, 90.0],
    )
    rates, _ = decide(policy, scene)
    assert all(0.0 <= rate <= cap for rate, cap in zip(rates, scene.cap, strict=True))
    assert sum(rates) == pytest.approx(1.0)


# --- Wake-ups -----------------------------------------------------------------


@every_policy
@every_scene
@quickly
def test_wakes_up_later(policy: str, seed: int) -> None:
    """A wake-up is never, or after now."""
    scene = scene_of(seed)
    wake = decide(policy, scene)[1]
    assert wake == inf or scene.now < wake


@every_policy
@given(tick=st.integers(0, 10**6), seed=st.integers(0, 2**32))
@quickly
def test_wakes_up_after_a_wake_up(policy: str, tick: int, seed: int) -> None:
    """Also if the policy decides at a wake-up, or a rounding error away from it."""
    rng = seeded(seed)
    scene = random_scene(seed)
    events = float(rng.randint(1, 1000))
    period = (scene.window_end - scene.window_begin) / events
    at = scene.window_begin + tick * period
    for now in (at, nextafter(at, inf), nextafter(at, -inf)):
        later = replace(
            scene,
            now=now,
            release=[now - 50.0] * len(scene.cap),
            lost=[5.0] * len(scene.cap),
            window_end=max(scene.window_end, now + 1.0),
            dedicated_events=events,
        )
        wake = decide(policy, later)[1]
        assert wake > now


# --- Memory -------------------------------------------------------------------


@every_policy
@every_scene
@quickly
def test_no_hidden_state(policy: str, seed: int) -> None:
    """A decision depends on the view alone: not on earlier calls, nor on garbage.

    The columns cannot be written to: to try is an error.
    """
    bound = get_policy(policy)
    scene, other = scene_of(seed), scene_of(seed + 1)
    first = decide(bound, scene, dirt=1)
    assert decide(bound, scene, dirt=2) == first
    view = make_view(scene, bound.parameters.tolist(), dirt=3)
    assert decide(bound, scene, view=view) == first
    assert decide(bound, scene, view=view) == first
    # Working memory as an earlier decision leaves it.
    between = make_view(other, bound.parameters.tolist(), dirt=4)
    decide(bound, other, view=between)
    if len(other.cap) >= len(scene.cap):
        view = used_memory(between, view)
    assert decide(bound, scene, view=view) == first


@every_policy
@every_scene
@quickly
def test_inactive_applications_do_not_matter(policy: str, seed: int) -> None:
    """The columns of inactive applications may hold old values or NaN."""
    scene = random_scene(seed)
    idle = [i for i in range(len(scene.cap)) if i not in scene.active_indices]
    columns: dict[str, Any] = {}
    for name in ("remaining", "volume", "posted", "lost", "work_before"):
        column = list(getattr(scene, name))
        for i in idle:
            column[i] = float("nan")
        columns[name] = column
    assert decide(policy, replace(scene, **columns)) == decide(policy, scene)


# --- Symmetry -----------------------------------------------------------------


@every_policy
@every_scene
@quickly
def test_numbering_does_not_matter(policy: str, seed: int) -> None:
    """Without ties, other numbers of the applications change no rate."""
    scene = random_scene(seed)
    order = list(range(len(scene.cap)))
    seeded(seed).shuffle(order)
    rates, wake = decide(policy, scene)
    others, other_wake = decide(policy, permuted(scene, order))
    expected = [rates[i] for i in order]
    allowed = traits(policy).permutation * scene.capacity
    assert others == pytest.approx(expected, rel=0.0, abs=allowed)
    assert other_wake == wake


@those_that("serves")
@pytest.mark.parametrize("count", [2, 3, 5])
def test_ties_go_to_the_lowest_index(policy: str, count: int) -> None:
    """Policies that serve in order serve the first of equal applications first."""
    rates, _ = decide(policy, tied_scene(count, cap=1.0, capacity=1.75))
    assert rates == [1.0, 0.75, 0.0, 0.0, 0.0][:count]


@every_policy
@every_scene
@quickly
def test_unit_of_volume_does_not_matter(policy: str, seed: int) -> None:
    """Bytes or mebibytes: the same rates, to the last bit."""
    scene = scene_of(seed)
    rates, wake = decide(policy, scene)
    for factor in (2.0**20, 2.0**-10):
        expected = [rate * factor for rate in rates], wake
        assert decide(policy, scaled(scene, volume=factor)) == expected


def in_unit(policy: Policy, declared: str, factor: float) -> Policy:
    """Return the policy with all parameters that are times scaled."""
    parameters = policy.parameters[:]
    if declared.startswith("periodic-greedy-yield"):
        parameters[0] *= factor
    return replace(policy, parameters=parameters)


@those_that("times_scale")
@every_scene
@quickly
def test_unit_of_time_does_not_matter(policy: str, seed: int) -> None:
    """Hours or seconds: times and volumes scale, rates stay, to the last bit."""
    scene = scene_of(seed)
    bound = get_policy(policy)
    rates, wake = decide(bound, scene)
    for factor in (2.0**12, 2.0**-7):
        # Seconds and bytes by the same factor: bandwidths stay.
        other = scaled(scene, time=factor, volume=factor)
        expected = rates, wake * factor
        assert decide(in_unit(bound, policy, factor), other) == expected
