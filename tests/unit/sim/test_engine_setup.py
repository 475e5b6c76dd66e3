# SPDX-License-Identifier: MIT
"""The columns of the engine, made from an instance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.kernels import kinds
from penstock.kernels.compiler import addresses
from penstock.model import Application, Instance, Platform, Sharing, Window
from penstock.sim.engine_setup import new_input, new_state
from penstock.sim.state import (
    END_OF_APPLICATION,
    FAULTY_INDEX,
    NOW,
    RECORD_LIMIT,
    EngineInput,
    State,
)
from unit.samples import app, make, pair


def _input(instance: Instance, **options: bool) -> EngineInput:
    chosen = {"steady": True, "record": False, "validate": False, **options}
    return new_input(instance, [7.0], **chosen)


def _state(instance: Instance, **options: bool) -> State:
    return new_state(instance, _input(instance, **options))


def _varied() -> Instance:
    return make(
        app("a", ("work", 1.0), ("io", 2.0), ("io", 3.0), user="ada", group="x"),
        app("b", ("io", 4.0), nodes=2, release=-4.0, start=1.0, user="bob", period=9.0),
        app("c", ("work", 20.0), nodes=9, user="ada", release=-2.0),
        bandwidth=5.0,
        window=(2.0, 8.0),
    )


def test_phases_lie_one_after_the_other_with_a_mark_at_the_end() -> None:
    inputs = _input(_varied())
    end = END_OF_APPLICATION
    assert inputs.work.tolist() == [1, 0, 0, 0, 0, 20]
    assert inputs.volume.tolist() == [2, 3, end, 4, end, end]
    assert inputs.first.tolist() == [0, 3, 5]


def test_facts_of_the_instance() -> None:
    instance = _varied()
    inputs = _input(instance)
    assert inputs.applications == 3
    assert inputs.capacity == 5.0
    assert (inputs.window_begin, inputs.window_end) == (2.0, 8.0)
    assert inputs.cap.tolist() == [1.0, 2.0, 5.0]
    assert inputs.nodes.tolist() == [1, 2, 9]
    assert inputs.release.tolist() == [0.0, -4.0, -2.0]
    assert inputs.start.tolist() == [0.0, 1.0, -2.0]
    assert inputs.period.tolist() == [0.0, 9.0, 0.0]
    assert inputs.parameters.tolist() == [7.0]
    assert inputs.dedicated_events == float(instance.dedicated_events())


def test_users_and_groups_are_numbered_as_they_come() -> None:
    inputs = _input(_varied())
    assert inputs.user.tolist() == [0, 1, 0]
    assert inputs.group.tolist() == [0, 1, 1]


def test_flags() -> None:
    inputs = _input(_varied(), steady=False, record=True, validate=True)
    assert (inputs.record, inputs.validate) == (1, 1)
    assert inputs.ends_before == -math.inf
    assert _input(_varied()).ends_before == pytest.approx(8.0, abs=1e-7)


def test_a_policy_without_parameters_still_has_an_address() -> None:
    inputs = new_input(pair(), [], steady=True, record=False, validate=False)
    assert len(inputs.parameters) == 1
    assert addresses(inputs).size == len(EngineInput._fields)


@pytest.mark.parametrize("record", [False, True])
def test_columns_have_the_kinds_that_the_engine_expects(record: bool) -> None:
    structs = {
        EngineInput: _input(_varied(), record=record),
        State: _state(_varied(), record=record),
    }
    wanted = {"Floats": np.float64, "Ints": np.int64}
    for struct, made in structs.items():
        for name, kind in kinds(struct).items():
            value = getattr(made, name)
            if kind in wanted:
                assert value.dtype == wanted[kind], name
                assert value.flags.c_contiguous, name
                assert value.size >= 1, name
            else:
                assert isinstance(value, {"float": float, "int": int}[kind]), name


def test_before_the_first_event() -> None:
    state = _state(_varied())
    assert state.clock[NOW] == -2.0
    assert state.wake.tolist() == state.next_completion.tolist() == [math.inf]
    assert state.due.tolist() == [math.inf] * 2
    assert state.counter.tolist()[:FAULTY_INDEX] == [0] * FAULTY_INDEX
    assert state.counter[FAULTY_INDEX] == -1
    assert state.finished.tolist() == [math.inf] * 3
    assert len(state.scratch) == 8 * 3


def test_history_is_in_the_state() -> None:
    instance = make(
        app(
            "a",
            ("work", 20.0),
            *[],
            release=-10.0,
            start=0.0,
            done_work=4.0,
            done_volume=6.0,
        ),
        bandwidth=2.0,
        node_bandwidth=2.0,
    )
    state = _state(instance)
    assert state.work_done.tolist() == [4.0]
    assert state.transferred.tolist() == [6.0]
    assert state.lost.tolist() == [3.0]


def test_a_record_has_room_for_all_that_one_instant_can_add() -> None:
    state = _state(_varied(), record=True)
    for column in (state.log_time, state.log_kind, state.log_application):
        assert len(column) == RECORD_LIMIT + 2 * 3 + 1
    for column in (state.grant_time, state.grant_application, state.grant_rate):
        assert len(column) == RECORD_LIMIT + 2 * 3 + 1


def _striped(sharing: Sharing) -> Instance:
    platform = Platform(6.0, 3.0, targets=3, sharing=sharing)
    phases = [("work", 1.0), ("io", 8.0), ("work", 99.0)]
    wide = Application.from_phases("wide", 2, phases, targets=(2, 0))
    narrow = Application.from_phases("narrow", 1, phases, targets=(2,))
    return Instance(platform, Window(0.0, 9.0), (wide, narrow))


def test_flows_are_numbered_application_by_application() -> None:
    inputs = _input(_striped(Sharing.BANDWIDTH))
    assert (inputs.applications, inputs.entries, inputs.targets) == (2, 3, 3)
    assert inputs.first_flow.tolist() == [0, 2, 3]
    assert inputs.owner.tolist() == [0, 0, 1]
    assert inputs.target.tolist() == [2, 0, 2]
    assert inputs.first_entry.tolist() == [0, 1, 1]
    assert inputs.leaves == 4


def test_targets_shared_by_bandwidth_count_bytes() -> None:
    inputs = _input(_striped(Sharing.BANDWIDTH))
    assert inputs.capacity == 2.0
    assert inputs.bandwidth.tolist() == [4.0, 2.0]
    assert inputs.cap.tolist() == [2.0, 2.0, 2.0]
    assert inputs.portion.tolist() == [0.5, 0.5, 1.0]
    assert inputs.unit.tolist() == [1.0, 1.0, 1.0]


def test_targets_shared_by_time_count_seconds() -> None:
    inputs = _input(_striped(Sharing.TIME))
    assert inputs.capacity == 1.0
    assert inputs.cap.tolist() == [1.0, 1.0, 1.0]
    assert inputs.portion.tolist() == [0.25, 0.25, 0.5]
    assert inputs.unit.tolist() == [2.0, 2.0, 2.0]
