# SPDX-License-Identifier: MIT
"""The JSON document has the agreed keys, and its numbers fit together."""

from __future__ import annotations

import json

import pytest

from penstock.advice.documents import advice_document, roles_of_policies
from penstock.advice.owners import advice_for_owners
from penstock.advice.recommendation import recommend
from penstock.advice.scenarios import Uncertainty, draw_scenarios
from penstock.policies import get_policy
from unit.samples import pair, steady_three


def test_the_document_has_the_agreed_keys() -> None:
    scenarios = draw_scenarios([steady_three()], 4, Uncertainty(), 1)
    result = recommend(scenarios, "fcfs", ["fair-share", "soft-deadline"])
    owners = advice_for_owners(scenarios[0], get_policy(result.policy))
    document = advice_document(result, owners, ["B"], {"version": "1"})
    json.dumps(document, allow_nan=False)
    keys = {"penstock", "verdict", "policy", "now", "advised", "bound"}
    assert keys | {"applications", "reasons"} <= set(document)
    assert set(document["now"]) == {"policy", "min_yield", "efficiency"}
    low, high = document["advised"]["interval"]
    assert low <= document["advised"]["min_yield"] <= high
    names = [job["name"] for job in document["applications"]]
    assert names == [a.name for a in scenarios[0].applications]
    for job in document["applications"]:
        assert set(job) == {"name", "yield_now", "yield_advised", "advice"}


def test_a_policy_that_is_kept_is_advised_with_its_own_numbers() -> None:
    result = recommend([pair()], "fcfs", ["fair-share"])
    document = advice_document(result, {}, [], {})
    assert document["policy"] == "fcfs"
    assert document["advised"]["min_yield"] == document["now"]["min_yield"]
    for job in document["applications"]:
        assert job["yield_now"] == job["yield_advised"]


@pytest.mark.parametrize(
    ("verdict", "roles"),
    [
        ("change", {"fcfs": "now", "soft-deadline": "advised"}),
        ("thin-evidence", {"fcfs": "now", "soft-deadline": "candidate"}),
    ],
)
def test_tables_name_the_role_of_a_policy(verdict: str, roles: dict[str, str]) -> None:
    advice = {
        "verdict": verdict,
        "policy": "soft-deadline" if verdict == "change" else "fcfs",
        "now": {"policy": "fcfs"},
        "gain": {"policy": "soft-deadline"},
    }
    assert roles_of_policies(advice) == roles
    alone = advice | {"verdict": "keep", "gain": {"policy": "fcfs"}}
    assert roles_of_policies(alone) == {"fcfs": "now"}
