# SPDX-License-Identifier: MIT
"""Groups of processes, applications and phases of the simulation with burst buffers."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.buffers.model import Act, Step, Writer
from penstock.sim.buffers.queue import Operation
from penstock.sim.buffers.state import (
    Phase,
    PhaseTable,
    ProcessGroup,
    WriterState,
    groups_of,
)


def application(writer: Writer) -> WriterState:
    made = WriterState(writer, 0)
    made.groups = groups_of(made)
    return made


def paced(**rest: float) -> Writer:
    return Writer.of_requests("A", 3, 64.0, 2.0, nodes=4, processes=8, **rest)


def test_without_jitter_all_processes_are_one_group() -> None:
    (group,) = application(paced()).groups
    assert (group.nodes, group.processes) == (4, 8.0)
    assert group.steps == tuple((step.act, step.amount) for step in paced().steps)


@given(st.floats(0.01, 1.0), st.integers(0, 2**31))
def test_with_jitter_every_node_is_a_group_with_its_own_pauses(
    jitter: float, seed: int
) -> None:
    groups = application(paced(jitter=jitter, seed=seed)).groups
    assert [(g.number, g.nodes, g.processes) for g in groups] == [
        (number, 1, 2.0) for number in range(4)
    ]
    for group in groups:
        writes = [amount for act, amount in group.steps if act is Act.WRITE]
        pauses = [amount for act, amount in group.steps if act is Act.WORK]
        assert writes == [16.0] * 3
        assert all(abs(pause - 2.0) <= 2.0 * jitter for pause in pauses)
    assert len({group.steps for group in groups}) == 4
    again = application(paced(jitter=jitter, seed=seed)).groups
    assert [g.steps for g in groups] == [g.steps for g in again]


def test_the_phase_of_an_application_lasts_from_its_first_open_to_its_last_close() -> (
    None
):
    app = application(paced(jitter=0.5))
    assert app.phase_began == inf
    for time, group in enumerate(app.groups, 3):
        app.open(group, float(time))
    assert app.phase_began == 3.0
    for time, group in enumerate(app.groups, 10):
        assert app.phase_began == 3.0
        app.close(group, float(time))
    assert app.phase_began == inf
    assert app.phases == [(3.0, 13.0)]


def test_a_group_may_be_a_phase_ahead() -> None:
    app = application(paced(jitter=0.5))
    first, *others = app.groups
    for group in app.groups:
        app.open(group, 1.0)
    app.close(first, 2.0)
    app.open(first, 3.0)
    assert app.phase_began == 1.0
    for group in others:
        app.close(group, 4.0)
    assert (app.phases, app.phase_began) == ([(1.0, 4.0)], 3.0)


def test_a_close_without_a_phase_changes_nothing() -> None:
    app = application(paced())
    app.close(app.groups[0], 1.0)
    assert (app.phases, app.phase_began) == ([], inf)


def test_a_group_holds_what_waits_and_what_is_being_drained() -> None:
    group = ProcessGroup(application(paced()), 0, 1, 1.0, (), undrained_bytes=30.0)
    assert group.has_staged
    assert group.staged(0.0) == 30.0
    group.drain = Operation(group, 0.0, 100.0)
    group.undrained_bytes = 0.0
    assert group.has_staged
    assert not ProcessGroup(application(paced()), 0, 1, 1.0, ()).has_staged


def test_a_group_waits_in_fsync_and_before_its_request_begins() -> None:
    app = application(paced())
    assert not ProcessGroup(app, 0, 1, 1.0, ()).waits
    assert ProcessGroup(app, 0, 1, 1.0, (), is_syncing=True).waits
    assert ProcessGroup(app, 0, 1, 1.0, (), pending_bytes=1.0).waits


def test_a_phase_lasts_from_its_first_write_to_its_close() -> None:
    work, close = Step(Act.WORK, 2.0), Step(Act.CLOSE)
    steps = (work, Step(Act.WRITE, 10.0), work, Step(Act.WRITE, 30.0), close)
    table = PhaseTable(Writer("A", (*steps, Step(Act.WRITE, 5.0), close)))
    first, second = Phase(40.0, 20.0, 2.0), Phase(5.0, 5.0, 0.0)
    assert [table.at(i) for i in range(-1, 8)] == [first] * 6 + [second] * 3
    assert table.writes == 3


@pytest.mark.parametrize("steps", [(), (Step(Act.WORK, 1.0),)])
def test_a_writer_that_writes_nothing_has_an_empty_phase(
    steps: tuple[Step, ...],
) -> None:
    assert PhaseTable(Writer("A", steps)).at(0) == Phase()
