# SPDX-License-Identifier: MIT
"""Results of earlier comparisons: read back to the last bit, merged by instance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import InputError
from penstock.experiments.comparison import compare
from penstock.experiments.output.documents import comparison_document
from penstock.experiments.results import merged, policies_in_all, rows_of_result
from penstock.experiments.runners.executors import Inline
from penstock.experiments.source import Source
from penstock.experiments.study import Row
from penstock.model import write_instance
from penstock.policies import get_policy
from penstock.workloads import Synthetic

WORKLOAD = Synthetic(horizon=20_000.0, applications=6)
OUTCOME = ("min_yield", "efficiency", "utilization", "stretch", "yields", "events")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [str(tmp_path / f"{index}.json") for index in range(3)]
    for index, path in enumerate(paths):
        write_instance(WORKLOAD.instance(1, index), path)
    return paths


def rows_of(files: list[str], *policies: str, bounded: bool = True) -> list[Row]:
    chosen = [get_policy(policy) for policy in policies]
    return compare(Source.of_files(*files), chosen, Inline(), bounded=bounded)


def read_back(rows: list[Row], **changes: Any) -> list[Row]:
    """Return the rows after a journey through the JSON file."""
    document = json.loads(msgspec.json.encode(comparison_document(rows, {})))
    return rows_of_result({**document, **changes}, "r.json")


def facts(rows: list[Row]) -> list[list[Any]]:
    names = ("instance", "digest", "policy", "pressure", "window", "bound", *OUTCOME)
    return [[row[name] for name in names] for row in rows]


def test_several_files_give_the_bits_of_each_file_alone(files: list[str]) -> None:
    together = rows_of(files, "fcfs", "fair-share")
    apart = [
        {**row, "instance": number}
        for number, file in enumerate(files)
        for row in rows_of([file], "fcfs", "fair-share")
    ]
    assert facts(together) == facts(apart)
    assert [row["file"] for row in together] == [f for f in files for _ in range(2)]


def test_a_result_is_read_to_the_last_bit(files: list[str]) -> None:
    rows = rows_of(files, "fcfs", "fair-share")
    assert facts(read_back(rows)) == facts(rows)


def test_an_infinite_stretch_survives(files: list[str]) -> None:
    (row,) = rows_of(files[:1], "fcfs")
    (back,) = read_back([{**row, "stretch": float("inf")}])
    assert back["stretch"] == float("inf")


def test_policies_of_several_results_stand_side_by_side(files: list[str]) -> None:
    one, other = rows_of(files, "fcfs"), rows_of(files, "fair-share")
    labels = policies_in_all([*one, *other])
    assert labels == ["fcfs", "fair-share"]
    both = merged([*read_back(one), *read_back(other)], labels)
    assert facts(both) == facts(rows_of(files, "fcfs", "fair-share"))


def test_an_instance_that_occurs_twice_counts_once(files: list[str]) -> None:
    rows = rows_of(files, "fcfs")
    assert facts(merged([*rows, *read_back(rows)], ["fcfs"])) == facts(rows)


def test_a_policy_that_is_not_on_every_instance_is_not_common(
    files: list[str],
) -> None:
    rows = [*rows_of(files[:1], "fcfs", "fair-share"), *rows_of(files[1:], "fcfs")]
    assert policies_in_all(rows) == ["fcfs"]
    with pytest.raises(InputError, match="it has no result of policy fair-share"):
        merged(rows, ["fair-share"])


def test_results_that_contradict_each_other_are_refused(files: list[str]) -> None:
    rows = rows_of(files[:1], "fcfs")
    changed = [{**row, "min_yield": row["min_yield"] / 2} for row in rows]
    with pytest.raises(InputError, match="policy fcfs has another result here than"):
        merged([*rows, *changed], ["fcfs"])


def test_the_bound_of_one_result_is_used_for_all(files: list[str]) -> None:
    bounded = rows_of(files, "fcfs")
    unbounded = rows_of(files, "fair-share", bounded=False)
    both = merged([*unbounded, *bounded], ["fcfs", "fair-share"])
    assert all(row["bound"] for row in both)


@pytest.mark.parametrize(
    "instances", [[{"policies": {}}], [7], [{"index": "x", "policies": {}}]]
)
def test_a_damaged_result_is_refused(instances: list[Any]) -> None:
    with pytest.raises(
        InputError, match=r"r\.json: this result of penstock compare is"
    ):
        rows_of_result({"instances": instances}, "r.json")
