# SPDX-License-Identifier: MIT
"""Claims: cases, names, records of verdicts, and means over chosen rows."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from penstock.experiments.claims import (
    Claim,
    ClaimCase,
    NoRowsError,
    Tables,
    Verdict,
    case,
    claim_name,
    judge,
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


def _claim(holds: object, note: str = "", **numbers: float) -> Claim:
    verdict = Verdict(holds, numbers)  # type: ignore[arg-type]
    return Claim("c", "paper 0", "It is so.", lambda _tables: verdict, note)


def test_a_case_holds_the_arguments_of_the_check() -> None:
    made = case("low", "It is low.", note="why", policy="a", most=0.5)
    assert made == ClaimCase(
        "low", "It is low.", note="why", arguments={"policy": "a", "most": 0.5}
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
            "holds": True,
            "numbers": {"x": 1.0},
        }
    ]


def test_a_note_is_given_only_if_the_claim_fails() -> None:
    held, failed = judge((_claim(True, "why"), _claim(False, "why")), TABLES)
    assert "note" not in held
    assert failed["note"] == "why"


def test_numpy_values_become_plain_ones() -> None:
    (record,) = judge((_claim(np.bool_(True), x=np.float64(1 / 3), n=3),), TABLES)
    assert record["holds"] is True
    assert {type(value) for value in record["numbers"].values()} == {float}
    assert record["numbers"] == {"x": 0.333333, "n": 3.0}


def test_infinite_numbers_stay_infinite() -> None:
    (record,) = judge((_claim(True, x=math.inf),), TABLES)
    assert record["numbers"]["x"] == math.inf


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
    assert empty["note"] == "why"
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
