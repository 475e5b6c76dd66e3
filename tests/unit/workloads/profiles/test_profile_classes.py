# SPDX-License-Identifier: MIT
"""Classes of profiles: the rule, the counts, and the curve of a class."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.workloads.profiles.profile_classes import (
    ProfileShape,
    class_profile,
    shape_of,
    shape_profile,
)
from penstock.workloads.profiles.profiles import CASES, profiles
from unit.placement.problems import allocate, application, problem

COLUMNS = st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=8).map(np.array)


# --- Classes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "shape"),
    [
        ([5], ProfileShape.NEUTRAL),
        ([100, 110], ProfileShape.NEUTRAL),  # exactly 10 %: no change
        ([100, 111], ProfileShape.ASCENT),
        ([100, 90], ProfileShape.NEUTRAL),
        ([100, 89], ProfileShape.DESCENT),
        (
            [100, 109, 0, 118, 0, 0, 0, 128],
            ProfileShape.NEUTRAL,
        ),  # between doublings: unseen
        # The position of the maximum decides, however little it rises or falls.
        ([100, 200, 0, 190, 0, 0, 0, 180], ProfileShape.PEAK),
        ([100, 105, 0, 80, 0, 0, 0, 80], ProfileShape.PEAK),
        ([100, 200, 0, 150, 0, 0, 0, 199], ProfileShape.PEAK),
        ([100, 200, 0, 150, 0, 0, 0, 201], ProfileShape.ASCENT),  # falls and rises
        ([100, 80, 0, 99, 0, 0, 0, 80], ProfileShape.DESCENT),
        ([100, 200, 0, 150, 0, 0, 201, 200], ProfileShape.PEAK),  # at 7 of 8
        ([100, 200, 0, 180.1, 0, 100], ProfileShape.PEAK),
        ([100, 50, 100], ProfileShape.DESCENT),  # equal maxima: the smallest n
        ([100, 200, 200], ProfileShape.PEAK),
    ],
)
def test_the_rule_by_hand(profile: list[float], shape: ProfileShape) -> None:
    assert shape_of(np.array(profile, dtype=float)) is shape


def test_classes_of_the_io_node_profiles() -> None:
    shapes = [shape_of(p.bandwidth) for p in profiles("io-nodes")]
    best = [int(p.bandwidth.argmax()) + 1 for p in profiles("io-nodes")]
    assert Counter(zip(shapes, best, strict=True)) == {
        (ProfileShape.PEAK, 2): 89,
        (ProfileShape.PEAK, 4): 16,
        (ProfileShape.ASCENT, 8): 72,
        (ProfileShape.DESCENT, 1): 10,
        (ProfileShape.NEUTRAL, 2): 2,
    }


def test_classes_of_the_ost_profiles() -> None:
    assert Counter(shape_of(p.bandwidth) for p in profiles("osts")) == {
        ProfileShape.ASCENT: 159,
        ProfileShape.PEAK: 133,
        ProfileShape.DESCENT: 5,
        ProfileShape.NEUTRAL: 4,
    }


def test_an_empty_profile_is_refused() -> None:
    with pytest.raises(InputError, match="profile is empty"):
        shape_of(np.array([]))


@given(COLUMNS, st.sampled_from([0.25, 0.5, 2.0, 1024.0]))
def test_a_class_does_not_depend_on_the_unit(profile: np.ndarray, unit: float) -> None:
    assert shape_of(profile * unit) is shape_of(profile)


@given(st.lists(st.floats(1.12, 10.0), min_size=1, max_size=7))
def test_a_profile_that_always_gains_ascends_and_its_reverse_descends(
    gains: list[float],
) -> None:
    profile = np.cumprod(np.array([1.0, *gains]))
    assert shape_of(profile) is ProfileShape.ASCENT
    assert shape_of(1 / profile) is ProfileShape.DESCENT


# --- Curves -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "best"),
    [
        (ProfileShape.ASCENT, 8),
        (ProfileShape.DESCENT, 1),
        (ProfileShape.PEAK, 2),
        (ProfileShape.NEUTRAL, 2),
    ],
)
def test_the_highest_point_of_every_class_curve(shape: ProfileShape, best: int) -> None:
    members = [p for p in profiles("io-nodes") if shape_of(p.bandwidth) is shape]
    assert int(class_profile(members[0].bandwidth).argmax()) + 1 == best


@pytest.mark.parametrize("case", CASES)
def test_the_curve_is_the_geometric_mean_as_a_cubic_sees_it(case: str) -> None:
    # Independent of the implementation: normal equations of the mean logarithms.
    terms = np.vander(np.log2(np.arange(1, 9)), 4)
    for shape in ProfileShape:
        members = [
            p.bandwidth for p in profiles(case) if shape_of(p.bandwidth) is shape
        ]
        mean = np.log(members).mean(axis=0)
        heights = terms @ np.linalg.solve(terms.T @ terms, terms.T @ mean)
        assumed = class_profile(members[-1], case)
        assert assumed == pytest.approx(
            members[-1][0] * np.exp(heights - heights[0]), rel=1e-9
        )
        # Near the class it stands for, at every n.
        gain = np.exp(mean - mean[0])
        assert assumed / assumed[0] == pytest.approx(gain, rel=0.05)


def test_profiles_of_a_class_have_the_same_assumed_gains() -> None:
    ascents = [
        p.bandwidth
        for p in profiles("io-nodes")
        if shape_of(p.bandwidth) is ProfileShape.ASCENT
    ]
    curves = np.array([class_profile(b) / b[0] for b in ascents])
    assert np.ptp(curves, axis=0) == pytest.approx(0.0, abs=1e-12)


@given(COLUMNS, st.sampled_from(CASES))
def test_an_assumed_profile_is_positive_and_exact_on_one_target(
    profile: np.ndarray, case: str
) -> None:
    assumed = class_profile(profile, case)
    assert assumed.shape == profile.shape
    assert assumed[0] == profile[0]
    assert assumed.min() > 0
    assert not assumed.flags.writeable


@given(COLUMNS, st.booleans(), st.sampled_from(CASES))
def test_class_information_changes_best_bandwidth_for_no_ascent_and_no_descent(
    values: np.ndarray, ascends: bool, case: str
) -> None:
    """Section 6.2: it changes only for some peak and neutral profiles."""
    highest = [2.0 * values.max()]
    profile = np.array([*values[1:], *highest] if ascends else [*highest, *values[1:]])
    shape = ProfileShape.ASCENT if ascends else ProfileShape.DESCENT
    if len(profile) > 1:
        assert shape_of(profile) is shape
    exact, by_class = (
        problem(8, application("a", known.tolist()))
        for known in (profile, class_profile(profile, case))
    )
    assert allocate("best-bandwidth", by_class) == allocate("best-bandwidth", exact)


@pytest.mark.parametrize("case", CASES)
def test_class_information_changes_best_bandwidth_for_some_peaks(case: str) -> None:
    changed = {
        shape_of(p.bandwidth)
        for p in profiles(case)
        if p.bandwidth.argmax() != class_profile(p.bandwidth, case).argmax()
    }
    assert changed == {ProfileShape.PEAK}


def test_longer_profiles_than_the_curves_are_refused() -> None:
    with pytest.raises(InputError, match="at most 8, like the profiles of io-nodes"):
        class_profile(np.ones(9))
    with pytest.raises(InputError, match="unknown set of profiles 'tapes'"):
        class_profile(np.ones(8), "tapes")


def test_the_curve_of_a_class_begins_with_the_given_value() -> None:
    curve = shape_profile(ProfileShape.DESCENT, 5.0, 3, "osts")
    assert curve[0] == pytest.approx(5.0)
    assert len(curve) == 3
    assert list(curve) == sorted(curve, reverse=True)
    assert len(shape_profile(ProfileShape.ASCENT, 5.0, 100)) == 8
