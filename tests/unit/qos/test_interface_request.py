# SPDX-License-Identifier: MIT
"""The cost of a request and its refund."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.qos import KINDS, MIN_COST_BYTES, Request


@given(st.sampled_from(KINDS), st.integers(0, 10**7), st.integers(0, 10**7))
def test_cost_minus_refund_is_what_moved_within_the_bounds(
    kind: str, size: int, moved: int
) -> None:
    request = Request(kind, size)  # type: ignore[arg-type]
    charged = request.cost_bytes - request.unused_bytes(moved)
    assert request.cost_bytes == max(size, MIN_COST_BYTES)
    assert charged == min(request.cost_bytes, max(moved, MIN_COST_BYTES))


@pytest.mark.parametrize(
    ("size", "moved", "unused"),
    [
        (0, 0, 0),
        (4096, 0, 0),
        (10**6, 10**6, 0),
        (10**6, 0, 10**6 - 4096),
        (8192, 5000, 3192),
    ],
)
def test_the_refund_leaves_at_least_the_minimum_cost(
    size: int, moved: int, unused: int
) -> None:
    assert Request("read", size).unused_bytes(moved) == unused


def test_two_requests_with_equal_fields_are_different_keys() -> None:
    """The simulator and the gate keep requests as keys of a dictionary."""
    first, second = Request("read", 1, "a"), Request("read", 1, "a")
    assert first != second
    assert len({first, second}) == 2
