# SPDX-License-Identifier: MIT
"""Claims on n_small, sigma and noise (bandwidth sharing): each can hold and fail."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Study
from penstock.papers.p1.parameters import PRESSURES, parameters
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.papers.p1.synthetic import pressure_study
from support.apex_tables import claim_of

VALUES = {"n_small": (0.0, 40.0), "sigma": (0.1, 1.0), "noise": (0.0, 1.0)}


def _tables(
    name: str, changes: Mapping[str, float], pressures: tuple[float, ...] = PRESSURES
) -> Tables:
    """Return MinYields of 0.9, changed at the largest value of one parameter."""
    points: list[dict[str, float | None]] = [dict.fromkeys(VALUES)]
    for parameter, ends in VALUES.items():
        points += [dict.fromkeys(VALUES) | {parameter: value} for value in ends]
    rows = []
    for pressure in PRESSURES:
        for point in points:
            changed = point[name] == VALUES[name][1] and pressure in pressures
            for policy in ALL_POLICIES:
                change = changes.get(policy, 0.0) if changed else 0.0
                row = {
                    "instance": 0,
                    "aimed_pressure": pressure,
                    "policy": policy,
                    "min_yield": 0.9 + change,
                    "efficiency": 0.9,
                    "utilization": 0.9,
                    "yields": [0.9],
                }
                rows.append(point | row)
    schema = dict.fromkeys(VALUES, pl.Float64)
    frame = pl.DataFrame(rows, schema_overrides=schema)
    return parameters.prepare(Tables(frame, pl.DataFrame()))


FLIPS = [
    ("n-small-no-impact", "n_small", {"fcfs": -0.04}, {"fcfs": -0.06}),
    ("noise-no-impact", "noise", {"greedy-com": 0.04}, {"greedy-com": 0.06}),
    (
        "sigma-hurts-fcfs-and-set10",
        "sigma",
        {"fcfs": -0.2, "set-10": -0.1, "greedy-com": -0.04},
        {"fcfs": -0.2, "set-10": 0.01},
    ),
    (
        "sigma-hurts-fcfs-and-set10",
        "sigma",
        {"fcfs": -0.2, "set-10": -0.1},
        {"fcfs": -0.2, "set-10": -0.1, "greedy-com": -0.06},
    ),
]


def test_every_claim_is_tested() -> None:
    assert {flip[0] for flip in FLIPS} == {claim.name for claim in parameters.claims}


@pytest.mark.parametrize(("name", "parameter", "good", "bad"), FLIPS)
def test_a_claim_holds_and_fails(
    name: str, parameter: str, good: Mapping[str, float], bad: Mapping[str, float]
) -> None:
    check = claim_of(parameters, name).check
    assert check(_tables(parameter, good)).holds
    assert not check(_tables(parameter, bad)).holds


def test_a_claim_that_fails_at_one_pressure_depends_on_it() -> None:
    tables = _tables("noise", {"fcfs": -0.06}, pressures=(1.1,))
    verdict = claim_of(parameters, "noise-no-impact").check(tables)
    assert (verdict.depends_on, verdict.holds_at) == ("W", ("0.8",))
    assert verdict.numbers["W = 1.1"]["MinYield, fcfs"] == pytest.approx(-0.06)


def test_a_change_in_the_middle_of_the_range_counts() -> None:
    tables = _tables("noise", {})
    middle = (pl.col("parameter") == "noise") & (pl.col("value") == 0.5)
    dent = pl.when(middle).then(0.8).otherwise(pl.col("efficiency"))
    dented = Tables(tables.rows.with_columns(dent.alias("efficiency")), tables.times)
    assert not claim_of(parameters, "noise-no-impact").check(dented).holds


def test_the_default_is_a_value_of_every_parameter() -> None:
    rows = _tables("noise", {}).rows
    values = {
        name: sorted(rows.filter(pl.col("parameter") == name)["value"].unique())
        for name in VALUES
    }
    assert values == {
        "n_small": [0.0, 20.0, 40.0],
        "sigma": [0.1, 0.5, 1.0],
        "noise": [0.0, 0.5, 1.0],
    }


@pytest.mark.parametrize("scale", Scale)
def test_one_parameter_varies_at_a_time_and_the_defaults_are_shared(
    scale: Scale,
) -> None:
    studies = parameters.study(scale)
    assert isinstance(studies, tuple)
    defaults, varied = studies
    assert isinstance(defaults, Study)
    assert defaults.digest() == pressure_study(scale).digest()
    settings = [dict(point.settings) for point in varied.points]
    assert [s.pop("horizon") for s in settings] == [
        dict(defaults.points[0].settings)["horizon"]
    ] * 24
    assert {s.pop("pressure") for s in settings} == {0.8, 1.1}
    assert all(len(s) == 1 for s in settings)
    assert not any(
        s.items() <= {"n_small": 20, "sigma": 0.5, "noise": 0.5}.items()
        for s in settings
    )


def test_the_drawing_has_a_panel_per_parameter_pressure_and_objective() -> None:
    drawn = parameters.draw(_tables("noise", {}))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == 3 * 2 * 2
