# SPDX-License-Identifier: MIT
"""Best next event: small cases by hand; `tests/parity` compares with exact numbers."""

from __future__ import annotations

from math import inf

import pytest

from support.views import Scene, decide, random_scene

NAME = "best-next-event"


def test_all_applications_get_their_caps_without_contention() -> None:
    assert decide(NAME, Scene(cap=[1.0, 2.0], capacity=3.0)) == ([1.0, 2.0], inf)


def test_equal_applications_share_so_that_one_completes() -> None:
    """Two equal applications: one completes at 2 s, the other has lost at most 2 s.

    With c first at h = 2 s the other has lost 2 of 102 s. Any later horizon of c only
    delays both; sharing equally would make both complete at 4 s with 2 of 104 s lost:
    that plan has the better minimum yield.
    """
    scene = Scene(cap=[1.0, 1.0], remaining=[2.0, 2.0])
    rates, _ = decide(NAME, scene)
    assert rates == pytest.approx([0.5, 0.5])


def test_an_application_that_has_lost_much_more_is_served_alone() -> None:
    scene = Scene(cap=[1.0, 1.0], lost=[50.0, 0.0], remaining=[2.0, 2.0])
    assert decide(NAME, scene)[0] == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("seed", range(30))
def test_the_rates_are_lawful_and_use_all_that_can_be_used(seed: int) -> None:
    scene = random_scene(seed)
    rates, _ = decide(NAME, scene)
    wanted = sum(scene.cap[i] for i in scene.active_indices)
    assert sum(rates) == pytest.approx(min(wanted, scene.capacity), rel=1e-9)
    for i in scene.active_indices:
        assert 0.0 <= rates[i] <= scene.cap[i] * (1 + 1e-9)
