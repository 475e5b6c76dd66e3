# SPDX-License-Identifier: MIT
"""``penstock compare --problem``: allocations and placements side by side.

The problem can be solved by hand. Two equal applications on two targets compute for
10 s and write 10 GiB, at 1 GiB/s on one target and at 2 GiB/s on two. Either each has
one target (twice as slow as its best, no waiting), or both share two targets (each
waits as long as it writes): the slowdown is 2, as 2 + 0 or as 1 + 1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.placement import ALLOCATIONS, PLACEMENTS

PROBLEM = {
    "penstock": 1,
    "resources": 2,
    "compute_nodes": 2,
    "applications": [
        {
            "name": name,
            "nodes": 1,
            "bandwidth": ["1 GiB/s", "2 GiB/s"],
            "phases": [["work", "10 s"], ["io", "10 GiB"]] * 3,
        }
        for name in ("a", "b")
    ],
}
ALONE = ("--allocation", "static", "--placement", "exclusive")
SHARED = ("--allocation", "best-bandwidth", "--placement", "greedy-clairvoyant")


@pytest.fixture
def problem(tmp_path: Path) -> str:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(PROBLEM))
    return str(path)


def _output(capsys: pytest.CaptureFixture[str], problem: str, *words: str) -> str:
    assert main(["compare", "--problem", problem, *words]) == 0
    return capsys.readouterr().out


def _error(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["compare", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        # Slowdown = rho_io + rho_con; spread; idle time; I/O-load.
        (ALONE, ["2.0000", "2.0000", "0.0000", "0.0000", "0.5000", "0.5000"]),
        (SHARED, ["2.0000", "1.0000", "1.0000", "0.0000", "0.5000", "0.6667"]),
    ],
    ids=["alone", "shared"],
)
def test_the_numbers_of_the_table(
    problem: str,
    words: tuple[str, ...],
    numbers: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = _output(capsys, problem, *words).splitlines()
    assert lines[:2] == [
        "2 targets, 2 applications",
        "fair-share on every target, until the first application ends",
    ]
    assert lines[-1].split() == [words[1], words[3], *numbers]


def test_the_policy_has_a_column_only_if_there_are_several(
    problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = _output(capsys, problem, *ALONE, "--policy", "fcfs").splitlines()
    assert one[3].split()[:3] == ["allocation", "placement", "Mean-I/O-SlowDown"]
    words = ("--policy", "fcfs", "--policy", "fair-share")
    two = _output(capsys, problem, *ALONE, *words).splitlines()
    assert two[3].split()[:3] == ["allocation", "placement", "policy"]
    assert sorted(line.split()[2] for line in two[4:]) == ["fair-share", "fcfs"]


def test_refused_combinations_are_listed_by_reason(
    problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--allocation", "best-bandwidth", "--allocation", "t-cpu")
    text = _output(capsys, problem, *words)
    assert "\nnot best-bandwidth + exclusive, t-cpu + exclusive:\n  placement" in text
    assert text.count("4 targets of their own, but there are 2") == 1


def test_all_combinations_are_compared_by_default(
    problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document: dict[str, Any] = json.loads(_output(capsys, problem, "--json", "-"))
    rows = document["combinations"] + document["refusals"]
    pairs = [(row["allocation"], row["placement"]) for row in rows]
    assert sorted(pairs) == sorted((a, p) for a in ALLOCATIONS for p in PLACEMENTS)
    assert document["provenance"]["problem"] == problem


def test_the_table_is_printed_although_a_file_is_written(
    problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    text = _output(capsys, problem, *ALONE, "--json", str(path))
    (row,) = json.loads(path.read_text())["combinations"]
    assert text.splitlines()[-1].split()[-1] == f"{row['io_load']:.4f}"


def test_no_combination_at_all_is_an_error_with_the_first_reason(
    problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--allocation", "best-bandwidth", "--placement", "exclusive")
    assert _error(capsys, "--problem", problem, *words).startswith(
        "penstock: none of 1 combinations can be simulated; "
        "best-bandwidth + exclusive: placement exclusive: the allocation gives"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seed", "3"), "--seed cannot be used with --problem"),
        (("--no-bound",), "--no-bound cannot be used with --problem"),
        (("--plot", "x.svg"), "--plot cannot be used with --problem"),
        ((*ALONE, "--allocation", "static"), "allocation 'static' is given twice"),
        ((*ALONE, "--placement", "none"), "unknown placement 'none'"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_options_of_instances_and_bad_names_are_refused(
    problem: str,
    words: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert message in _error(capsys, "--problem", problem, *words)


def test_allocations_need_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    message = _error(capsys, "--allocation", "static")
    assert "--allocation cannot be used without --problem" in message
