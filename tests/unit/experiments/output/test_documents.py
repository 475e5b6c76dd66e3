# SPDX-License-Identifier: MIT
"""The JSON document of a comparison: every key, of the right kind."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from penstock.analysis import Bound
from penstock.experiments.output.documents import bound_document, comparison_document
from penstock.experiments.study import METRICS, Row

OUTCOME = {
    "min_yield": float,
    "utilization": float,
    "efficiency": float,
    "set_utilization": float,
    "stretch": float,
    "io_slowdown": float,
    "yields": list,
    "events": int,
    "decisions": int,
    "seconds": float,
}


def _row(**changes: Any) -> Row:
    return {
        "instance": 3,
        "file": None,
        "digest": "abc",
        "pressure": 0.8,
        "window": (0.0, 10.0),
        "bound": Bound(0.75, "edf"),
        "applications": ("a", "b"),
        "policy": "fcfs",
        **dict.fromkeys(METRICS, 0.5),
        "yields": [0.5, 0.75],
        "events": 12,
        "decisions": 9,
        "seconds": 0.001,
        **changes,
    }


def _document(*rows: Row) -> dict[str, Any]:
    made = comparison_document(rows, {"version": "1", "command": "penstock"})
    document: dict[str, Any] = json.loads(msgspec.json.encode(made))
    return document


def test_every_key_and_its_kind() -> None:
    document = _document(_row(), _row(policy="set-10:update=post", stretch=1.5))
    assert set(document) == {"penstock", "provenance", "instances"}
    assert document["penstock"] == 1
    assert document["provenance"] == {"version": "1", "command": "penstock"}
    (instance,) = document["instances"]
    policies = instance.pop("policies")
    assert instance == {
        "index": 3,
        "digest": "abc",
        "pressure": 0.8,
        "window": [0.0, 10.0],
        "bound": {"min_yield": 0.75, "method": "edf"},
        "applications": ["a", "b"],
    }
    assert list(policies) == ["fcfs", "set-10:update=post"]
    for outcome in policies.values():
        assert list(outcome) == list(OUTCOME)
        assert {key: type(value) for key, value in outcome.items()} == OUTCOME
    assert policies["fcfs"]["yields"] == [0.5, 0.75]
    assert policies["fcfs"]["events"] == 12
    assert policies["set-10:update=post"]["stretch"] == 1.5


@pytest.mark.parametrize("name", ["stretch", "io_slowdown"])
def test_null_stands_for_infinity(name: str) -> None:
    document = _document(_row(**{name: math.inf}))
    assert document["instances"][0]["policies"]["fcfs"][name] is None


def test_without_a_bound_there_is_null() -> None:
    assert _document(_row(bound=None))["instances"][0]["bound"] is None


def test_an_instance_of_a_file_names_the_file() -> None:
    (instance,) = _document(_row(file="a/b.json"))["instances"]
    assert instance["file"] == "a/b.json"
    (instance,) = _document(_row())["instances"]
    assert "file" not in instance


def test_instances_keep_their_order() -> None:
    document = _document(*(_row(instance=index) for index in (0, 1, 2)))
    assert [i["index"] for i in document["instances"]] == [0, 1, 2]


def test_no_rows_are_no_instances() -> None:
    assert _document()["instances"] == []


def test_bounds_alone() -> None:
    assert bound_document(Bound(0.5, "flow")) == {"min_yield": 0.5, "method": "flow"}


def test_numbers_are_kept_to_the_last_bit() -> None:
    document = _document(_row(pressure=1 / 3, min_yield=0.1 + 0.2))
    assert document["instances"][0]["pressure"] == 1 / 3
    assert document["instances"][0]["policies"]["fcfs"]["min_yield"] == 0.1 + 0.2
