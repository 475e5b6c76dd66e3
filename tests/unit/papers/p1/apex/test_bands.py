# SPDX-License-Identifier: MIT
"""Bands of W: they leave no gap, do not overlap, and lie inside the figures."""

from __future__ import annotations

import itertools
import math

import pytest

from penstock.papers.p1.apex import bands
from penstock.papers.p1.apex.bands import (
    BANDS,
    BEYOND,
    EVERY_WINDOW,
    FIGURE_5,
    FIGURES_6_TO_10,
    FIRST,
    HIGH,
    LAST,
    LOW,
    NEAR_ONE,
    TENTHS,
    UNSATURATED,
    Band,
)


def _holders(pressure: float, candidates: tuple[Band, ...]) -> list[Band]:
    return [band for band in candidates if band[0] <= pressure < band[1]]


@pytest.mark.parametrize("pressure", [0.0, 0.3, 0.7499, 0.75, 0.9999, 1.0, 7.0, 1e9])
def test_every_pressure_is_in_one_of_the_three_bands(pressure: float) -> None:
    assert len(_holders(pressure, tuple(BANDS.values()))) == 1
    assert _holders(pressure, (EVERY_WINDOW,)) == [EVERY_WINDOW]


def test_the_names_of_the_bands_say_their_limits() -> None:
    assert BANDS == {"W<0.75": LOW, "0.75<=W<1": NEAR_ONE, "W>=1": HIGH}
    assert (LOW[1], NEAR_ONE, HIGH[0]) == (0.75, (0.75, 1.0), 1.0)
    assert (UNSATURATED[0], UNSATURATED[1]) == (LOW[0], NEAR_ONE[1])
    assert BEYOND[0] > HIGH[0]
    assert math.isinf(BEYOND[1])


def test_the_tenths_cover_figure_5_without_gaps() -> None:
    assert all(a[1] == b[0] for a, b in itertools.pairwise(TENTHS))
    assert TENTHS[0][0] == FIGURE_5[0]
    # The figure includes its upper end, a band does not.
    assert TENTHS[-1][0] < FIGURE_5[1] < TENTHS[-1][1]
    for tenth in range(40, 141):
        assert len(_holders(tenth / 100, TENTHS)) == 1


def test_the_first_and_last_tenth_lie_in_the_figures_and_before_saturation() -> None:
    low, high = FIGURES_6_TO_10
    for band in (FIRST, LAST):
        assert low <= band[0] < band[1] <= min(high, 1.0)
    assert FIRST[0] == low
    assert FIRST in TENTHS
    assert FIGURE_5[0] < low
    assert FIGURE_5[1] == high


def test_every_band_is_an_interval() -> None:
    pairs = [value for name, value in vars(bands).items() if name in bands.__all__]
    intervals = [v for v in pairs if isinstance(v, tuple) and isinstance(v[0], float)]
    assert len(intervals) >= 9
    assert all(low < high for low, high in intervals)
