# SPDX-License-Identifier: MIT
"""The result of a run: yields from the time lost and the age."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from penstock.sim import Run, simulate
from unit.samples import app, make, pair


def _run(**changes: Any) -> Run:
    instance = make(
        app("a", ("work", 20.0)),
        app("b", ("work", 20.0), release=-10.0),
        app("c", ("work", 20.0), release=4.0),
    )
    values: dict[str, Any] = {
        "instance": instance,
        "policy": "fcfs",
        "lost": np.array([0.0, 5.0, 3.0]),
        "ended": np.array([10.0, 10.0, 10.0]),
        "work": np.zeros(3),
        "volume": np.zeros(3),
        "operations": np.zeros(3, dtype=np.int64),
        "occupied": np.zeros(1),
        "events": 0,
        "decisions": 0,
        "seconds": 0.0,
    }
    return Run(**{**values, **changes})


def test_yields_are_one_minus_lost_over_age() -> None:
    assert _run().yields.tolist() == [1.0, 0.75, 0.5]


def test_an_application_that_ended_keeps_its_yield() -> None:
    ended = np.array([5.0, 0.0, 10.0])
    lost = np.array([1.0, 5.0, 0.0])
    assert _run(ended=ended, lost=lost).yields.tolist() == [0.8, 0.5, 1.0]


def test_never_delayed_is_exactly_one() -> None:
    assert _run(lost=np.zeros(3)).yields.tolist() == [1.0] * 3


def test_age_is_progress_and_time_lost() -> None:
    run = simulate(pair(), "fair-share")
    progress = run.work + run.volume / run.instance.caps
    assert (progress + run.lost).tolist() == [10.0, 10.0]
    assert run.yields.tolist() == (progress / 10.0).tolist()


def test_runs_do_not_change_and_print_short() -> None:
    run = _run()
    with pytest.raises(FrozenInstanceError):
        run.events = 3  # type: ignore[misc]
    assert "array" not in repr(run)
    assert {f.name for f in fields(run)} >= {"log", "grants"}
    assert run.log is None
    assert run.grants is None
