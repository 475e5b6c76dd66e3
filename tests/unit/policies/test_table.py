# SPDX-License-Identifier: MIT
"""The table of policies agrees with the files of the policies."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import penstock.policies
from penstock.kernels import is_kernel
from penstock.policies import POLICIES
from penstock.policies.policy import Parameter

FOLDER = Path(penstock.policies.__file__).parent
#: Files in these folders that are not policies.
HELPERS = {"io_sets.sets"}
SECTIONS = ("Rule", "Parameters", "Properties", "Source")


def _module(name: str) -> Any:
    return importlib.import_module(f"penstock.policies.{name}")


MODULES = [*(row.module for row in POLICIES.values()), "_template"]


def test_every_policy_file_has_one_row_and_every_row_a_file() -> None:
    paths = [path for path in FOLDER.glob("*/*.py") if path.stem != "__init__"]
    files = {f"{path.parent.name}.{path.stem}" for path in paths} - HELPERS
    listed = [row.module for row in POLICIES.values()]
    assert sorted(listed) == sorted(files)


@pytest.mark.parametrize("name", POLICIES)
def test_names_are_those_of_the_files(name: str) -> None:
    assert POLICIES[name].module.endswith("." + name.replace("-", "_"))


@pytest.mark.parametrize("name", POLICIES)
def test_summaries_are_the_first_lines_of_the_docstrings(name: str) -> None:
    row = POLICIES[name]
    assert (inspect.getdoc(_module(row.module)) or "").splitlines()[0] == row.summary
    assert row.summary.endswith(".")
    assert re.match(r"[\w -]+, section [\d.]+|beyond the papers", row.paper)


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_have_all_sections_in_order(module: str) -> None:
    lines = (inspect.getdoc(_module(module)) or "").splitlines()
    places = [lines.index(section) for section in SECTIONS]
    assert places == sorted(places)
    assert lines[1] == ""


@pytest.mark.parametrize("module", MODULES)
def test_files_export_a_kernel_and_their_parameters(module: str) -> None:
    policy = _module(module)
    assert is_kernel(policy.allocate)
    declared = getattr(policy, "PARAMETERS", ())
    assert set(policy.__all__) >= {"allocate"} | ({"PARAMETERS"} if declared else set())
    assert all(isinstance(p, Parameter) for p in declared)


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_name_all_parameters(module: str) -> None:
    policy = _module(module)
    text = inspect.getdoc(policy) or ""
    section = text.split("\nParameters\n")[1].split("\nProperties\n")[0]
    for parameter in getattr(policy, "PARAMETERS", ()):
        assert parameter.name in section
    if not getattr(policy, "PARAMETERS", ()):
        assert "None." in section


@pytest.mark.parametrize("module", MODULES)
def test_parameters_have_lawful_defaults_and_distinct_names(module: str) -> None:
    declared = getattr(_module(module), "PARAMETERS", ())
    names = [p.name for p in declared]
    assert len(set(names)) == len(names)
    for parameter in declared:
        assert parameter.number(parameter.parse(str(parameter.default))) >= 0
        assert parameter.meaning
