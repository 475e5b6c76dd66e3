# SPDX-License-Identifier: MIT
"""The table of benchmarks, and measurements with goals."""

from __future__ import annotations

import dataclasses
import importlib
from math import inf
from pathlib import Path

import pytest

from penstock.bench import (
    BENCHES,
    USERS_OF_OPTION,
    BenchSettings,
    Measurement,
    measure,
)
from penstock.errors import UnknownNameError


@pytest.mark.parametrize(
    ("value", "least", "most", "has_goal", "is_reached"),
    [
        (5.0, -inf, inf, False, True),
        (5.0, 5.0, 5.0, True, True),
        (5.0, 5.1, inf, True, False),
        (5.0, -inf, 4.9, True, False),
        (float("nan"), 1.0, 2.0, True, False),
    ],
)
def test_a_goal_is_reached_or_not(
    value: float, least: float, most: float, has_goal: bool, is_reached: bool
) -> None:
    measurement = Measurement("a", value, "", least, most)
    assert (measurement.has_goal, measurement.is_reached) == (has_goal, is_reached)


@pytest.mark.parametrize("name", BENCHES)
def test_every_benchmark_is_a_module(name: str) -> None:
    module = importlib.import_module(f"penstock.bench.{BENCHES[name].module}")
    assert callable(module.measure)


def test_options_belong_to_settings_and_known_benchmarks() -> None:
    fields = {field.name for field in dataclasses.fields(BenchSettings)}
    assert set(USERS_OF_OPTION) <= fields
    assert {name for users in USERS_OF_OPTION.values() for name in users} <= set(
        BENCHES
    )


def test_an_unknown_benchmark_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="overhead, pacing"):
        next(measure("pace", BenchSettings(1, tmp_path)))
