# SPDX-License-Identifier: MIT
"""Figures 13 and 14 of burst-buffer coordination: more than two applications."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Scale
from penstock.papers.p4.scaling import fig13, fig14
from penstock.papers.p4.study import EXPONENT, LOSS
from support.claim_flips import assert_all_claims, assert_flips, failed_claims

FIGURES = {figure.name: figure for figure in (fig13, fig14)}
#: Claims of the paper that do not hold in our model, each with a reason.
FAIL = {"p4-fig13": {"two-instances"}, "p4-fig14": set()}


def _instances(*factors: float) -> Tables:
    """Return the mean factors of 1 to 4 instances, from two kinds of applications."""
    rows = [
        {"kind": kind, "instances": count, "factor": factor + change}
        for count, factor in enumerate(factors, 1)
        for kind, change in (("benchmark", -0.1), ("cm1", 0.1))
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


#: Claim, factors of 1 to 4 instances for which it holds, and for which it does not.
INSTANCES: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("two-instances", (1.0, 2.5, 3.0, 4.0), (1.0, 2.7, 3.0, 4.0)),
    ("grows", (1.0, 2.4, 3.0, 3.9), (1.0, 2.4, 4.0, 3.9)),
    ("grows", (1.0, 2.4, 3.0, 3.9), (2.0, 2.0, 2.0, 2.0)),
    ("four-instances", (1.0, 2.4, 3.0, 4.2), (1.0, 2.4, 3.0, 4.6)),
]


@pytest.mark.parametrize(
    ("name", "good", "bad"), INSTANCES, ids=[flip[0] for flip in INSTANCES]
)
def test_a_claim_on_equal_instances_holds_and_fails(
    name: str, good: tuple[float, ...], bad: tuple[float, ...]
) -> None:
    assert_flips(fig13, name, _instances(*good), _instances(*bad))


#: Strategy -> I/O times of A, B and C (s).
Times: TypeAlias = dict[str, tuple[float, float, float]]
GOOD: Times = {
    "none": (70.0, 70.0, 70.0),
    "1a": (60.0, 40.0, 20.0),
    "2a": (20.0, 40.0, 60.0),
    "3b:split=halve": (50.0, 50.0, 50.0),
    "combined:least=4": (55.0, 55.0, 55.0),
}


def _three(times: Times) -> Tables:
    rows = [
        {"strategy": strategy, "application": name, "io_time": time}
        for strategy, three in {**GOOD, **times}.items()
        for name, time in zip("ABC", three, strict=True)
    ]
    return Tables(pl.DataFrame(rows), pl.DataFrame())


#: Claim, times for which it does not hold. All hold for `GOOD`.
THREE: list[tuple[str, Times]] = [
    ("strategies-1-and-2-mirror", {"2a": (20.0, 50.0, 60.0)}),
    ("all-gain", {"3b:split=halve": (50.0, 70.0, 50.0)}),
    ("combination", {"combined:least=4": (61.0, 40.0, 40.0)}),
]


@pytest.mark.parametrize(("name", "bad"), THREE, ids=[flip[0] for flip in THREE])
def test_a_claim_on_three_applications_holds_and_fails(name: str, bad: Times) -> None:
    assert_flips(fig14, name, _three({}), _three(bad))


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig13], [flip[0] for flip in INSTANCES])
    assert_all_claims([fig14], [flip[0] for flip in THREE])


@cache
def _simulated(name: str) -> Tables:
    rows = FIGURES[name].rows(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())


@pytest.mark.parametrize("name", FIGURES)
def test_the_claims_that_fail_in_our_model_are_known(name: str) -> None:
    assert failed_claims(FIGURES[name], _simulated(name)) == FAIL[name]


def test_a_single_instance_is_not_slowed_down() -> None:
    rows = _simulated("p4-fig13").rows.filter(instances=1)
    assert rows["factor"].to_list() == pytest.approx([1.0] * rows.height)
    assert rows.height == 4


def test_n_equal_instances_share_what_interference_leaves() -> None:
    """Check n times the loss with 80 n waiting requests over that with 80."""
    rows = _simulated("p4-fig13").rows.filter(kind="benchmark").sort("instances")
    loss = [1 + LOSS * (80 * n / 512) ** EXPONENT for n in range(1, 5)]
    expected = [n * each / loss[0] for n, each in enumerate(loss, 1)]
    assert rows["factor"].to_list() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "label"), [("p4-fig13", "factor"), ("p4-fig14", "(s)")]
)
def test_the_drawing_has_one_panel_of_bars(name: str, label: str) -> None:
    drawn = FIGURES[name].draw(_simulated(name))
    assert isinstance(drawn, Figure)
    (axis,) = drawn.axes
    assert axis.get_ylabel().endswith(label)
