# SPDX-License-Identifier: MIT
"""Claims: cases, names, records of verdicts, and means over chosen rows."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from penstock.experiments.check_digest import check_digest
from penstock.experiments.claims import (
    Claim,
    ClaimCase,
    NoRowsError,
    Outcome,
    Tables,
    Verdict,
    case,
    claim_name,
    judge,
    over,
    policy_mean,
    present_values,
    require_rows,
)

ROWS = pl.DataFrame(
    {
        "policy": ["a", "a", "a", "b"],
        "load": [1, 1, 2, 1],
        "min_yield": [0.25, 0.75, 0.125, 1.0],
    }
)
TABLES = Tables(ROWS, pl.DataFrame())


def _claim(holds: object, reason: str = "", **numbers: float) -> Claim:
    verdict = Verdict(holds, numbers)  # type: ignore[arg-type]
    return Claim("c", "paper 0", "It is so.", lambda _tables: verdict, reason)


def test_a_case_holds_the_arguments_of_the_check() -> None:
    made = case("low", "It is low.", reason="why", policy="a", most=0.5)
    assert made == ClaimCase(
        "low", "It is low.", reason="why", arguments={"policy": "a", "most": 0.5}
    )
    assert case("low", "It is low.").arguments == {}


@pytest.mark.parametrize(
    ("function", "name"), [("fcfs_worst", "fcfs-worst"), ("_worst", "worst")]
)
def test_the_name_of_a_claim_comes_from_its_function(function: str, name: str) -> None:
    def check(_tables: Tables) -> Verdict:
        return Verdict(True, {})

    check.__name__ = function
    assert claim_name(check) == name


def test_a_record_has_sentence_verdict_and_numbers() -> None:
    assert judge((_claim(True, x=1.0),), TABLES) == [
        {
            "name": "c",
            "source": "paper 0",
            "says": "It is so.",
            "beyond": False,
            "check": check_digest(_claim(True).check),
            "holds": True,
            "outcome": "holds",
            "depends_on": "",
            "holds_at": [],
            "numbers": {"x": 1.0},
            "spread": {},
            "support": None,
            "reason": "",
        }
    ]


def test_a_reason_is_given_only_if_the_claim_fails() -> None:
    held, failed = judge((_claim(True, "why"), _claim(False, "why")), TABLES)
    assert held["reason"] == ""
    assert failed["reason"] == "why"


def test_reasons_are_left_out_at_a_smaller_scale() -> None:
    """The figure of the paper that contradicts a claim does not depend on the scale."""
    failed = Verdict(False, {})
    claim = Claim("c", "", "", lambda _tables: failed, "0.3 %.", "Figure 2 does.")
    (record,) = judge((claim,), TABLES, reasons=False)
    assert record["reason"] == "Figure 2 does."
    assert record["outcome"] == Outcome.CONTRADICTED


def test_numpy_values_become_plain_ones() -> None:
    (record,) = judge((_claim(np.bool_(True), x=np.float64(1 / 3), n=3),), TABLES)
    assert record["holds"] is True
    assert {type(value) for value in record["numbers"].values()} == {float}
    assert record["numbers"] == {"x": 0.333333, "n": 3.0}


def test_infinite_numbers_become_texts_as_json_has_none() -> None:
    (record,) = judge((_claim(True, x=math.inf, y=-math.inf),), TABLES)
    assert record["numbers"] == {"x": "∞", "y": "-∞"}


def test_numbers_that_are_not_defined_are_left_out() -> None:
    nested = {"r": {"x": math.nan, "y": 2.0}, "s": {"x": math.nan}, "n": 1.0}
    claim = Claim("c", "", "", lambda _tables: Verdict(False, nested))
    (record,) = judge((claim,), TABLES)
    assert record["numbers"] == {"r": {"y": 2.0}, "n": 1.0}
    (record,) = judge((_claim(False, x=math.nan),), TABLES)
    assert record["numbers"] == {"rows to check it on": 0.0}


def test_a_check_gets_the_tables() -> None:
    seen = []

    def check(tables: Tables) -> Verdict:
        seen.append(tables)
        return Verdict(True, {})

    judge((Claim("c", "", "", check),), TABLES)
    assert seen == [TABLES]


def test_without_claims_there_are_no_records() -> None:
    assert judge((), TABLES) == []


def test_mean_of_a_policy_and_of_some_of_its_rows() -> None:
    assert policy_mean(ROWS, "min_yield", "a") == pytest.approx(0.375)
    assert policy_mean(ROWS, "min_yield", "a", load=1) == 0.5
    assert policy_mean(ROWS, "min_yield", "b", load=1) == 1.0


def test_a_claim_without_rows_does_not_hold() -> None:
    def check(tables: Tables) -> Verdict:
        mean = policy_mean(tables.rows, "min_yield", "a", load=3)
        return Verdict(max(0.0, mean) < 1.0, {"mean": mean})

    held = _claim(True, x=1.0)
    empty, other = judge((Claim("n", "", "", check, "why"), held), TABLES)
    assert empty["holds"] is False
    assert empty["numbers"] == {"rows to check it on": 0.0}
    assert empty["reason"] == "why"
    assert other["holds"] is True


def test_an_error_in_a_check_is_not_hidden() -> None:
    def check(_tables: Tables) -> Verdict:
        raise KeyError("load")

    with pytest.raises(KeyError):
        judge((Claim("c", "", "", check),), TABLES)


def test_missing_values_do_not_count() -> None:
    assert present_values(pl.Series([1.0, None, 3.0])).to_list() == [1.0, 3.0]
    with pytest.raises(NoRowsError):
        present_values(pl.Series([None, None], dtype=pl.Float64))


def test_a_claim_requires_rows() -> None:
    rows = pl.DataFrame({"x": [None]})
    require_rows(rows)
    with pytest.raises(NoRowsError):
        require_rows(rows.clear())


@pytest.mark.parametrize(
    ("verdict", "contradicted", "outcome"),
    [
        (Verdict(True, {}), "Figure 2 says otherwise.", Outcome.HOLDS),
        (Verdict(False, {}), "", Outcome.FAILS),
        (Verdict(False, {}), "Figure 2 says otherwise.", Outcome.CONTRADICTED),
        (Verdict(False, {}, "K", ("20",)), "", Outcome.DEPENDS),
        (Verdict(False, {}, "K", ("20",)), "Figure 2 does.", Outcome.DEPENDS),
    ],
)
def test_a_claim_has_one_of_four_outcomes(
    verdict: Verdict, contradicted: str, outcome: Outcome
) -> None:
    claim = Claim("c", "", "", lambda _tables: verdict, "why", contradicted)
    (record,) = judge((claim,), TABLES)
    assert record["outcome"] == outcome
    assert record["depends_on"] == ("K" if outcome is Outcome.DEPENDS else "")


def test_a_contradicted_claim_names_the_figure_before_the_reason() -> None:
    failed = Verdict(False, {})
    claim = Claim("c", "", "", lambda _tables: failed, "Why.", "Figure 2 says so.")
    (record,) = judge((claim,), TABLES)
    assert record["reason"] == "Figure 2 says so. Why."


def test_verdicts_over_a_parameter_become_rows_of_a_table() -> None:
    verdict = over("K", {20: Verdict(True, {"a": 1.0}), 40: Verdict(True, {"a": 2.0})})
    assert verdict == Verdict(True, {"K = 20": {"a": 1.0}, "K = 40": {"a": 2.0}})


def test_a_claim_that_holds_at_some_values_depends_on_the_parameter() -> None:
    low, high = Verdict(True, {"r": {"a": 1.0}}), Verdict(False, {"r": {"a": 2.0}})
    verdict = over("W", {0.5: low, 1.5: high})
    assert (verdict.holds, verdict.depends_on, verdict.holds_at) == (
        False,
        "W",
        ("0.5",),
    )
    assert verdict.numbers == {"W = 0.5, r": {"a": 1.0}, "W = 1.5, r": {"a": 2.0}}


def test_a_claim_that_holds_at_no_value_does_not_depend_on_it() -> None:
    assert over("K", {20: Verdict(False, {}), 40: Verdict(False, {})}).depends_on == ""
    with pytest.raises(NoRowsError):
        over("K", {})


def _mean_claim(least: float) -> Claim:
    def check(tables: Tables) -> Verdict:
        mean = policy_mean(tables.rows, "x", "a")
        return Verdict(mean > least, {"r": {"mean": mean}})

    return Claim("c", "", "", check)


def _drawn_tables() -> Tables:
    values = np.random.default_rng(7).normal(size=400)
    rows = {"policy": "a", "instance": range(400), "x": values}
    return Tables(pl.DataFrame(rows), pl.DataFrame())


def test_the_spread_of_a_mean_is_that_of_its_standard_error() -> None:
    tables = _drawn_tables()
    (record,) = judge((_mean_claim(-1.0),), tables, resamples=400)
    expected = 1.96 * tables.rows["x"].to_numpy().std() / 20
    assert record["spread"]["r"]["mean"] == pytest.approx(expected, rel=0.15)
    assert record["support"] == 1.0


def test_the_support_of_a_claim_at_the_edge_is_about_one_half() -> None:
    tables = _drawn_tables()
    edge = float(tables.rows["x"].to_numpy().mean())
    (record,) = judge((_mean_claim(edge),), tables, resamples=200)
    assert 0.4 < record["support"] < 0.6


def test_a_claim_does_not_hold_in_a_resample_without_its_rows() -> None:
    """Instance 0 is missing in about a third of the resamples: (19/20)^20 = 0.36."""

    def check(tables: Tables) -> Verdict:
        chosen = tables.rows.filter(pl.col("x") == 0)
        require_rows(chosen)
        return Verdict(True, {"n": chosen.height})

    rows = pl.DataFrame({"instance": range(20), "x": range(20)})
    tables = Tables(rows, pl.DataFrame())
    (record,) = judge((Claim("c", "", "", check),), tables, resamples=200)
    assert record["support"] == pytest.approx(1 - 0.95**20, abs=0.1)
    assert record["spread"]["n"] > 0


def test_an_error_in_a_check_is_not_hidden_in_a_resample() -> None:
    """The maximum of no values fails in about a third of the resamples."""

    def check(tables: Tables) -> Verdict:
        chosen = tables.rows.filter(pl.col("x") == 0)["x"].to_list()
        return Verdict(max(chosen) >= 0, {})

    rows = pl.DataFrame({"instance": range(20), "x": range(20)})
    with pytest.raises(ValueError, match="empty"):
        judge((Claim("c", "", "", check),), Tables(rows, pl.DataFrame()), resamples=50)
