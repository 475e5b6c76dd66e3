# SPDX-License-Identifier: MIT
"""The stacked picture: what is kept, and what a reader gets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from penstock.web.identity.readers import OPERATOR, Reader
from penstock.web.pictures.picture import (
    MOST_POINTS,
    MOST_SERIES,
    RecentRates,
    picture,
)
from support.statuses import job_line, status_of


def recent(*rates: dict[str, float], kept: int = 100) -> RecentRates:
    """Return points 1, 2, ... with the rates of jobs, by their keys."""
    points = RecentRates(kept)
    moved: Counter[str] = Counter()
    for number, by_key in enumerate(rates, 1):
        moved.update(by_key)
        lines = [
            job_line(
                *(key[2:], int(key[0])),
                drawn_bytes_per_s=rate,
                moved_bytes=float(moved[key]),
            )
            for key, rate in by_key.items()
        ]
        points.add(number, 1000.0 + number, status_of(*lines))
    return points


def test_a_picture_of_two_jobs() -> None:
    points = recent({"7:a": 4e6, "8:b": 1e6}, {"7:a": 2e6, "8:b": 8e6}).after(0)
    assert picture(points, OPERATOR) == {
        "times": [1001.0, 1002.0],
        "bandwidth": [1e7, 1e7],
        "series": [
            {"job": "8:b", "rates": [1_000_000, 8_000_000]},
            {"job": "7:a", "rates": [4_000_000, 2_000_000]},
        ],
        "others": [0, 0],
    }


def test_users_see_neither_jobs_nor_sums_of_others() -> None:
    points = recent({"7:a": 4e6, "8:b": 1e6}).after(0)
    mine = picture(points, Reader(7))
    assert [series["job"] for series in mine["series"]] == ["7:a"]
    assert mine["others"] == [0]


def test_jobs_that_move_nothing_take_no_space() -> None:
    (point,) = recent({"7:a": 0.0, "7:b": 1.0}).after(0)
    assert point.job_keys == ("7:b",)
    assert list(point.rates) == [1.0]


def test_small_jobs_are_added_up() -> None:
    rates = {f"7:{number:02}": 100.0 + number for number in range(MOST_SERIES + 2)}
    drawn = picture(recent(rates).after(0), OPERATOR)
    assert len(drawn["series"]) == MOST_SERIES
    assert drawn["others"] == [100 + 101]
    assert drawn["series"][0]["job"] == f"7:{MOST_SERIES + 1}"


def test_neighbours_are_joined_to_their_mean() -> None:
    points = recent(*({"7:a": float(n % 2)} for n in range(3 * MOST_POINTS)), kept=9999)
    drawn = picture(points.after(0), OPERATOR)
    assert len(drawn["times"]) == MOST_POINTS
    assert drawn["times"][-1] == 1000.0 + 3 * MOST_POINTS


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, [3, 4, 5]), (2, [3, 4, 5]), (4, [5]), (5, []), (99, [])],
)
def test_points_after_a_number(number: int, expected: list[int]) -> None:
    points = recent(*({"7:a": 1.0} for _ in range(5)), kept=3)
    assert [point.number for point in points.after(number)] == expected


def test_nothing_is_known_yet() -> None:
    empty: dict[str, Any] = {"times": [], "bandwidth": [], "series": [], "others": []}
    assert RecentRates().after(0) == []
    assert picture([], OPERATOR) == empty


def test_an_unknown_bandwidth_is_null() -> None:
    points = RecentRates()
    points.add(1, 5.0, status_of(bandwidth=None))
    text = msgspec.json.encode(picture(points.after(0), OPERATOR))
    assert msgspec.json.decode(text)["bandwidth"] == [None]


def _add(points: RecentRates, number: int, moved_bytes: float) -> None:
    line = job_line(moved_bytes=moved_bytes, drawn_bytes_per_s=3.0)
    points.add(number, 10.0 * number, status_of(line))


def test_rates_are_differences_of_what_was_moved() -> None:
    points = RecentRates()
    for number, moved_bytes in enumerate([500.0, 500.0, 700.0], 1):
        _add(points, number, moved_bytes)
    # The first point has only the rate that the daemon measured.
    assert [list(point.rates) for point in points.after(0)] == [[3.0], [], [20.0]]
    assert points.latest_rates(OPERATOR) == {"7:a": 20}
    assert points.latest_rates(Reader(8)) == {}


def test_counters_that_begin_again_are_no_rate() -> None:
    points = RecentRates()
    _add(points, 1, 500.0)
    _add(points, 2, 40.0)
    assert points.latest_rates(OPERATOR) == {"7:a": 3}
