# SPDX-License-Identifier: MIT
"""The OST family: the fit, its quality, and the 301 committed profiles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.workloads.profiles.ost_profiles import (
    Scaling,
    draw_profiles,
    fit_measurements,
    fit_scaling,
)
from penstock.workloads.profiles.profiles import measured, profiles, read_profiles

ROOT = Path(__file__).parents[4]
SCRIPT = ROOT / "scripts" / "fit_ost_profiles.py"
GUIDE = ROOT / "docs" / "background" / "profiles.md"

PARAMETER = st.one_of(st.just(0.0), st.floats(1e-3, 10.0))


# --- The family -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        (Scaling(5.0, 0.0, 0.0), [5, 10, 20, 40]),  # linear
        (Scaling(5.0, 1.0, 0.0), [5, 5, 5, 5]),  # flat
        (Scaling(6.0, 0.0, 0.5), [6, 6, 24 / 7, 48 / 29]),  # worse with more
    ],
)
def test_members_of_the_family(scaling: Scaling, expected: list[float]) -> None:
    assert scaling.bandwidth([1, 2, 4, 8]) == pytest.approx(expected, rel=1e-12)


@given(st.floats(1.0, 1e12), PARAMETER, PARAMETER)
def test_a_member_is_found_again(single: float, sigma: float, kappa: float) -> None:
    targets = [1, 2, 3, 5, 8, 10]
    truth = Scaling(single, sigma, kappa)
    fit = fit_scaling(targets, truth.bandwidth(targets))
    assert fit.single == pytest.approx(single, rel=1e-6)
    assert fit.sigma == pytest.approx(sigma, rel=1e-6, abs=1e-6)
    assert fit.kappa == pytest.approx(kappa, rel=1e-6, abs=1e-6)


@given(st.lists(st.floats(1.0, 3.0), min_size=5, max_size=5))
def test_the_fit_is_the_best_member_nearby(bandwidth: list[float]) -> None:
    targets, measured_at = [1, 2, 4, 6, 9], np.array(bandwidth)
    fit = fit_scaling(targets, measured_at)

    def error(scaling: Scaling) -> float:
        return float(np.sum((measured_at / scaling.bandwidth(targets) - 1) ** 2))

    least = error(fit)
    for factors in ((1.01, 1, 1), (0.99, 1, 1), (1, 1.01, 1), (1, 1, 1.01)):
        other = Scaling(
            fit.single * factors[0],
            fit.sigma * factors[1] + (factors[1] - 1),
            fit.kappa * factors[2] + (factors[2] - 1),
        )
        assert error(other) >= least - 1e-9


def test_too_few_measurements_are_refused() -> None:
    with pytest.raises(
        InputError, match="2 measurements are too few for three parameters"
    ):
        fit_scaling([1, 2], np.array([1.0, 2.0]))


def test_measurements_without_any_order_are_refused() -> None:
    with pytest.raises(InputError, match="no member of the family fits"):
        fit_scaling([1, 2, 4, 6, 9], np.array([1.0, 1.0, 1.0, 81.0, 20.0]))


# --- The measurements -------------------------------------------------------------


def test_every_configuration_has_what_the_fit_needs() -> None:
    configurations = measured("ost_measurements.csv")
    assert len(configurations) == 25
    for item in configurations:
        assert item.targets[0] == 1
        assert sum(n <= 10 for n in item.targets) >= 3
        assert item.targets[-1] <= 24


def test_quality_of_the_fit() -> None:
    fits = fit_measurements()
    errors = np.abs(np.concatenate([item.error() for item in fits]))
    assert errors.size == 142
    assert np.median(errors) < 0.05
    assert errors.mean() < 0.085
    # Twice as many targets as any fit has seen.
    beyond = np.abs(np.concatenate([item.error(11, 24) for item in fits]))
    assert beyond.size == 92
    assert np.median(beyond) < 0.17


def test_determination_of_one_configuration_by_hand() -> None:
    (item,) = (
        f
        for f in fit_measurements()
        if f.measurements.name == "polaris-ior-32-nodes-128-tasks"
    )
    assert item.measurements.targets[:4] == [1, 2, 5, 10]
    means = np.array(item.measurements.means[:4])
    fitted = item.scaling.bandwidth([1, 2, 5, 10])
    assert item.error() == pytest.approx(fitted / means - 1, rel=1e-12)
    assert item.determination == pytest.approx(
        1 - ((fitted - means) ** 2).sum() / means.var() / 4, rel=1e-12
    )
    assert item.determination == pytest.approx(0.92, abs=0.005)


# --- The 301 profiles -------------------------------------------------------------


def test_the_committed_profiles_are_made_again_by_the_script(tmp_path: Path) -> None:
    path = tmp_path / "ost_profiles.csv"
    done = subprocess.run(
        [sys.executable, SCRIPT, path], capture_output=True, text=True, check=True
    )
    committed, again = profiles("osts"), read_profiles(path)
    assert [p.name for p in again] == [p.name for p in committed]
    for old, new in zip(committed, again, strict=True):
        assert new.bandwidth == pytest.approx(old.bandwidth, rel=1e-9)
    # The documentation shows the output of the script.
    guide = GUIDE.read_text(encoding="utf-8")
    for line in done.stdout.splitlines():
        assert line in guide


def test_draws_do_not_depend_on_their_number() -> None:
    fits = fit_measurements()
    few, many = draw_profiles(fits, 3, seed=5), draw_profiles(fits, 9, seed=5)
    for one, other in zip(few, many, strict=False):
        assert one.bandwidth.tolist() == other.bandwidth.tolist()
    elsewhere = draw_profiles(fits, 3, seed=6)
    assert few[0].bandwidth.tolist() != elsewhere[0].bandwidth.tolist()


def test_drawn_profiles_are_like_the_measured_ones() -> None:
    gains = np.array([p.bandwidth[7] / p.bandwidth[0] for p in profiles("osts")])
    fitted = [
        f.scaling.bandwidth([8])[0] / f.scaling.single for f in fit_measurements()
    ]
    assert np.median(gains) == pytest.approx(np.median(fitted), rel=0.1)
    assert gains.mean() == pytest.approx(np.mean(fitted), rel=0.1)
    assert gains.max() <= 8
