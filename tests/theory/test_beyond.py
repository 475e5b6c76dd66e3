# SPDX-License-Identifier: MIT
"""Policies beyond the papers: limits of their parameters, and schedules by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.model import Application, Instance, Platform, Window
from penstock.sim import simulate
from penstock.workloads import Synthetic

LIMITS = [
    ("soft-deadline:softness=0", "earliest-deadline"),
    ("short-over-loss:exponent=0", "greedy-com"),
]


@pytest.mark.parametrize(("policy", "known"), LIMITS)
@pytest.mark.parametrize("pressure", [0.5, 1.0])
def test_at_the_limit_of_a_parameter_it_is_a_known_policy(
    policy: str, known: str, pressure: float
) -> None:
    instance = Synthetic(pressure=pressure, horizon=50_000.0).instance(3, 0)
    run, expected = (simulate(instance, name) for name in (policy, known))
    np.testing.assert_allclose(run.lost, expected.lost, rtol=0, atol=1e-6)


def test_a_large_exponent_serves_the_lowest_yield() -> None:
    instance = Synthetic(pressure=0.8, horizon=50_000.0).instance(3, 0)
    policies = ("short-over-loss:exponent=1000", "greedy-yield")
    least, expected = (simulate(instance, name).yields.min() for name in policies)
    assert least == pytest.approx(expected, abs=2e-3)


def test_the_deadline_order_by_hand() -> None:
    """Both are released at 0 and post at 10, and neither has lost anything.

    With equal ages and losses the deadlines are ordered by V / b: the short operation
    of 2 s goes first, and the long one, of 4 s, loses 2 s.
    """
    applications = tuple(
        Application.from_phases(name, 1, [("work", 10), ("io", volume), ("work", 99)])
        for name, volume in (("long", 4.0), ("short", 2.0))
    )
    instance = Instance(Platform(1.0, 1.0), Window(0.0, 50.0), applications)
    for policy in ("earliest-deadline", "soft-deadline", "short-over-loss"):
        assert simulate(instance, policy).lost.tolist() == [2.0, 0.0], policy


def test_a_small_cap_is_no_reason_to_wait() -> None:
    """B = 4; both post at 10 and need 4 s at their cap; neither has lost anything.

    Their deadlines are equal, so that the first would be served at 4 B/s and the other
    one after it. The application with cap 1 needs a quarter of the bandwidth for 4 s:
    it is served first and loses nothing. The other one has 3 of 4 B/s for 4 s and loses
    1 s.
    """
    applications = tuple(
        Application.from_phases(name, nodes, [("work", 10), ("io", 4.0 * nodes)])
        for name, nodes in (("wide", 4), ("narrow", 1))
    )
    late = tuple(replace(a, work=np.array([*a.work[:-1], 99.0])) for a in applications)
    instance = Instance(Platform(4.0, 1.0), Window(0.0, 50.0), late)
    for policy in ("earliest-deadline", "soft-deadline"):
        assert simulate(instance, policy).lost.tolist() == [1.0, 0.0], policy


def test_softness_fades_where_a_cap_is_small() -> None:
    """With one application of a very small cap it is earliest-deadline."""
    instance = Synthetic(pressure=1.0, horizon=50_000.0).instance(3, 0)
    narrow = Application.from_phases("narrow", 1, [("io", 1.0), ("work", 1e6)])
    wide = tuple(replace(a, nodes=10**9) for a in instance.applications)
    platform = Platform(1.0, 1e-9)
    mixed = replace(instance, platform=platform, applications=(*wide, narrow))
    runs = {
        p: simulate(mixed, p).lost[:-1] for p in ("earliest-deadline", "soft-deadline")
    }
    early, soft = runs.values()
    np.testing.assert_allclose(soft, early, rtol=0, atol=1e-6)
    plain = [simulate(instance, p).lost for p in runs]
    assert np.abs(plain[0] - plain[1]).max() > 1.0
