# SPDX-License-Identifier: MIT
"""Numbers as a reader sees them: few digits, half-widths, small tables."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.experiments.output.numbers import (
    NumberTable,
    number_tables,
    number_text,
)


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (0.0109132, None, "0.0109"),
        (12345.6, None, "12,300"),
        (3.0, None, "3"),
        (0.5, 0.0, "0.5"),
        (0.0, None, "0"),
        (-3.456, None, "-3.46"),
        (0.9999, None, "1"),
        (2.5e-7, None, "2.5e-07"),
        (2.5e9, None, "2.5e+09"),
        (0.74231, 0.021, "0.74 ± 0.02"),
        (0.74231, 0.00001, "0.742"),
        (1.15, 0.15, "1.15 ± 0.15"),
        (12345.6, 140.0, "12,300 ± 100"),
        (0.123, 0.5, "0.1 ± 0.5"),
        (0.0, 0.3, "0.0 ± 0.3"),
        (-0.001, 0.02, "0.00 ± 0.02"),
        (100.0, 0.4, "100"),
        (0.5, math.inf, "0.5"),
        (None, None, "not finite"),
        ("-∞", None, "-∞"),
        (0.5, "∞", "0.5"),
        (-math.inf, None, "-∞"),
        (math.nan, None, "none"),
    ],
)
def test_a_number_has_three_digits_and_ends_where_its_half_width_does(
    value: float | str | None, spread: float | str | None, text: str
) -> None:
    assert number_text(value, spread) == text


@given(st.floats(1e-4, 1e6), st.none() | st.floats(1e-6, 1e6))
def test_no_number_has_more_than_three_significant_digits(
    value: float, spread: float | None
) -> None:
    for part in number_text(value, spread).split(" ± "):
        digits = re.sub(r"[^0-9]", "", part.partition("e")[0]).lstrip("0")
        assert len(digits.rstrip("0")) <= 3, part


@given(st.floats(1e-4, 1e6))
def test_the_text_is_the_number_to_half_a_percent(value: float) -> None:
    assert float(number_text(value).replace(",", "")) == pytest.approx(value, rel=0.006)


def test_single_numbers_come_before_the_table() -> None:
    claim = {
        "numbers": {"n": 7.0, "W = 1": {"a": 0.5, "b": 0.25}, "W = 2": {"b": 1.0}},
        "spread": {"W = 1": {"a": 0.01}},
    }
    single, table = number_tables(claim)
    assert single == NumberTable((), (("n", ("7",)),))
    assert table == NumberTable(
        ("a", "b"), (("W = 1", ("0.500 ± 0.010", "0.25")), ("W = 2", ("", "1")))
    )


def test_a_wide_table_is_turned() -> None:
    wide = {"row": {f"c{n}": float(n) for n in range(9)}}
    (table,) = number_tables({"numbers": wide})
    assert table.columns == ("row",)
    assert table.rows[3] == ("c3", ("3",))


def test_no_numbers_no_table() -> None:
    assert list(number_tables({"numbers": {}})) == []


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (0.9, 0.3, "0.9 (0.6 to 1)"),
        (0.02, 0.05, "0.02 (0 to 0.07)"),
        (0.5, 0.2, "0.5 ± 0.2"),
    ],
)
def test_the_interval_of_a_share_ends_at_0_and_1(
    value: float, spread: float, text: str
) -> None:
    assert number_text(value, spread, "share of the windows") == text
    assert "±" in number_text(value, spread, "mean")
