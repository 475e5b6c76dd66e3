# SPDX-License-Identifier: MIT
"""The window: never empty, never endless."""

from __future__ import annotations

import math

import pytest

from penstock.errors import InputError
from penstock.model import Window


@pytest.mark.parametrize(("begin", "end"), [(0.0, 10.0), (-5.0, -1.0), (3.0, 3.5)])
def test_length(begin: float, end: float) -> None:
    assert Window(begin, end).length == end - begin


@pytest.mark.parametrize(("begin", "end"), [(0.0, 0.0), (5.0, 4.0), (0.0, -0.0)])
def test_an_empty_window_is_refused(begin: float, end: float) -> None:
    with pytest.raises(InputError, match="is empty"):
        Window(begin, end)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_times_are_finite(bad: float) -> None:
    with pytest.raises(InputError, match="not a pair of times"):
        Window(bad, 10.0)
    with pytest.raises(InputError, match="not a pair of times"):
        Window(0.0, bad)


def test_windows_are_values() -> None:
    assert Window(0.0, 1.0) == Window(0.0, 1.0)
    with pytest.raises(AttributeError):
        Window(0.0, 1.0).end = 2.0  # type: ignore[misc]
