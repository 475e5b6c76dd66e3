# SPDX-License-Identifier: MIT
"""Policies beyond the papers: at the ends of their parameters they are known ones."""

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
def test_the_ends_are_known_policies(policy: str, known: str, pressure: float) -> None:
    instance = Synthetic(pressure=pressure, horizon=50_000.0).instance(3, 0)
    found, wanted = (simulate(instance, name) for name in (policy, known))
    np.testing.assert_allclose(found.lost, wanted.lost, rtol=0, atol=1e-6)


def test_a_large_exponent_serves_the_lowest_yield() -> None:
    instance = Synthetic(pressure=0.8, horizon=50_000.0).instance(3, 0)
    policies = ("short-over-loss:exponent=1000", "greedy-yield")
    found, wanted = (simulate(instance, name).yields.min() for name in policies)
    assert found == pytest.approx(wanted, abs=2e-3)


def test_the_deadline_order_by_hand() -> None:
    """Both released at 0, both post at 10, nobody has lost anything.

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
    """B = 4; both post at 10, both need 4 s at their cap, nobody has lost anything.

    By deadline they are equal, and the first would be served at 4, the other after it.
    The one with cap 1 takes a quarter of the storage for its 4 s: it goes first and
    loses nothing, and the other one, at 3 of 4 for 4 s, loses 1 s.
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
    """With one application that can use next to nothing, it is earliest-deadline."""
    instance = Synthetic(pressure=1.0, horizon=50_000.0).instance(3, 0)
    narrow = Application.from_phases("narrow", 1, [("io", 1.0), ("work", 1e6)])
    wide = tuple(replace(a, nodes=10**9) for a in instance.applications)
    platform = Platform(1.0, 1e-9)
    mixed = replace(instance, platform=platform, applications=(*wide, narrow))
    runs = {
        p: simulate(mixed, p).lost[:-1] for p in ("earliest-deadline", "soft-deadline")
    }
    np.testing.assert_allclose(*runs.values(), rtol=0, atol=1e-6)
    plain = [simulate(instance, p).lost for p in runs]
    assert np.abs(plain[0] - plain[1]).max() > 1.0
