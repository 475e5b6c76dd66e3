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
from penstock.papers.p1.parameters import parameters
from penstock.papers.p1.policies import ALL_POLICIES
from support.apex_tables import claim_of

VALUES = {"n_small": (0.0, 40.0), "sigma": (0.1, 1.0), "noise": (0.0, 1.0)}


def _tables(name: str, changes: Mapping[str, float]) -> Tables:
    """Return MinYields of 0.9, changed at the largest value of one parameter."""
    rows = []
    for parameter, ends in VALUES.items():
        for value in ends:
            for policy in ALL_POLICIES:
                changed = parameter == name and value == ends[1]
                change = changes.get(policy, 0.0) if changed else 0.0
                row = dict.fromkeys(VALUES) | {
                    parameter: value,
                    "policy": policy,
                    "min_yield": 0.9 + change,
                    "efficiency": 0.9,
                }
                rows.append(row)
    schema = dict.fromkeys(VALUES, pl.Float64)
    return Tables(pl.DataFrame(rows, schema_overrides=schema), pl.DataFrame())


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


def test_numbers_are_the_changes_over_the_range() -> None:
    verdict = claim_of(parameters, "noise-no-impact").check(
        _tables("noise", {"fcfs": -0.03})
    )
    assert verdict.numbers == pytest.approx(
        dict.fromkeys(ALL_POLICIES, 0.0) | {"fcfs": -0.03}
    )


def test_one_parameter_varies_at_a_time() -> None:
    study = parameters.study(Scale.SMOKE)
    assert isinstance(study, Study)
    swept = [set(dict(p.settings)) - {"horizon", "pressure"} for p in study.points]
    assert all(len(names) == 1 for names in swept)
    assert len(study.points) == 15


def test_the_drawing_has_a_panel_per_parameter_and_objective() -> None:
    drawn = parameters.draw(_tables("noise", {}))
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == 3 * 2
