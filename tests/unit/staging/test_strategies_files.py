# SPDX-License-Identifier: MIT
"""The table of strategies agrees with their files; properties of all strategies."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import sys
from math import inf
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import penstock.staging
from penstock.errors import InputError
from penstock.staging import (
    STRATEGIES,
    ApplicationStatus,
    Situation,
    _template,
    get_strategy,
)
from support.staging_plans import IDLE, A, decide, staging, widths

FOLDER = Path(penstock.staging.__file__).parent
SECTIONS = ("Rule", "Parameters", "Properties", "Source")
MODULES = [*(row.module for row in STRATEGIES.values()), "_template"]
TEMPLATE = "penstock.staging._template"
ALL = [
    *STRATEGIES,
    *(f"{n}:flush={f}" for n in ("1b", "2b") for f in ("token", "window", "priority")),
    *("combined:flush=token,least=3", "controlled:stage=contended", TEMPLATE),
]
quickly = settings(deadline=None, derandomize=True, max_examples=30, database=None)


def _module(name: str) -> Any:
    return importlib.import_module(f"penstock.staging.{name}")


def test_every_file_has_one_row_and_every_row_a_file() -> None:
    files = {path.stem for path in (FOLDER / "strategies").glob("*.py")} - {"__init__"}
    listed = sorted(row.module for row in STRATEGIES.values())
    assert listed == sorted(f"strategies.{file}" for file in files)


@pytest.mark.parametrize("row", STRATEGIES.values(), ids=lambda row: row.module)
def test_rows_repeat_the_summaries_of_the_files(row: Any) -> None:
    text = inspect.getdoc(_module(row.module)) or ""
    assert text.splitlines()[0] == row.summary
    assert re.match(
        r"burst-buffer coordination §[IV]+\.[A-D]|beyond the papers", row.paper
    )


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_have_all_sections_and_parameters(module: str) -> None:
    strategy_module = _module(module)
    text = inspect.getdoc(strategy_module) or ""
    places = [text.splitlines().index(section) for section in SECTIONS]
    assert places == sorted(places)
    section = text.split("\nParameters\n")[1].split("\nProperties\n")[0]
    declared = getattr(strategy_module, "PARAMETERS", ())
    for parameter in declared:
        assert parameter.name in section
    assert declared or "None." in section


def test_a_copy_of_the_template_runs_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(Path(_template.__file__), tmp_path / "my_strategy.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    here = tuple(ApplicationStatus(name, phase_began_s=1.0) for name in "abc")
    try:
        strategy = get_strategy("my_strategy.coordinate:writers=1")
        plan = strategy.decide(Situation(2.0, 1, here))
    finally:
        sys.modules.pop("my_strategy", None)
    assert [order.stage for order in plan.orders] == [False, True, True]


# --- Properties of all strategies --------------------------------------------------

instants = st.floats(0.0, 100.0)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    applications = tuple(
        ApplicationStatus(
            f"a{number}",
            phase_began_s=draw(instants | st.just(inf)),
            phase_bytes=draw(st.floats(0.0, 1e9)),
            processes=draw(st.integers(1, 1000)),
            priority=draw(st.integers(-2, 2)),
            staged_bytes=draw(st.just(0.0) | st.floats(1.0, 1e9)),
            is_blocked=draw(st.booleans()),
            turn_began_s=draw(instants | st.just(inf)),
            turn_ended_s=draw(instants | st.just(-inf)),
        )
        for number in range(draw(st.integers(1, 5)))
    )
    return Situation(100.0 + draw(instants), draw(st.integers(1, 9)), applications)


@pytest.mark.parametrize("name", STRATEGIES)
def test_an_application_that_is_alone_writes_through(name: str) -> None:
    plan = decide(name, A, IDLE)
    assert staging(plan) == [False, False]
    # A static partition keeps the targets of idle applications.
    assert widths(plan)[0] == (6 if name == "3a" else 8)


@pytest.mark.parametrize("name", ALL)
@given(situation=situations())
@quickly
def test_an_application_can_always_go_on(name: str, situation: Situation) -> None:
    """At least one application writes through or drains: there is no deadlock."""
    try:
        plan = get_strategy(name).decide(situation)
    except InputError:
        assert name in ("3a", "3b")
        assert len(situation.applications) > situation.target_count
        return
    assert plan.wake_s > situation.now_s
    present = situation.arrivals()
    pairs = list(zip(situation.applications, plan.orders, strict=True))
    if present and name != "controlled:stage=contended":
        assert any(a.in_phase and not order.stage for a, order in pairs)
    if all(a.staged_bytes > 0 for a in situation.applications):
        assert any(order.drain for order in plan.orders)
    if ":flush=" in name:
        assert sum(a.staged_bytes > 0 and order.drain for a, order in pairs) <= 1


@pytest.mark.parametrize("name", ALL)
@given(situation=situations())
@quickly
def test_the_same_situation_gets_the_same_plan(name: str, situation: Situation) -> None:
    strategy = get_strategy(name)
    try:
        assert strategy.decide(situation) == strategy.decide(situation)
    except InputError:
        assert name in ("3a", "3b")


@pytest.mark.parametrize("name", ["3a", "3b", "combined"])
@given(situation=situations())
@quickly
def test_parts_do_not_overlap_and_cover_all(name: str, situation: Situation) -> None:
    try:
        plan = get_strategy(name).decide(situation)
    except InputError:
        return
    pairs = zip(situation.applications, plan.orders, strict=True)
    owners = [
        order.targets
        for a, order in pairs
        if name == "3a" or (a.in_phase and not order.stage)
    ]
    used = sorted(target for part in owners for target in part)
    if name == "3a" and len(situation.applications) == 1:
        # A part is left for the application that may come.
        assert used == list(range((situation.target_count + 1) // 2))
    else:
        assert used == (list(range(situation.target_count)) if owners else [])
