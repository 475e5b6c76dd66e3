# SPDX-License-Identifier: MIT
"""The columns of the engine: kinds of fields, and names that policies share."""

from __future__ import annotations

import pytest

from penstock.kernels import kinds
from penstock.policies.view import View
from penstock.sim.state import EngineInput, State


@pytest.mark.parametrize("struct", [EngineInput, State])
def test_every_field_has_a_kind_that_kernels_know(struct: type) -> None:
    assert set(kinds(struct).values()) <= {"int", "float", "Ints", "Floats"}


def test_volumes_are_the_only_columns_of_both() -> None:
    """Of all phases in the input; of the present operation in the state."""
    assert set(EngineInput._fields) & set(State._fields) == {"volume"}


def test_a_view_has_the_same_kind_of_column_as_the_engine() -> None:
    engine = {**kinds(EngineInput), **kinds(State)}
    shared = kinds(View).keys() & engine.keys()
    assert {"lost", "cap", "release"} <= shared
    assert {n: engine[n] for n in shared} == {n: kinds(View)[n] for n in shared}
