# SPDX-License-Identifier: MIT
"""The page of worst cases: what is committed is what the script writes."""

from __future__ import annotations

from pathlib import Path

import find_worst_cases
from adversary_search import Search, WorstCase, evaluate

FOLDER = Path(__file__).parents[3] / "examples" / "worst-cases"


def _cases() -> list[WorstCase]:
    one = Search().instance((((0, 8),), ((0, 16),)))
    other = Search().instance((((0, 128),), ((0, 128),)))
    return [evaluate("fcfs", instance) for instance in (one, other)]


def test_the_committed_page_has_the_present_text(tmp_path: Path) -> None:
    find_worst_cases.write([], tmp_path)
    text = (tmp_path / "README.md").read_text().rstrip("\n")
    assert (FOLDER / "README.md").read_text().startswith(text)


def test_every_policy_has_an_instance() -> None:
    names = {path.stem for path in FOLDER.glob("*.json")}
    assert names == set(find_worst_cases.POLICIES)


def test_the_worst_instance_is_the_one_furthest_from_the_bound() -> None:
    cases = _cases()
    worst = find_worst_cases.worst("fcfs", [case.instance for case in cases])
    assert worst.distance == max(case.distance for case in cases)
    assert worst.distance > 0.1


def test_files_of_a_case(tmp_path: Path) -> None:
    case = _cases()[1]
    find_worst_cases.write([case], tmp_path)
    assert (tmp_path / "fcfs.json").is_file()
    row = (tmp_path / "README.md").read_text().splitlines()[-1]
    assert row.startswith(f"| [fcfs](fcfs.json) | {case.min_yield:.4f} |")
    assert row.endswith(f"| {case.best_policy} |")
