# SPDX-License-Identifier: MIT
"""The IO-SETS workload: classes, window, stress, every parameter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.sim import simulate
from penstock.workloads import IOSets


@pytest.mark.parametrize("n_high", [0, 7, 20, 40])
def test_sizes_of_the_classes(n_high: int) -> None:
    instance = IOSets(n_high=n_high, sigma=0.0).instance(1, 0)
    periods = [a.period for a in instance.applications]
    assert periods == [10.0] * n_high + [100.0] * 20 + [1000.0] * (40 - n_high)


def test_mean_period_of_every_class() -> None:
    workload = IOSets(n_high=20)
    periods = np.array(
        [[a.period for a in workload.instance(1, k).applications] for k in range(6)]
    ).reshape(6, 3, 20)
    for rank, mean in enumerate((10.0, 100.0, 1000.0)):
        assert abs(periods[:, rank].mean() / mean - 1) < 4 * 0.1 / math.sqrt(120)
        assert periods[:, rank].std() / mean == pytest.approx(0.1, rel=0.25)


@pytest.mark.parametrize("stress", [0.2, 0.8, 1.5])
def test_the_stress_is_the_sum_of_the_ratios(stress: float) -> None:
    instance = IOSets(stress=stress).instance(1, 0)
    ratios = [a.volume[0] / a.period for a in instance.applications]
    assert math.fsum(ratios) == pytest.approx(stress, rel=1e-9)
    assert instance.pressure() == pytest.approx(stress, rel=0.05)


def test_noise_is_off_unless_asked_for() -> None:
    calm = IOSets().instance(1, 0).applications[0]
    noisy = IOSets(noise=0.4).instance(1, 0).applications[0]
    assert np.ptp(calm.volume) == 0.0
    spread = noisy.volume / noisy.volume.mean() - 1
    assert 0.3 < np.abs(spread).max() < 0.45


def test_measured_from_1000_to_9000_s_without_an_offset() -> None:
    instance = IOSets().instance(1, 0)
    assert (instance.window.begin, instance.window.end) == (1000.0, 9000.0)
    for application in instance.applications:
        assert application.start == 0.0
        assert application.work[0] == application.work[1]


def test_the_horizon_is_the_length_of_a_job() -> None:
    for horizon in (10_000.0, 20_000.0):
        instance = IOSets(horizon=horizon).instance(1, 0)
        for application in instance.applications:
            assert application.dedicated_times(1.0)[-1] >= horizon * (1 - 1e-9)


def test_no_job_ends_inside_the_window() -> None:
    simulate(IOSets(horizon=10_000.0).instance(1, 0), "set-10:period=given")


def test_seed_and_index_decide_alone() -> None:
    workload = IOSets()
    digests = {workload.instance(s, k).digest() for s in range(2) for k in range(2)}
    assert len(digests) == 4
    assert workload.instance(1, 1).digest() == workload.instance(1, 1).digest()
