# SPDX-License-Identifier: MIT
"""The table of ``penstock compare``: means, marks, spreads and instances."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.analysis import Bound
from penstock.cli.simulation.comparison.table import comparison_text, print_cost
from penstock.experiments.study import Row
from penstock.policies import RECOMMENDED


def row(policy: str, instance: int = 0, **changes: Any) -> Row:
    """Return the result of a policy on an instance."""
    facts: dict[str, Any] = {
        "policy": policy,
        "instance": instance,
        "file": None,
        "pressure": 0.5,
        "bound": Bound(0.9, "flow"),
        "min_yield": 0.5,
        "efficiency": 0.6,
        "utilization": 0.7,
        "stretch": 2.0,
        "applications": ("climate", "genome"),
        "yields": [0.9, 0.5],
        "events": 1000,
        "seconds": 0.25,
    }
    return facts | changes


@pytest.fixture
def printed() -> Any:
    """Return a function that returns the lines that a comparison prints."""

    def lines(*rows: Row) -> list[str]:
        return comparison_text(rows, None).splitlines()

    return lines


def test_one_instance_names_the_worst_application(printed: Any) -> None:
    head, _, names, bound, line = printed(row("fcfs"))
    assert head == "mean of 1 instance, I/O pressure 0.500; * best policy"
    assert names.split() == [
        *("policy", "MinYield", "Efficiency", "Utilization", "Stretch", "worst")
    ]
    assert bound.split() == ["bound", "(any", "scheduler)", "0.9000"]
    assert line.split() == [
        "fcfs",
        "0.5000*",
        "0.6000*",
        "0.7000*",
        "2.0000*",
        "genome",
    ]


def test_a_run_without_delay_has_no_worst_application(printed: Any) -> None:
    assert printed(row("fcfs", yields=[1.0, 1.0]))[-1].split()[-1] == "-"


def test_policies_are_sorted_by_min_yield_and_the_best_is_marked(printed: Any) -> None:
    lines = printed(
        row("fcfs", min_yield=0.2, stretch=5.0, efficiency=0.8),
        row("fair-share", min_yield=0.7, stretch=1.5),
        row("set-10", min_yield=0.7, stretch=3.0),
    )[4:]
    cells = [line.split() for line in lines]
    assert [line[0] for line in cells] == ["fair-share", "set-10", "fcfs"]
    # Both of a tie are marked; the lowest stretch is the best.
    assert [line[1] for line in cells] == ["0.7000*", "0.7000*", "0.2000"]
    assert [line[2] for line in cells] == ["0.6000", "0.6000", "0.8000*"]
    assert [line[4] for line in cells] == ["1.5000*", "3.0000", "5.0000"]


def test_several_instances_have_means_and_a_spread(printed: Any) -> None:
    rows = [row("fcfs", n, min_yield=n / 10, pressure=n / 10) for n in range(11)]
    head, _, names, _, line = printed(*rows)
    assert head.startswith("mean of 11 instances, I/O pressure 0.500")
    assert "(10-90 %)" in names
    assert "worst" not in names
    assert line.split()[1:3] == ["0.5000*", "0.100-0.900"]


def test_a_bound_that_is_missing_on_one_instance_is_not_shown(printed: Any) -> None:
    lines = printed(row("fcfs", 0), row("fcfs", 1, bound=None))
    assert not any(line.startswith("bound") for line in lines)


def test_the_recommended_policy_has_a_mark_and_a_legend(printed: Any) -> None:
    lines = printed(row("fcfs"), row(RECOMMENDED, min_yield=0.8))
    assert lines[0].endswith("; * best policy, > recommended")
    assert [line.split()[0] for line in lines[3:] if ">" in line] == [RECOMMENDED]


def test_instances_of_files_are_listed_with_their_best_policy(printed: Any) -> None:
    lines = printed(
        row("fcfs", 0, file="a.json"),
        row("set-10", 0, file="a.json", min_yield=0.6),
        row("fcfs", 1, file="b.json", bound=None),
        row("set-10", 1, file="b.json", bound=None, min_yield=0.4),
    )
    assert [line.split() for line in lines[-2:]] == [
        ["a.json", "0.500", "0.9000", "0.6000", "set-10"],
        ["b.json", "0.500", "-", "0.5000", "fcfs"],
    ]


def test_at_most_twenty_instances_are_listed(printed: Any) -> None:
    lines = printed(*(row("fcfs", n, file=f"{n}.json") for n in range(23)))
    assert lines[-1] == "and 3 more instances (--json has all)"
    assert lines[-2].startswith("19.json ")


def test_the_cost_is_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    print_cost([row("fcfs"), row("fcfs", 1)])
    print_cost([])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "2 runs, 2,000 events, 0.50 s in the engine",
        "nothing was simulated: all results are from files",
    ]
