# SPDX-License-Identifier: MIT
"""The platform: caps, and valid bandwidths."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from penstock.errors import InputError
from penstock.model import Platform

_rates = st.floats(1e-9, 1e18)


@pytest.mark.parametrize(
    ("nodes", "cap"), [(1, 1.5), (2, 3.0), (6, 9.0), (7, 10.0), (10_000, 10.0)]
)
def test_cap_is_what_the_nodes_can_draw_up_to_all(nodes: int, cap: float) -> None:
    assert Platform(10.0, 1.5).cap(nodes) == cap


@given(_rates, _rates, st.integers(1, 10**6))
def test_cap_is_positive_and_within_the_bandwidth(
    total: float, node: float, nodes: int
) -> None:
    assert 0 < Platform(total, node).cap(nodes) <= total


@pytest.mark.parametrize("name", ["bandwidth", "node_bandwidth"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_bandwidths_are_positive_and_finite(name: str, value: float) -> None:
    rates: dict[str, Any] = {"bandwidth": 1.0, "node_bandwidth": 1.0}
    with pytest.raises(InputError, match="is not a positive bandwidth") as caught:
        Platform(**{**rates, name: value})
    assert caught.value.where == name
    assert repr(value) in caught.value.what


@pytest.mark.parametrize("targets", [0, -1, 1.0, 10**6 + 1, 10**10, 10**30])
def test_there_are_so_many_targets_at_most(targets: int) -> None:
    assert Platform(1.0, 1.0, 10**6).targets == 10**6
    with pytest.raises(InputError, match="is not a number of storage targets"):
        Platform(1.0, 1.0, targets)


def test_platforms_are_values() -> None:
    assert Platform(1.0, 2.0) == Platform(1.0, 2.0)
    with pytest.raises(AttributeError):
        Platform(1.0, 2.0).bandwidth = 3.0  # type: ignore[misc]
