# SPDX-License-Identifier: MIT
"""Flows, operations and phases of the simulation with burst buffers."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.buffers_model import Act, Step, Writer
from penstock.sim.buffers_state import Flow, Operation, Phase, PhaseTable, WriterState


def flow(volume: float = 100.0, unit: float = 1.0) -> Flow:
    return Flow(0, unit, 10.0, volume, volume, 0.0)


def test_a_flow_without_a_rate_never_ends() -> None:
    made = flow()
    assert made.completion == inf
    assert made.remaining(1e9) == 100.0


def test_a_rate_gives_what_is_left_and_when_it_ends() -> None:
    made = flow()
    made.set_rate(10.0, 2.0)
    assert made.completion == 12.0
    assert made.remaining(7.0) == 50.0
    made.set_rate(5.0, 7.0)
    assert made.completion == 17.0
    made.set_rate(0.0, 9.0)
    assert made.completion == inf
    assert made.remaining(1e9) == 40.0


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30))
def test_the_same_rate_changes_nothing_however_often_it_is_set(
    instants: list[float],
) -> None:
    made, plain = flow(1e3), flow(1e3)
    for each in (made, plain):
        each.set_rate(3.0, 0.0)
    for instant in sorted(instants):
        made.set_rate(3.0, instant)
    assert made.completion == plain.completion
    assert made.remaining(101.0) == plain.remaining(101.0)


def test_nothing_is_left_of_a_flow_that_has_ended() -> None:
    made = flow()
    made.set_rate(10.0, 0.0)
    assert made.remaining(11.0) == 0.0
    made.finish()
    assert (made.remaining(0.0), made.rate, made.completion) == (0.0, 0.0, inf)


def test_an_operation_adds_up_its_flows_in_bytes() -> None:
    slow, fast = flow(10.0, unit=4.0), flow(10.0, unit=4.0)
    made = Operation(0.0, 80.0, [slow, fast])
    fast.set_rate(10.0, 0.0)
    assert made.remaining(0.5) == 4.0 * (10.0 + 5.0)
    assert made.share() == 0.5
    assert not made.is_done
    for each in (slow, fast):
        each.finish()
    assert made.is_done


def test_a_writer_holds_what_waits_and_what_is_being_drained() -> None:
    state = WriterState(Writer("A", ()), 0, undrained_bytes=30.0)
    assert state.staged(0.0) == 30.0
    state.drain = Operation(0.0, 100.0, [flow()])
    state.drain.flows[0].set_rate(10.0, 0.0)
    assert state.staged(4.0) == 30.0 + 60.0
    assert list(state.operations()) == [state.drain]


def test_a_phase_lasts_from_its_first_write_to_its_close() -> None:
    work, close = Step(Act.WORK, 2.0), Step(Act.CLOSE)
    steps = (work, Step(Act.WRITE, 10.0), work, Step(Act.WRITE, 30.0), close)
    table = PhaseTable(Writer("A", (*steps, Step(Act.WRITE, 5.0), close)))
    first, second = Phase(40.0, 20.0, 2.0), Phase(5.0, 5.0, 0.0)
    assert [table.at(i) for i in range(-1, 8)] == [first] * 6 + [second] * 3
    assert table.writes == 3


def test_a_writer_that_writes_nothing_has_an_empty_phase() -> None:
    assert PhaseTable(Writer("A", ())).at(0) == Phase()
    assert PhaseTable(Writer("A", (Step(Act.WORK, 1.0),))).at(0) == Phase()


@pytest.mark.parametrize("act", [Act.SYNC, Act.CLOSE])
def test_a_writer_waits_in_fsync_and_close(act: Act) -> None:
    state = WriterState(Writer("A", (Step(act),)), 0, position=0)
    assert state.waits
    assert not WriterState(Writer("A", (Step(act),)), 0).waits
