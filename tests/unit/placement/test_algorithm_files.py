# SPDX-License-Identifier: MIT
"""The tables of algorithms agree with their files; the template works."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock.placement
from penstock.placement import (
    ALLOCATIONS,
    PAPERS,
    PLACEMENTS,
    AlgorithmRow,
    _template,
    get_allocation,
    get_placement,
)
from unit.placement.problems import application, problem

FOLDER = Path(penstock.placement.__file__).parent
SECTIONS = ("Rule", "Inputs", "Parameters", "Properties", "Source")
ROWS = [*ALLOCATIONS.values(), *PLACEMENTS.values()]
MODULES = [*(row.module for row in ROWS), "_template"]


def _module(name: str) -> Any:
    return importlib.import_module(f"penstock.placement.{name}")


@pytest.mark.parametrize(
    ("room", "table"), [("allocations", ALLOCATIONS), ("placements", PLACEMENTS)]
)
def test_every_file_has_one_row_and_every_row_a_file(
    room: str, table: dict[str, AlgorithmRow]
) -> None:
    files = {path.stem for path in (FOLDER / room).glob("*.py")} - {"__init__"}
    listed = sorted(row.module for row in table.values())
    assert listed == sorted(f"{room}.{file}" for file in files)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.module)
def test_rows_repeat_the_summaries_of_the_files(row: Any) -> None:
    module = _module(row.module)
    assert (inspect.getdoc(module) or "").splitlines()[0] == row.summary
    assert row.summary.endswith(".")
    assert row.needs == module.NEEDS
    assert re.match(r"target allocation, section [\d.]+", row.paper)
    assert row.paper.partition(", section")[0] in PAPERS


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_have_all_sections_in_order(module: str) -> None:
    lines = (inspect.getdoc(_module(module)) or "").splitlines()
    places = [lines.index(section) for section in SECTIONS]
    assert places == sorted(places)
    assert lines[1] == ""


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_name_all_parameters_and_inputs(module: str) -> None:
    algorithm_module = _module(module)
    text = inspect.getdoc(algorithm_module) or ""
    section = text.split("\nParameters\n")[1].split("\nProperties\n")[0]
    for parameter in getattr(algorithm_module, "PARAMETERS", ()):
        assert parameter.name in section
        assert parameter.parse(str(parameter.default)) == parameter.default
    if not getattr(algorithm_module, "PARAMETERS", ()):
        assert "None." in section
    inputs = text.split("\nInputs\n")[1].split("\nParameters\n")[0]
    for needed in algorithm_module.NEEDS:
        assert needed in inputs
    if not algorithm_module.NEEDS:
        assert "Nothing" in inputs


# --- The template -----------------------------------------------------------------

TEMPLATE = "penstock.placement._template"


def test_the_template_follows_its_docstring() -> None:
    # + 50 %, + 10 %, + 9 %, + 50 %.
    task = problem(
        5, application("a", [2.0, 3.0, 3.3, 3.6, 5.4]), application("b", [1.0])
    )
    assert get_allocation(f"{TEMPLATE}:gain=0.2").allocate(task) == (2, 1)
    assert get_allocation(f"{TEMPLATE}:gain=0.05").allocate(task) == (5, 1)
    assert get_placement(TEMPLATE).place(task, (4, 1)) == ((0, 1, 2, 3), (4,))


def test_a_copy_of_the_template_runs_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(Path(_template.__file__), tmp_path / "my_copy.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    task = problem(3, application("a", [1.0, 2.0, 2.1]))
    try:
        assert get_allocation("my_copy.allocate:gain=0.5").allocate(task) == (2,)
        assert get_placement("my_copy.place").place(task, (2,)) == ((0, 1),)
    finally:
        sys.modules.pop("my_copy", None)
