# SPDX-License-Identifier: MIT
"""What a strategy is shown of a simulated application, for forecasts."""

from __future__ import annotations

from math import inf

import pytest

from penstock.sim.buffers.model import Act, OpenPhase, Step, Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers
from penstock.staging import ApplicationStatus, Situation, StagingPlan, Strategy
from penstock.staging.strategies.write_through import coordinate

STORAGE = Storage(100.0, 2)


def _watched(*writers: Writer) -> list[dict[str, ApplicationStatus]]:
    """Return the statuses at 1, 2, 3 ... s, by writer."""
    seen: dict[float, dict[str, ApplicationStatus]] = {}

    def watch(situation: Situation) -> StagingPlan:
        seen[situation.now_s] = {a.name: a for a in situation.applications}
        return StagingPlan(coordinate(situation).orders, int(situation.now_s) + 1.0)

    simulate_buffers(STORAGE, writers, Strategy("watch", "watch", watch, {}))
    return [seen[second] for second in sorted(seen) if second == int(second)]


def test_a_request_under_way_counts_in_part() -> None:
    _, one, two, three, *_ = _watched(Writer.of_requests("A", 2, 250.0))
    assert one["A"].written_bytes == pytest.approx(100.0)
    assert one["A"].under_way_bytes == pytest.approx(150.0)
    assert one["A"].open_targets == (0, 1)
    assert two["A"].under_way_bytes == pytest.approx(50.0)
    assert three["A"].written_bytes == pytest.approx(300.0)
    assert three["A"].phase_bytes == 500.0


def test_the_next_phase_follows_from_the_steps() -> None:
    steps = (Step(Act.WORK, 1.5), Step(Act.WRITE, 200.0), Step(Act.CLOSE))
    zero, one, two, three, four, *_ = _watched(Writer("A", steps * 2))
    assert zero["A"].next_phase_s == one["A"].next_phase_s == 1.5
    assert one["A"].work_s == 1.5
    assert two["A"].next_phase_s == inf
    assert two["A"].written_bytes == pytest.approx(50.0)
    assert four["A"].next_phase_s == pytest.approx(5.0)
    assert four["A"].written_bytes == 0.0
    assert four["A"].work_s == inf
    assert three["A"].in_phase


def test_the_first_phase_of_a_job_may_be_unknown_before_it_begins() -> None:
    steps = (Step(Act.WORK, 1.5), Step(Act.WRITE, 200.0), Step(Act.CLOSE))
    zero, _, _, _, four, *_ = _watched(Writer("A", steps * 2, foreseen=False))
    assert zero["A"].next_phase_s == inf
    assert four["A"].next_phase_s == pytest.approx(5.0)


def test_a_phase_that_has_begun_before_is_as_large_as_it_was() -> None:
    left = Writer(
        "A",
        (Step(Act.WRITE, 250.0), Step(Act.CLOSE)),
        open_phase=OpenPhase(-3.0, written_bytes=300.0, is_writing=True, targets=(1,)),
    )
    zero, one, *_ = _watched(left)
    assert zero["A"].phase_began_s == -3.0
    assert one["A"].phase_bytes == 550.0
    # One of two targets: half the speed.
    assert one["A"].written_bytes == pytest.approx(350.0)
    assert one["A"].open_targets == (1,)
    run = simulate_buffers(STORAGE, [left])
    assert run.phases == (((-3.0, 5.0),),)
