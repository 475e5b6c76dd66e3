# SPDX-License-Identifier: MIT
"""Pictures of simulated policies."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model import Instance
from penstock.policies import get_policy
from penstock.sim import simulate
from penstock.web.pictures.simulated import simulated_pictures
from unit.samples import app, make, pair

LABELS = ("fcfs", "fair-share")


def pictures(instance: Instance, **changed: list[float]) -> dict[str, Any]:
    """Return the pictures of two policies; `changed` are other yields of a result."""
    policies = [get_policy(label) for label in LABELS]
    yields = {each: simulate(instance, each).yields.tolist() for each in LABELS}
    return simulated_pictures(instance, policies, yields | changed, steady=True)


def test_the_picture_of_a_known_schedule() -> None:
    picture = pictures(pair())["fcfs"]
    assert picture["times"] == [0.0, 2.0, 5.0, 8.0]
    assert picture["end"] == 10.0
    assert picture["bandwidth"] == [1.0] * 4
    assert picture["series"] == [
        {"job": ":a", "rates": [0, 1, 0, 0]},
        {"job": ":b", "rates": [0, 0, 1, 0]},
    ]
    assert picture["others"] == [0, 0, 0, 0]


def test_all_policies_show_the_same_applications_in_the_same_order() -> None:
    many = make(
        *(
            app(f"a{n}", ("work", 1.0), ("io", 0.1 + 0.01 * n), ("work", 99.0))
            for n in range(12)
        ),
        window=(0.0, 20.0),
    )
    shown = {
        label: [each["job"] for each in picture["series"]]
        for label, picture in pictures(many).items()
    }
    assert shown["fcfs"] == shown["fair-share"] == [f":a{n}" for n in range(11, 1, -1)]


def test_applications_that_are_not_shown_are_added_up() -> None:
    many = make(
        *(app(f"a{n}", ("work", 1.0), ("io", 1.0), ("work", 99.0)) for n in range(12)),
        window=(0.0, 20.0),
    )
    picture = pictures(many)["fair-share"]
    during = picture["times"].index(1.0)
    shown = sum(each["rates"][during] for each in picture["series"])
    assert picture["others"][during] == pytest.approx(2 / 12, rel=1e-3)
    assert shown + picture["others"][during] == pytest.approx(1.0, rel=1e-3)


def test_a_policy_that_now_reaches_other_yields_has_no_picture() -> None:
    assert list(pictures(pair(), fcfs=[1.0, 1.0])) == ["fair-share"]
