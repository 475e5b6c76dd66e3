# SPDX-License-Identifier: MIT
"""Steps that the simulator does not know; `tests/parity` has the others."""

from __future__ import annotations

import pytest

from penstock.kernels import interpreted
from penstock.live.control import steps
from penstock.live.control.job_columns import JobColumns
from penstock.policies import get_policy


@pytest.fixture
def books() -> JobColumns:
    """Return books with one job at 100 bytes per second, of 200 bytes since 0 s."""
    it = JobColumns(get_policy("fcfs"), 100.0, compiled=False)
    assert it.open(lost=0.0, cap=100.0, bandwidth=100.0, release=0.0) == 0
    it.post(0, 0.0, 0.0, 200.0)
    it.begin_decision(0.0)
    it.end_decision(it.ask())
    return it


def test_a_volume_is_doubled_until_something_remains(books: JobColumns) -> None:
    raise_volume = interpreted(steps.raise_volume)
    raise_volume(books.state, 0, 1.9)
    assert books.state.volume[0] == 200.0
    raise_volume(books.state, 0, 2.0)
    assert (books.state.volume[0], books.state.completion[0]) == (400.0, 4.0)
    raise_volume(books.state, 0, 100.0)
    assert books.state.volume[0] == 12_800.0
    assert books.remaining(0, 100.0) == 2_800.0


def test_settling_changes_only_what_follows(books: JobColumns) -> None:
    books.settle(0, 1.0, 500.0, 400.0)
    assert books.loss(0, 1.0) == 0.0
    assert books.remaining(0, 2.0) == 400.0
    # From then on a quarter of the cap.
    assert books.loss(0, 5.0) == 3.0
    assert books.state.completion[0] == 6.0


def test_an_end_in_the_past_gives_back_what_was_lost_since(books: JobColumns) -> None:
    books.settle(0, 1.0, 500.0, 200.0)
    books.finish(0, 3.0, 150.0, 0.0)
    assert books.loss(0, 9.0) == 1.0
    assert books.state.transferred[0] == 150.0
    assert not books.is_active(0)
