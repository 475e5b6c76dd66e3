# SPDX-License-Identifier: MIT
"""What a strategy is shown: the order of arrivals."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from penstock.staging import ApplicationStatus, Situation


def test_an_application_is_in_its_phase_once_it_has_begun_one() -> None:
    assert not ApplicationStatus("idle").in_phase
    assert ApplicationStatus("busy", phase_began_s=-5.0).in_phase


@given(st.lists(st.sampled_from([inf, 0.0, 1.0, 2.5]), max_size=8))
def test_arrivals_are_by_time_and_then_by_index(began_s: list[float]) -> None:
    applications = tuple(
        ApplicationStatus(f"a{i}", phase_began_s=began)
        for i, began in enumerate(began_s)
    )
    arrivals = Situation(3.0, 1, applications).arrivals()
    assert sorted(arrivals) == [i for i, began in enumerate(began_s) if began < inf]
    keys = [(began_s[i], i) for i in arrivals]
    assert keys == sorted(keys)


def test_targets_are_numbered_from_0() -> None:
    assert Situation(0.0, 3, ()).all_targets == (0, 1, 2)
