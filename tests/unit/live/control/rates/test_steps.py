# SPDX-License-Identifier: MIT
"""Kernels that the simulator does not have; `tests/parity` compares the others."""

from __future__ import annotations

import pytest

from penstock.kernels import interpreted
from penstock.live.control.rates import steps
from penstock.live.control.rates.job_columns import JobColumns
from penstock.policies import get_policy


@pytest.fixture(params=[False, True], ids=["interpreted", "compiled"])
def columns(request: pytest.FixtureRequest) -> JobColumns:
    """Return columns with one job: 200 bytes at 100 bytes/s, posted at 0 s."""
    made = JobColumns(get_policy("fcfs"), 100.0, compiled=request.param)
    assert made.add_job(lost=0.0, cap=100.0, bandwidth=100.0, release=0.0) == 0
    made.post(0, 0.0, 0.0, 200.0)
    assert made.begin_decision(0.0) == 1
    made.end_decision(made.ask())
    return made


def test_a_volume_is_doubled_until_something_remains(columns: JobColumns) -> None:
    raise_volume = interpreted(steps.raise_volume)
    raise_volume(columns.state, 0, 1.9)
    assert columns.state.volume[0] == 200.0
    raise_volume(columns.state, 0, 2.0)
    assert (columns.state.volume[0], columns.state.completion[0]) == (400.0, 4.0)
    raise_volume(columns.state, 0, 100.0)
    assert columns.state.volume[0] == 12_800.0
    assert columns.remaining(0, 100.0) == 2_800.0


def test_an_update_holds_from_now_on(columns: JobColumns) -> None:
    columns.update(0, 1.0, 500.0, 400.0)
    assert columns.loss(0, 1.0) == 0.0
    assert columns.remaining(0, 2.0) == 400.0
    # From then on the job has a quarter of its cap.
    assert columns.loss(0, 5.0) == 3.0
    assert columns.state.completion[0] == 6.0


def test_an_end_in_the_past_gives_back_the_time_lost_since(
    columns: JobColumns,
) -> None:
    columns.update(0, 1.0, 500.0, 200.0)
    columns.finish(0, 3.0, 150.0, 0.0)
    assert columns.loss(0, 9.0) == 1.0
    assert columns.state.transferred[0] == 150.0
    assert not columns.is_active(0)


def test_an_end_never_gives_back_time_lost_before_the_post(columns: JobColumns) -> None:
    columns.finish(0, 1.0, 100.0, 7.0)
    assert columns.loss(0, 1.0) == 7.0


def test_without_an_event_the_policy_is_not_asked(columns: JobColumns) -> None:
    assert columns.begin_decision(1.0) == -1
    assert columns.next_instant() == 2.0


def test_an_operation_that_should_be_complete_is_not_an_event(
    columns: JobColumns,
) -> None:
    assert columns.begin_decision(2.0) == -1
    assert columns.state.volume[0] == 400.0
    assert columns.next_instant() == 4.0


def test_a_touch_makes_the_policy_decide(columns: JobColumns) -> None:
    columns.request_decision()
    assert columns.begin_decision(1.0) == 1


def test_a_job_without_a_volume_never_becomes_active(columns: JobColumns) -> None:
    second = columns.add_job(lost=0.0, cap=100.0, bandwidth=100.0, release=0.0)
    columns.post(second, 1.0, 1.0, 0.0)
    assert columns.active() == [0]
    columns.finish(second, 1.0, 0.0, 0.0)
    assert columns.state.operations[second] == 1
    assert columns.state.iterations[second] == 0


def test_overdue_operations_are_found_in_ascending_order(columns: JobColumns) -> None:
    assert columns.overdue(1.9) == []
    assert columns.overdue(2.0) == [0]
