# SPDX-License-Identifier: MIT
"""A policy with the values of its parameters."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import pytest

from penstock.errors import InputError, UnknownNameError
from penstock.kernels import Floats
from penstock.policies import get_policy
from penstock.policies.policy import Knowledge, Parameter, Policy, bind
from penstock.policies.view import View
from penstock.registry import Lookup

PLAIN = Parameter("weight", "how heavy", 2.0)
TIME = Parameter("delta", "how long", 60.0, unit="s", low=1.0)
VOLUME = Parameter("chunk", "how much", 1024.0, unit="bytes")
RATE = Parameter("floor", "how fast", 0.0, unit="bytes/s")
WORD = Parameter("mode", "which way", "slow", choices=("fast", "slow"))
ALL = (PLAIN, TIME, VOLUME, RATE, WORD)


def _allocate(_view: View, _rates: Floats) -> float:
    return math.inf


def test_defaults() -> None:
    policy = bind("mine", _allocate, ALL, {})
    assert policy.parameters.tolist() == [2.0, 60.0, 1024.0, 0.0, 1.0]
    assert policy.parameters.typecode == "d"
    assert policy.label == policy.name == "mine"
    assert policy.allocate is _allocate


def test_given_values_stand_where_they_are_declared() -> None:
    policy = bind("mine", _allocate, ALL, {"mode": "fast", "weight": "7"})
    assert policy.parameters.tolist() == [7.0, 60.0, 1024.0, 0.0, 0.0]
    assert policy.label == "mine:mode=fast,weight=7"


@pytest.mark.parametrize("given", [{"delta": "60"}, {"delta": "1 min"}])
def test_a_default_written_out_leaves_the_label_alone(given: dict[str, str]) -> None:
    assert bind("mine", _allocate, ALL, given).label == "mine"


def test_unknown_parameters_list_the_known() -> None:
    with pytest.raises(UnknownNameError) as caught:
        bind("mine", _allocate, ALL, {"wieght": "1"})
    assert str(caught.value) == (
        "policy mine: unknown parameter 'wieght' (did you mean 'weight'? known: "
        "chunk, delta, floor, mode, weight)"
    )


def test_a_bad_value_names_policy_and_parameter() -> None:
    with pytest.raises(InputError, match="policy mine: delta: '0' is out of range"):
        bind("mine", _allocate, ALL, {"delta": "0"})


def test_policies_do_not_change() -> None:
    policy = bind("mine", _allocate, ALL, {})
    with pytest.raises(FrozenInstanceError):
        policy.name = "yours"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("fcfs", {}),
        ("set-10", {}),
        ("set-10:period=given", {Knowledge.PERIOD: "period"}),
        ("set-fair-share:period=given", {Knowledge.PERIOD: "period"}),
        ("share-priority:period=given", {Knowledge.PERIOD: "period"}),
        ("periodic-greedy-yield", {Knowledge.DEDICATED_EVENTS: "delta"}),
        ("periodic-greedy-yield:clock=event", {Knowledge.DEDICATED_EVENTS: "delta"}),
        ("periodic-greedy-yield:delta=1", {}),
    ],
)
def test_needs_depend_on_the_settings(text: str, needs: dict[Knowledge, str]) -> None:
    assert get_policy(text).needs == needs


@pytest.mark.parametrize(
    "needs", [("delta",), {"period": ("delta", 0.0)}, {Knowledge.PERIOD: "delta"}]
)
def test_needs_of_another_form_are_refused(needs: object) -> None:
    lookup = Lookup("mine", _allocate, SimpleNamespace(NEEDS=needs), ALL, {})
    with pytest.raises(InputError, match=r"^policy mine: NEEDS is not a dict"):
        Policy.bind(lookup)
