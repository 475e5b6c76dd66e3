# SPDX-License-Identifier: MIT
"""Greedy serving and sorting against Python's own sort."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels import interpreted
from penstock.policies.serving import (
    loss_ratio,
    serve_lowest_first,
    sort_lowest_first,
)
from support.views import Scene, make_view

KEYS = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5]), min_size=1, max_size=12)


@given(KEYS, st.floats(0.1, 20.0))
def test_bandwidth_goes_by_key_then_by_index(
    keys: list[float], capacity: float
) -> None:
    caps = [1.0 + (i % 3) for i in range(len(keys))]
    view = make_view(Scene(cap=caps, capacity=capacity))
    rates = [0.0] * len(keys)
    interpreted(serve_lowest_first)(view, keys, rates)
    left, expected = capacity, [0.0] * len(keys)
    for i in sorted(range(len(keys)), key=lambda i: (keys[i], i)):
        expected[i] = min(caps[i], max(left, 0.0))
        left -= expected[i]
    assert rates == pytest.approx(expected)


@given(KEYS)
def test_the_order_is_stable(keys: list[float]) -> None:
    view = make_view(Scene(cap=[1.0] * len(keys)))
    order = [0] * len(keys)
    interpreted(sort_lowest_first)(view, keys, order)
    assert order == sorted(range(len(keys)), key=lambda i: (keys[i], i))


def test_only_active_applications_are_served() -> None:
    view = make_view(Scene(cap=[1.0] * 3, active=[0, 2]))
    rates = [0.0] * 3
    interpreted(serve_lowest_first)(view, [5.0, 0.0, 1.0], rates)
    assert rates == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("release", "lost", "ratio"),
    [(-100.0, 25.0, 0.25), (-1.0, 0.0, 0.0), (0.0, 0.0, 1.0)],
)
def test_the_loss_ratio_is_lost_time_over_age(
    release: float, lost: float, ratio: float
) -> None:
    view = make_view(Scene(cap=[1.0], release=[release], lost=[lost]))
    assert interpreted(loss_ratio)(view, 0) == ratio
