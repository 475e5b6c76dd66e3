# SPDX-License-Identifier: MIT
"""The synthetic workload: classes, window, pressure, every parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.workloads import Synthetic


@pytest.mark.parametrize(
    ("parameters", "sizes"),
    [
        ({}, (20, 20, 20)),
        ({"n_small": 0}, (0, 20, 40)),
        ({"n_small": 40}, (40, 20, 0)),
        ({"applications": 7}, (2, 2, 3)),
        ({"applications": 3, "n_small": 2}, (2, 1, 0)),
    ],
)
def test_sizes_of_the_classes(parameters: Any, sizes: Any) -> None:
    workload = Synthetic(horizon=1.0, **parameters)
    assert workload.sizes == sizes
    assert len(workload.instance(1, 0).applications) == sum(sizes)


@pytest.mark.parametrize("parameters", [{"n_small": 41}, {"n_small": 60}])
def test_more_small_ones_than_there_is_room_for_are_refused(parameters: Any) -> None:
    with pytest.raises(InputError, match="n_small"):
        Synthetic(**parameters)


def _mean_iterations(workload: Synthetic, instances: int) -> np.ndarray:
    """Return the mean iteration of every application, one row per instance."""
    return np.array(
        [
            [
                (a.work[1:].sum() + a.volume[1:].sum()) / max(len(a.volume) - 1, 1)
                for a in workload.instance(1, k).applications
            ]
            for k in range(instances)
        ]
    )


def test_mean_iteration_of_every_class() -> None:
    # Without noise an iteration is omega; its mean is that of N(mu, mu / 2) given
    # > 2 s, i.e. 1.0276 mu (the cut at 2 s hardly matters).
    workload = Synthetic(noise=0.0, horizon=400_000.0)
    omegas = _mean_iterations(workload, 15).reshape(15, 3, 20)
    error = 0.5 / np.sqrt(15 * 20)
    for rank, mean in enumerate((1e3, 1e4, 1e5)):
        assert abs(omegas[:, rank].mean() / mean - 1.0276) < 4 * error


def test_without_spread_all_of_a_class_are_alike() -> None:
    workload = Synthetic(sigma=0.0, noise=0.0, horizon=400_000.0)
    omegas = _mean_iterations(workload, 1)[0]
    assert omegas == pytest.approx(np.repeat([1e3, 1e4, 1e5], 20), rel=1e-9)


@pytest.mark.parametrize("pressure", [0.2, 0.5, 0.8, 1.2])
def test_pressure_is_about_what_is_aimed_at(pressure: float) -> None:
    workload = Synthetic(pressure=pressure)
    pressures = [workload.instance(2, k).pressure() for k in range(8)]
    assert np.mean(pressures) == pytest.approx(pressure, rel=0.03)


def test_no_pressure_is_no_volume() -> None:
    instance = Synthetic(pressure=0.0, horizon=20_000.0).instance(1, 0)
    assert instance.pressure() == 0.0


def test_the_window_ends_when_the_first_application_would() -> None:
    instance = Synthetic(horizon=20_000.0).instance(1, 0)
    ends = [a.dedicated_times(1.0)[-1] for a in instance.applications]
    assert instance.window.begin == 0.0
    assert instance.window.end == min(ends)
    assert instance.caps.tolist() == [1.0] * 60


def test_the_horizon_is_the_length_of_an_application() -> None:
    instance = Synthetic(horizon=50_000.0, noise=0.0).instance(1, 0)
    for application in instance.applications:
        assert application.dedicated_times(1.0)[-1] >= 50_000.0


def test_periods_are_not_given() -> None:
    instance = Synthetic(horizon=20_000.0).instance(1, 0)
    assert {a.period for a in instance.applications} == {0.0}


def test_seed_and_index_decide_alone() -> None:
    workload = Synthetic(horizon=20_000.0)
    digests = {workload.instance(s, k).digest() for s in range(3) for k in range(3)}
    assert len(digests) == 9
    assert workload.instance(2, 1).digest() == workload.instance(2, 1).digest()
