# SPDX-License-Identifier: MIT
"""Drawing iterations: streams, means, fractions and noise of a recipe."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from penstock.workloads import Synthetic
from penstock.workloads.iterative import Recipe, draw_applications

RECIPE = Recipe(
    means=(10.0, 100.0, 1000.0, 50.0),
    sigma=0.2,
    shortest=0.0,
    load=0.8,
    noise=0.3,
    horizon=500.0,
    offset=True,
    period_known=True,
)
#: One iteration of exactly the drawn length for each of many applications.
BARE = replace(
    RECIPE,
    means=(100.0,) * 4000,
    sigma=0.5,
    shortest=2.0,
    noise=0.0,
    horizon=1e-3,
    offset=False,
)


def _bytes(recipe: Recipe, seed: int, index: int) -> list[bytes]:
    drawn = draw_applications(recipe, seed, index)
    return [a.work.tobytes() + a.volume.tobytes() for a in drawn]


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert _bytes(RECIPE, 7, 3) == _bytes(RECIPE, 7, 3)


def test_another_process_draws_the_same_bytes() -> None:
    script = (
        "import hashlib\n"
        "from penstock.workloads import get_workload\n"
        "w = get_workload('synthetic', ['h=20000'])\n"
        "print(w.instance(7, 3).digest())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == Synthetic(horizon=20000.0).instance(7, 3).digest()


@pytest.mark.parametrize(("seed", "index"), [(8, 3), (7, 4), (3, 7), (0, 3), (7, 0)])
def test_another_seed_or_index_gives_others(seed: int, index: int) -> None:
    first, others = _bytes(RECIPE, 7, 3), _bytes(RECIPE, seed, index)
    assert not set(first) & set(others)


def test_an_instance_does_not_depend_on_those_drawn_before() -> None:
    alone = _bytes(RECIPE, 7, 3)
    for index in range(3):
        draw_applications(RECIPE, 7, index)
    assert _bytes(RECIPE, 7, 3) == alone


def test_an_application_does_not_depend_on_how_much_the_others_draw() -> None:
    # Far more iterations of the first application, without a load on the storage.
    recipe = replace(RECIPE, load=0.0)
    other = replace(recipe, means=(0.1, *recipe.means[1:]))
    assert _bytes(recipe, 7, 3)[1:] == _bytes(other, 7, 3)[1:]


def test_streams_of_applications_differ() -> None:
    drawn = draw_applications(replace(RECIPE, means=(10.0,) * 8), 1, 0)
    assert len({a.period for a in drawn}) == 8


def test_names_and_nodes() -> None:
    drawn = draw_applications(RECIPE, 1, 0)
    assert [a.name for a in drawn] == ["app0", "app1", "app2", "app3"]
    assert {a.nodes for a in drawn} == {1}
    assert {(a.release, a.start, a.done_work) for a in drawn} == {(0.0, 0.0, 0.0)}


def test_omega_has_mean_and_spread_of_the_truncated_normal() -> None:
    omegas = np.array([a.period for a in draw_applications(BARE, 5, 0)])
    # N(100, 50) given > 2: mean and variance of the truncated normal.
    alpha = (2.0 - 100.0) / 50.0
    density = math.exp(-alpha * alpha / 2) / math.sqrt(2 * math.pi)
    hazard = density / (0.5 * math.erfc(alpha / math.sqrt(2)))
    mean = 100.0 + 50.0 * hazard
    spread = 50.0 * math.sqrt(1 + alpha * hazard - hazard**2)
    assert abs(omegas.mean() - mean) < 4 * spread / math.sqrt(len(omegas))
    assert omegas.std() == pytest.approx(spread, rel=0.05)
    assert omegas.min() > 2.0


@pytest.mark.parametrize("load", [0.0, 0.3, 0.8, 2.5])
def test_fractions_sum_to_the_load(load: float) -> None:
    drawn = draw_applications(replace(BARE, load=load), 5, 0)
    fractions = [a.volume[0] / a.period for a in drawn]
    assert math.fsum(fractions) == pytest.approx(load, rel=1e-9, abs=1e-12)
    iterations = [a.work[0] + a.volume[0] for a in drawn]
    assert iterations == pytest.approx([a.period for a in drawn], rel=1e-12)


def test_fractions_are_uniform_up_to_their_scale() -> None:
    drawn = draw_applications(BARE, 5, 0)
    fractions = np.sort([a.volume[0] / a.period for a in drawn])
    uniform = np.linspace(0, 1, len(fractions))
    assert np.abs(fractions / fractions[-1] - uniform).max() < 0.03


def test_a_fraction_above_one_leaves_no_work() -> None:
    drawn = draw_applications(replace(BARE, means=(10.0,) * 2, load=4.0), 1, 0)
    fractions = [a.volume[0] / a.period for a in drawn]
    assert max(fractions) > 1
    for application, fraction in zip(drawn, fractions, strict=True):
        assert (application.work[0] == 0.0) == (fraction >= 1.0)


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_noise_is_uniform_within_its_bounds(noise: float) -> None:
    recipe = replace(RECIPE, means=(1.0,), noise=noise, horizon=5000.0, offset=False)
    (drawn,) = draw_applications(recipe, 1, 0)
    for column, mean in (
        (drawn.work[:-1], 0.2 * drawn.period),
        (drawn.volume, 0.8 * drawn.period),
    ):
        off = column / mean - 1
        assert np.abs(off).max() <= noise * (1 + 1e-9) + 1e-12
        assert off.std() == pytest.approx(noise / math.sqrt(3), rel=0.05, abs=1e-12)
        assert abs(off.mean()) <= 4 * noise / math.sqrt(3 * len(off)) + 1e-12


def test_noise_of_work_and_volume_is_independent() -> None:
    recipe = replace(RECIPE, means=(1.0,), horizon=5000.0, offset=False)
    (drawn,) = draw_applications(recipe, 1, 0)
    correlation = np.corrcoef(drawn.work[:-1], drawn.volume)[0, 1]
    assert abs(correlation) < 4 / math.sqrt(len(drawn.volume))


def test_iterations_fill_the_horizon_and_no_more() -> None:
    for application in draw_applications(RECIPE, 1, 0):
        count = len(application.volume)
        assert (count - 1) * application.period < RECIPE.horizon
        assert count * application.period >= RECIPE.horizon
        assert application.work[-1] == 0.0


def test_the_offset_is_a_share_of_one_iteration() -> None:
    with_offset = draw_applications(replace(BARE, offset=True), 5, 0)
    without = draw_applications(BARE, 5, 0)
    shares = np.array(
        [
            (a.work[0] - b.work[0]) / a.period
            for a, b in zip(with_offset, without, strict=True)
        ]
    )
    assert shares.min() >= -1e-12
    assert shares.max() <= 1 + 1e-12
    assert abs(shares.mean() - 0.5) < 4 / math.sqrt(12 * len(shares))


def test_the_period_is_given_only_if_it_is_known() -> None:
    hidden = draw_applications(replace(RECIPE, period_known=False), 1, 0)
    assert {a.period for a in hidden} == {0.0}
    assert all(a.period > 0 for a in draw_applications(RECIPE, 1, 0))
