# SPDX-License-Identifier: MIT
"""Hints of a program that is not controlled: they are checked, and change nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import penstock
from penstock.errors import InputError


@pytest.mark.parametrize("volume", [0, 4096, 1.5e9, "2 GiB"])
def test_without_control_a_phase_is_just_its_body(volume: float | str) -> None:
    done = []
    with penstock.phase(volume=volume):
        done.append(1)
    assert done == [1]


def test_an_error_in_a_phase_comes_out() -> None:
    with pytest.raises(KeyError), penstock.phase(volume=1):
        raise KeyError


@pytest.mark.parametrize("volume", [-1, "many", "3 s", float("nan"), float("inf")])
def test_a_volume_that_is_none_gives_one_message(volume: float | str) -> None:
    with pytest.raises(InputError), penstock.phase(volume=volume):
        pytest.fail("the body must not run")


def test_what_there_is_not_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'phases'"):
        _ = penstock.phases  # type: ignore[attr-defined]


def test_importing_penstock_costs_no_hint() -> None:
    script = "import sys, penstock; assert 'penstock.program.hints' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
