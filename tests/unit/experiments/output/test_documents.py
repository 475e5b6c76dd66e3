# SPDX-License-Identifier: MIT
"""The JSON document of a comparison: every key, of the right kind."""

from __future__ import annotations

import json
import math

import msgspec
import pytest

from penstock.analysis import Bound, Metrics
from penstock.experiments.compare import InstanceComparison, PolicyOutcome
from penstock.experiments.output.documents import bound_document, comparison_document

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


def _outcome(**changes: float) -> PolicyOutcome:
    values = dict.fromkeys(Metrics.__dataclass_fields__, 0.5)
    return PolicyOutcome(Metrics(**{**values, **changes}), (0.5, 0.75), 12, 9, 0.001)


def _document(*reports: InstanceComparison) -> dict:
    made = comparison_document(reports, {"version": "1", "command": "penstock"})
    return json.loads(msgspec.json.encode(made))


def test_every_key_and_its_kind() -> None:
    bound = Bound(0.75, "edf")
    outcomes = {"fcfs": _outcome(), "set-10:update=post": _outcome(stretch=1.5)}
    found = _document(
        InstanceComparison(3, 0.8, (0.0, 10.0), "abc", bound, ("a", "b"), outcomes)
    )
    assert set(found) == {"penstock", "provenance", "instances"}
    assert found["penstock"] == 1
    assert found["provenance"] == {"version": "1", "command": "penstock"}
    (instance,) = found["instances"]
    policies = instance.pop("policies")
    assert instance == {
        "index": 3,
        "digest": "abc",
        "pressure": 0.8,
        "window": [0.0, 10.0],
        "bound": {"min_yield": 0.75, "method": "edf"},
        "applications": ["a", "b"],
    }
    assert list(policies) == list(outcomes)
    for outcome in policies.values():
        assert {key: type(value) for key, value in outcome.items()} == OUTCOME
    assert policies["fcfs"]["yields"] == [0.5, 0.75]
    assert policies["fcfs"]["events"] == 12
    assert policies["set-10:update=post"]["stretch"] == 1.5


@pytest.mark.parametrize("name", ["stretch", "io_slowdown"])
def test_null_stands_for_infinity(name: str) -> None:
    outcomes = {"fcfs": _outcome(**{name: math.inf})}
    found = _document(InstanceComparison(0, outcomes=outcomes))
    assert found["instances"][0]["policies"]["fcfs"][name] is None


def test_without_a_bound_there_is_null() -> None:
    found = _document(InstanceComparison(0))
    assert found["instances"][0]["bound"] is None
    assert found["instances"][0]["policies"] == {}


def test_instances_keep_their_order() -> None:
    found = _document(
        InstanceComparison(0), InstanceComparison(1), InstanceComparison(2)
    )
    assert [i["index"] for i in found["instances"]] == [0, 1, 2]


def test_bounds_alone() -> None:
    assert bound_document(Bound(0.5, "flow")) == {"min_yield": 0.5, "method": "flow"}


def test_numbers_are_kept_to_the_last_bit() -> None:
    outcomes = {"fcfs": _outcome(min_yield=0.1 + 0.2)}
    found = _document(InstanceComparison(0, pressure=1 / 3, outcomes=outcomes))
    assert found["instances"][0]["pressure"] == 1 / 3
    assert found["instances"][0]["policies"]["fcfs"]["min_yield"] == 0.1 + 0.2
