# SPDX-License-Identifier: MIT
"""The worst cases in examples/worst-cases give the numbers of their README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from adversary_search import evaluate

from penstock.model import read_instance

FOLDER = Path(__file__).parents[2] / "examples" / "worst-cases"
ROWS = re.findall(
    r"^\| \[(\S+)\]\((\S+\.json)\) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$",
    (FOLDER / "README.md").read_text(),
    flags=re.MULTILINE,
)


def test_every_file_has_a_row() -> None:
    assert sorted(row[1] for row in ROWS) == sorted(
        p.name for p in FOLDER.glob("*.json")
    )
    beyond = {"soft-deadline", "earliest-deadline", "short-over-loss"}
    assert beyond < {row[0] for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_numbers_are_those_of_the_instance(row: tuple[str, ...]) -> None:
    policy, file, *numbers, best = row
    case = evaluate(policy, read_instance(FOLDER / file))
    values = (case.min_yield, case.bound, case.distance, case.best_known)
    assert [float(n) for n in numbers] == [pytest.approx(v, abs=1e-4) for v in values]
    assert case.best_policy == best
    assert len(case.instance.applications) <= 4


@pytest.mark.parametrize("policy", ["soft-deadline", "earliest-deadline"])
def test_deadlines_are_never_as_far_off_as_greedy_yield(policy: str) -> None:
    """A short operation never waits for a long one because of a tie."""
    distances = {row[0]: float(row[4]) for row in ROWS}
    assert distances[policy] < 0.6 < distances["greedy-yield"]
