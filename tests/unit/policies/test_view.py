# SPDX-License-Identifier: MIT
"""The view agrees with the columns of the engine, field by field."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from penstock.kernels import interpreted, kinds, memory
from penstock.policies import POLICIES
from penstock.policies import view as module
from penstock.policies.view import View
from penstock.sim import engine
from penstock.sim.engine_setup import new_input, new_state
from penstock.sim.state import EngineInput, State
from unit.samples import pair

#: Fields of `View` that a policy may write to.
WORKING = {"key", "order", "scratch"}
#: Fields that are entries of the engine's clock and counters.
MOVING = {"now", "n_active"}


def test_fields_are_numbers_and_columns() -> None:
    assert set(kinds(View).values()) == {"float", "int", "Floats", "Ints"}


def test_every_field_is_explained() -> None:
    source = inspect.getsource(module.View)
    for name in View._fields:
        after = source.split(f"\n    {name}: ")[1].splitlines()
        assert after[1].strip().startswith('"""'), name


def test_every_field_is_one_of_the_engine_s_of_the_same_kind() -> None:
    known = {**kinds(EngineInput), **kinds(State)}
    # The volume of the operation under way, not that of all of them.
    known["volume"] = kinds(State)["volume"]
    for name, kind in kinds(View).items():
        if name not in MOVING:
            assert known[name] == kind, name


def test_the_engine_shows_every_column_under_its_name() -> None:
    instance = pair()
    inputs = new_input(instance, [1.0], steady=True, record=False, validate=False)
    state = new_state(instance, inputs)
    shown = interpreted(engine.view)(memory(inputs), memory(state))
    for name, kind in kinds(View).items():
        value = getattr(shown, name)
        owner = state if hasattr(state, name) else inputs
        if kind in ("Floats", "Ints"):
            assert value.obj is getattr(owner, name), name
        elif name not in MOVING:
            assert value == getattr(owner, name), name


def test_nothing_of_the_future_is_shown() -> None:
    hidden = {"work", "first", "work_end", "position", "working", "completion"}
    assert not hidden & set(View._fields)


def test_the_page_of_the_python_interface_lists_every_field() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "python.md"
    table = page.read_text().partition("## What a policy sees")[2].partition("```")[0]
    listed = re.findall(r"`(\w+)", table)
    assert [name for name in View._fields if name not in listed] == []


def test_the_page_of_policies_lists_every_policy() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "policies.md"
    assert re.findall(r"^\| `([\w-]+)`", page.read_text(), re.MULTILINE) == [*POLICIES]
