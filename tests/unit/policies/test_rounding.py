# SPDX-License-Identifier: MIT
"""Rounding: what is equal in exact arithmetic ties, and the order is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels import interpreted
from penstock.model.application import TIME_GRAIN
from penstock.policies.rounding import (
    GRAIN,
    RATIO_GRAIN,
    instant_end,
    is_full,
    round_ratio,
    round_time,
)

TIMES = st.floats(0.0, 1e7)
RATIOS = st.floats(0.0, 1.0)


def test_the_model_has_the_same_grain() -> None:
    assert TIME_GRAIN == GRAIN


@given(RATIOS)
def test_a_ratio_moves_by_half_a_grain_at_most(ratio: float) -> None:
    rounded = interpreted(round_ratio)(ratio)
    assert abs(rounded - ratio) <= RATIO_GRAIN / 2
    assert rounded % RATIO_GRAIN == 0.0
    assert interpreted(round_ratio)(rounded) == rounded


@given(RATIOS, RATIOS)
def test_rounded_ratios_keep_their_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert interpreted(round_ratio)(low) <= interpreted(round_ratio)(high)


@pytest.mark.parametrize("ratio", [1 / 3, 0.1 + 0.2, 2 / 7])
def test_ratios_that_differ_in_the_last_bits_are_equal(ratio: float) -> None:
    near = {ratio * (1.0 + bits * 2.0**-52) for bits in range(-8, 9)}
    assert len(near) > 8
    assert len({interpreted(round_ratio)(value) for value in near}) == 1


@given(TIMES, TIMES)
def test_a_time_moves_by_a_grain_at_most(time: float, clock: float) -> None:
    rounded = interpreted(round_time)(time, clock)
    assert abs(rounded - time) <= GRAIN * max(time, clock)


@given(TIMES, TIMES, TIMES)
def test_rounded_times_keep_their_order(one: float, other: float, clock: float) -> None:
    low, high = sorted((one, other))
    rounded = interpreted(round_time)
    assert rounded(low, clock) <= rounded(high, clock)


def test_a_small_rest_at_a_late_clock_is_rounded_like_the_clock() -> None:
    # Near 1e6 s the last bit of a time is 1.2e-10 s; so is the error of a remaining
    # time that was computed from it.
    rest = 1000000.3 - 1000000.0
    assert rest != 0.3
    rounded = interpreted(round_time)
    assert rounded(rest, 1e6) == rounded(0.3, 1e6)
    assert rounded(rest, 0.3) != rounded(0.3, 0.3)


@pytest.mark.parametrize(
    ("rate", "full"),
    [
        (7.5, True),
        (7.5 * (1 - 2.0**-53), True),
        (8.0, True),
        (7.4999, False),
        (float("nan"), True),
        (0, False),
    ],
)
def test_a_rate_just_below_the_cap_is_the_cap(rate: float, full: bool) -> None:
    assert interpreted(is_full)(rate, 7.5) is full


def test_an_instant_is_short_beside_the_simulated_time() -> None:
    ends = interpreted(instant_end)
    assert ends(0.0, 0.0) == 0.0
    assert ends(1000.0, 0.0) - 1000.0 == pytest.approx(1000.0 * GRAIN, rel=1e-3)
    # Near 0, after a start at -1000: the time since the start counts.
    assert ends(0.0, -1000.0) == 1000.0 * GRAIN
    # Seconds since an epoch: a few bits of the clock, not a part of the age of Unix.
    assert 0.0 < ends(1.7e9 + 1.0, 1.7e9) - 1.7e9 - 1.0 < 1e-5
