# SPDX-License-Identifier: MIT
"""The picture of any time that the archive knows."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.live.wire.messages import (
    PastJob,
    ReportedOperation,
    RunWithOperations,
)
from penstock.web.identity.readers import OPERATOR, Reader
from penstock.web.pictures import past_picture as module
from penstock.web.pictures.past_picture import POINTS, moved_pieces, past_picture
from support.archives import WALL_S, operation, record, run


def _moved_bytes(picture: dict[str, Any], length_s: float) -> dict[str, float]:
    """Return what each job moved in a picture."""
    return {
        series["job"]: sum(series["rates"]) * length_s / POINTS
        for series in picture["series"]
    }


def test_two_jobs_one_after_the_other(tmp_path: Path) -> None:
    record(
        tmp_path,
        (run("7:a"), [operation(0.0, 30.0, moved_bytes=3e9)]),
        (run("8:b"), [operation(60.0, 90.0, moved_bytes=6e9)]),
    )
    picture = past_picture(tmp_path, OPERATOR, WALL_S, WALL_S + POINTS)
    assert picture["times"][:2] == [WALL_S, WALL_S + 1.0]
    b, a = picture["series"]
    assert (a["job"], b["job"]) == ("7:a", "8:b")
    assert a["rates"][:31] == pytest.approx([1e8] * 30 + [0.0])
    assert b["rates"][59:91] == pytest.approx([0.0] + [2e8] * 30 + [0.0])
    assert picture["bandwidth"][0] == picture["bandwidth"][200] == 1e9
    assert set(picture["others"]) == {0}


def test_an_operation_that_ends_while_it_is_asked_for_is_drawn_once(
    tmp_path: Path,
) -> None:
    record(tmp_path, (run("7:a"), [operation(0.0, 30.0, moved_bytes=3e9)]))
    job = PastJob("a", 7, "", 1, WALL_S, None, None, 1e10, 5.0, 0.5, "fcfs")
    ended, present = (
        ReportedOperation(
            WALL_S + begin_s, WALL_S + end_s, moved, 0.0, 0.0, 1e9, "", []
        )
        for begin_s, end_s, moved in ((0.0, 29.0, 2.9e9), (30.0, 40.0, 1e9))
    )
    under_way = [RunWithOperations(job, [ended, present])]
    picture = past_picture(tmp_path, OPERATOR, WALL_S, WALL_S + 100.0, under_way)
    assert _moved_bytes(picture, 100.0)["7:a"] == pytest.approx(4e9)


def test_users_see_their_own_jobs(tmp_path: Path) -> None:
    record(
        tmp_path,
        (run("7:a"), [operation(0.0, 30.0)]),
        (run("8:b"), [operation(0.0, 30.0)]),
    )
    picture = past_picture(tmp_path, Reader(8), WALL_S, WALL_S + 100.0)
    assert [series["job"] for series in picture["series"]] == ["8:b"]
    assert set(picture["others"]) == {0}


def test_operations_are_counted_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_OPERATIONS", 1)
    monkeypatch.setattr("penstock.live.archive.reader._operation", _must_not_be_read)
    done = [operation(0.0, 30.0), operation(40.0, 50.0)]
    record(tmp_path, (run("7:a"), done))
    with pytest.raises(InputError, match="more than 1 operations in this time"):
        past_picture(tmp_path, OPERATOR, WALL_S, WALL_S + 100.0)
    # Jobs of others do not count.
    picture = past_picture(tmp_path, Reader(8), WALL_S, WALL_S + 100.0)
    assert picture["series"] == []


def _must_not_be_read(row: object) -> None:
    raise AssertionError(f"{row} was read")


def test_what_is_outside_of_the_time_is_left_out(tmp_path: Path) -> None:
    record(tmp_path, (run("7:a"), [operation(10.0, 50.0, moved_bytes=4e9)]))
    picture = past_picture(tmp_path, OPERATOR, WALL_S + 30.0, WALL_S + 40.0)
    assert _moved_bytes(picture, 10.0) == {"7:a": pytest.approx(1e9, rel=1e-3)}


def test_an_empty_archive(tmp_path: Path) -> None:
    picture = past_picture(tmp_path, OPERATOR, WALL_S, WALL_S + 1.0)
    assert picture["series"] == []
    assert set(picture["bandwidth"]) == {None}
    assert len(picture["times"]) == POINTS


@pytest.mark.parametrize(
    ("begin_s", "end_s", "message"),
    [
        (2.0, 1.0, "the time is empty .give from < to"),
        (1.0, 1.0, "the time is empty"),
        (-1.0, 1.0, "the time is empty"),
        (nan, 1.0, "the time is empty"),
        (1.0, nan, "the time is empty"),
        (0.0, inf, "the time is too long .look at a month"),
        (0.0, 1e9, "the time is too long"),
    ],
)
def test_times_that_cannot_be_shown(
    tmp_path: Path, begin_s: float, end_s: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        past_picture(tmp_path, OPERATOR, begin_s, end_s)


def test_too_many_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPERATIONS", 1)
    record(tmp_path, (run("7:a"), [operation(0.0, 1.0), operation(2.0, 3.0)]))
    with pytest.raises(InputError, match="more than 1 operations in this time"):
        past_picture(tmp_path, OPERATOR, WALL_S, WALL_S + 10.0)


@given(
    spans=st.lists(
        st.tuples(st.floats(0.0, 1000.0), st.floats(0.0, 1000.0)),
        min_size=1,
        max_size=8,
    )
)
def test_no_byte_is_lost_or_counted_twice(spans: list[tuple[float, float]]) -> None:
    """Each operation moves 1 GB inside the time, however short it is."""
    intervals = module._Intervals(0.0, 1001.0)
    for begin_s, end_s in spans:
        intervals.add("7:a", operation(min(begin_s, end_s), max(begin_s, end_s)))
    moved = _moved_bytes(intervals.document(), 1001.0)["7:a"]
    assert moved == pytest.approx(1e9 * len(spans), rel=1e-6)


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        # At a constant rate, if nothing else is known.
        ([], [(0.0, 10.0, 100.0)]),
        ([(0.0, 50.0)], [(0.0, 10.0, 100.0)]),
        # It waited for 6 s, and then moved everything.
        ([(0.0, 0.0), (6.0, 50.0)], [(0.0, 6.0, 0.0), (6.0, 10.0, 100.0)]),
        # As granted, and in the rest of the time at an equal rate.
        ([(0.0, 5.0), (4.0, inf)], [(0.0, 4.0, 20.0), (4.0, 10.0, 80.0)]),
        ([(4.0, 5.0)], [(0.0, 4.0, 70.0), (4.0, 10.0, 30.0)]),
        # It moved more than was granted: in proportion.
        ([(0.0, 2.0), (5.0, 6.0)], [(0.0, 5.0, 25.0), (5.0, 10.0, 75.0)]),
        ([(0.0, 0.0), (5.0, 0.0)], [(0.0, 10.0, 100.0)]),
    ],
)
def test_the_rate_inside_an_operation_follows_its_grants(
    grants: list[tuple[float, float]], expected: list[tuple[float, float, float]]
) -> None:
    done = operation(0.0, 10.0, moved_bytes=100.0, grants=tuple(grants))
    pieces = moved_pieces(done)
    assert [each[:2] for each in pieces] == [each[:2] for each in expected]
    assert [each[2] for each in pieces] == pytest.approx([e[2] for e in expected])
