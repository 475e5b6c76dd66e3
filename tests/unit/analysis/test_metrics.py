# SPDX-License-Identifier: MIT
"""The objectives by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from penstock.analysis import measure
from penstock.sim import Run, simulate
from unit.samples import app, make, pair, steady_three


def _run(
    work: Sequence[float],
    volume: Sequence[float],
    lost: Sequence[float] = (0.0, 0.0),
    nodes: tuple[int, int] = (1, 3),
) -> Run:
    """Return a run of 10 s with caps 2 and 4 of a storage of 4 B/s."""
    instance = make(
        *(app(n, ("work", 99.0), nodes=k) for n, k in zip("ab", nodes, strict=True)),
        bandwidth=4.0,
        node_bandwidth=2.0,
    )
    return Run(
        instance=instance,
        policy="fcfs",
        work=np.array(work),
        volume=np.array(volume),
        lost=np.array(lost),
        ended=np.array([10.0, 10.0]),
        operations=np.zeros(2, dtype=np.int64),
        occupied=np.zeros(1),
        events=0,
        decisions=0,
        seconds=0.0,
    )


def test_every_objective_by_hand() -> None:
    objectives = measure(_run(work=(4.0, 6.0), volume=(8.0, 8.0), lost=(2.0, 2.5)))
    # Progress: 4 + 8/2 = 8 s and 6 + 8/4 = 8 s of 10 s each; nodes 1 and 3.
    assert objectives.min_yield == 0.75
    assert objectives.utilization == pytest.approx((1 * 4 + 3 * 6) / 40, rel=1e-15)
    assert objectives.efficiency == pytest.approx((1 * 8 + 3 * 8) / 40, rel=1e-15)
    assert objectives.set_utilization == pytest.approx((4 + 6) / 20, rel=1e-15)
    assert objectives.stretch == pytest.approx(10 / 8, rel=1e-15)
    # Time in I/O over time alone: 6/4 and 4/2.
    assert objectives.io_slowdown == pytest.approx(math.sqrt(1.5 * 2.0), rel=1e-15)


def test_cap_efficiency_weighs_applications_by_their_caps() -> None:
    objectives = measure(_run(work=(4.0, 2.0), volume=(8.0, 8.0)))
    # Progress 8 s and 4 s of 10 s each; caps 2 and 4, nodes 1 and 3.
    assert objectives.cap_efficiency == pytest.approx((2 * 8 + 4 * 4) / 60, rel=1e-15)
    assert objectives.efficiency == pytest.approx((1 * 8 + 3 * 4) / 40, rel=1e-15)


def test_objectives_are_plain_numbers_that_json_can_hold() -> None:
    objectives = measure(_run(work=(4.0, 6.0), volume=(8.0, 8.0)))
    assert {type(value) for value in astuple(objectives)} == {float}


def test_stretch_is_that_of_the_slowest() -> None:
    objectives = measure(_run(work=(2.0, 6.0), volume=(4.0, 8.0)))
    assert objectives.stretch == pytest.approx(10 / 4, rel=1e-15)


def test_no_progress_is_an_endless_stretch() -> None:
    objectives = measure(_run(work=(0.0, 6.0), volume=(0.0, 8.0), lost=(10.0, 2.0)))
    assert objectives.stretch == math.inf
    assert objectives.io_slowdown == math.inf
    assert objectives.min_yield == 0.0


def test_applications_without_io_do_not_count_in_the_slowdown() -> None:
    objectives = measure(_run(work=(10.0, 6.0), volume=(0.0, 8.0)))
    assert objectives.io_slowdown == pytest.approx(2.0, rel=1e-15)


def test_without_any_operation_there_is_no_slowdown() -> None:
    objectives = measure(_run(work=(10.0, 10.0), volume=(0.0, 0.0)))
    assert objectives.io_slowdown == objectives.stretch == 1.0
    assert (
        objectives.efficiency == objectives.utilization == objectives.min_yield == 1.0
    )


def test_of_a_simulated_run() -> None:
    objectives = measure(simulate(pair(), "fcfs"))
    # a: 7 s of work and 3 of I/O; b waits 3 s: 4 of work, 3 of I/O.
    assert objectives.min_yield == 0.7
    assert objectives.utilization == pytest.approx(11 / 20)
    assert objectives.efficiency == pytest.approx(17 / 20)
    assert objectives.stretch == pytest.approx(10 / 7)
    assert objectives.io_slowdown == pytest.approx(math.sqrt(1.0 * 2.0))


NEVER_DELAYED = {
    "ends": app("x", ("work", 2.0), ("io", 1.0), ("work", 1.0)),
    "released late": app("x", ("io", 1.0), ("work", 20.0), release=9.0),
    "starts late": app("x", ("io", 20.0), release=3.0, start=6.0, done_work=3.0),
    "ended before": app("x", ("work", 1.0)),
}


@pytest.mark.parametrize("other", NEVER_DELAYED.values(), ids=NEVER_DELAYED)
def test_an_application_present_for_a_part_of_the_window_is_not_delayed(
    other: Any,
) -> None:
    steady = app("a", ("work", 50.0))
    instance = make(other, steady, window=(2.0, 10.0))
    objectives = measure(simulate(instance, "fcfs", steady=False))
    assert objectives.min_yield == 1.0
    assert objectives.stretch == pytest.approx(1.0)
    assert objectives.io_slowdown == pytest.approx(1.0)


def test_delays_count_by_the_time_that_an_application_was_there() -> None:
    """b waits from 2 to 5 and ends at 8: 8 s for what takes 5, 6 s of I/O for 3."""
    a = app("a", ("work", 2.0), ("io", 3.0), ("work", 200.0))
    b = app("b", ("work", 2.0), ("io", 3.0))
    run = simulate(make(a, b, window=(0.0, 100.0)), "fcfs", steady=False)
    objectives = measure(run)
    assert run.ended.tolist() == [100.0, 8.0]
    assert objectives.stretch == pytest.approx(8 / 5)
    assert objectives.io_slowdown == pytest.approx(math.sqrt(6 / 3))
    # a: 97 of 100 s of work and 3 of I/O; b: 2 and 3 of the 8 s until its end.
    assert objectives.efficiency == pytest.approx((100 + 5) / 108)
    assert (
        objectives.utilization == objectives.set_utilization == pytest.approx(99 / 108)
    )


def test_an_application_counts_by_its_nodes_until_its_end() -> None:
    a = app("a", ("work", 1.0), ("io", 1.0), ("work", 2.0))
    b = app("b", ("work", 1.0), ("io", 2.0), nodes=3)
    run = simulate(make(a, b, window=(0.0, 1000.0)), "fcfs", steady=False)
    assert run.ended.tolist() == [4.0, 4.0]
    objectives = measure(run)
    assert objectives.efficiency == pytest.approx((1 * 4 + 3 * 3) / 16)
    assert objectives.utilization == pytest.approx((1 * 3 + 3 * 1) / 16)
    assert objectives.set_utilization == pytest.approx((3 + 1) / 8)


def test_a_closed_run_is_measured_by_its_window_to_the_last_bit() -> None:
    run = simulate(steady_three(), "fair-share")
    length, nodes = run.instance.window.length, np.array([4.0, 2.0, 1.0])
    progress = run.work + run.volume / run.instance.caps
    objectives = measure(run)
    assert objectives.efficiency == float(nodes @ progress) / (length * 7.0)
    assert objectives.utilization == float(nodes @ run.work) / (length * 7.0)
    assert objectives.set_utilization == float(run.work.mean()) / length


def test_objectives_are_1_in_a_window_without_applications() -> None:
    instance = make(app("a", ("work", 1.0)), window=(2.0, 10.0))
    objectives = measure(simulate(instance, "fcfs", steady=False))
    assert objectives.stretch == objectives.io_slowdown == 1.0
    assert (
        objectives.efficiency
        == objectives.utilization
        == objectives.set_utilization
        == 1.0
    )


def test_without_contention_all_is_one_but_utilization() -> None:
    objectives = measure(
        simulate(make(app("a", ("work", 6.0), ("io", 4.0), ("work", 9.0))), "fcfs")
    )
    assert objectives.min_yield == objectives.efficiency == objectives.stretch == 1.0
    assert objectives.io_slowdown == 1.0
    assert objectives.utilization == objectives.set_utilization == 0.6
