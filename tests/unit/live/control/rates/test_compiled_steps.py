# SPDX-License-Identifier: MIT
"""The compiled steps of a controller hold their memory, and see changed scalars."""

from __future__ import annotations

import gc
from typing import Any

from penstock.live.control.rates.compiled_steps import CompiledSteps
from penstock.live.control.rates.job_columns import JobColumns
from penstock.policies import get_policy


def _columns() -> Any:
    columns: Any = JobColumns(get_policy("fcfs"), 100.0, compiled=True)
    columns.add_job(lost=0.0, cap=100.0, bandwidth=100.0, release=0.0)
    return columns


def test_the_memory_lives_as_long_as_the_steps() -> None:
    columns = _columns()
    steps = columns._steps
    assert isinstance(steps, CompiledSteps)
    state = columns.state
    del columns
    gc.collect()
    steps.post(0, 0.0, 0.0, 200.0)
    assert steps.begin(0.0) == 1
    steps.end(steps.ask())
    assert state.rate[0] == 100.0


def test_a_scalar_holds_from_the_next_decision_on() -> None:
    columns = _columns()
    columns.post(0, 0.0, 0.0, 200.0)
    columns.set_capacity(40.0)
    assert columns.begin_decision(0.0) == 1
    columns.end_decision(columns.ask())
    assert columns.state.rate[0] == 40.0
