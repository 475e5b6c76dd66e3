# SPDX-License-Identifier: MIT
"""Announced phases without the preload library: checked, without effect."""

from __future__ import annotations

import subprocess
import sys

import pytest

import penstock
from penstock.errors import InputError


@pytest.mark.parametrize("volume", [0, 4096, 1.5e9, "2 GiB"])
def test_without_the_library_a_phase_only_runs_its_body(volume: float | str) -> None:
    done = []
    with penstock.phase(volume=volume):
        done.append(1)
    assert done == [1]


def test_an_error_in_a_phase_is_not_swallowed() -> None:
    with pytest.raises(KeyError), penstock.phase(volume=1):
        raise KeyError


@pytest.mark.parametrize("volume", [-1, "many", "3 s", float("nan"), float("inf")])
def test_an_invalid_volume_is_refused_before_the_body_runs(volume: float | str) -> None:
    with pytest.raises(InputError), penstock.phase(volume=volume):
        pytest.fail("the body must not run")


def test_penstock_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="no attribute 'phases'"):
        _ = penstock.phases


def test_importing_penstock_imports_no_module_for_programs() -> None:
    script = (
        "import sys, penstock;"
        "assert not [name for name in sys.modules if 'penstock.program' in name]"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
