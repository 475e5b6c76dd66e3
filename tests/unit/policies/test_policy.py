# SPDX-License-Identifier: MIT
"""Parameters of a policy, and binding values to them."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from penstock.errors import InputError, UnknownNameError
from penstock.policies.policy import Parameter, bind

PLAIN = Parameter("weight", "how heavy", 2.0)
TIME = Parameter("delta", "how long", 60.0, unit="s", low=1.0)
VOLUME = Parameter("chunk", "how much", 1024.0, unit="bytes")
RATE = Parameter("floor", "how fast", 0.0, unit="bytes/s")
WORD = Parameter("mode", "which way", "slow", choices=("fast", "slow"))
ALL = (PLAIN, TIME, VOLUME, RATE, WORD)


def _allocate(view, rates) -> float:
    return math.inf


@pytest.mark.parametrize(
    ("parameter", "text", "value"),
    [
        (PLAIN, "3", 3.0),
        (PLAIN, "0", 0.0),
        (PLAIN, "1e-3", 0.001),
        (TIME, "1", 1.0),
        (TIME, "2 min", 120.0),
        (VOLUME, "4 KiB", 4096.0),
        (RATE, "2 kB/s", 2000.0),
        (WORD, "fast", 0.0),
        (WORD, "slow", 1.0),
    ],
)
def test_values_arrive_in_base_units_and_words_as_positions(
    parameter, text, value
) -> None:
    assert parameter.parse(text) == value


@pytest.mark.parametrize(
    ("parameter", "text", "message"),
    [
        (PLAIN, "x", "weight: 'x' is not a number (how heavy)"),
        (PLAIN, "2 s", "weight: '2 s' is not a number"),
        (PLAIN, "-1", "weight: '-1' is out of range (how heavy; at least 0)"),
        (PLAIN, "nan", "weight: 'nan' is out of range"),
        (PLAIN, "inf", "weight: 'inf' is out of range"),
        (TIME, "0.5", "delta: '0.5' is out of range (how long; at least 1)"),
        (TIME, "nan", "delta: 'nan' is not a number in s"),
        (TIME, "3 B", "delta: '3 B' is not a number in s"),
        (VOLUME, "3 s", "chunk: '3 s' is not a number in bytes"),
        (RATE, "3 B", "floor: '3 B' is not a number in bytes/s"),
        (WORD, "Fast", "mode: unknown value 'Fast' (did you mean 'fast'?"),
        (WORD, "0", "mode: unknown value '0' (known: fast, slow)"),
    ],
)
def test_bad_values_are_said_so(parameter, text, message) -> None:
    with pytest.raises(InputError) as caught:
        parameter.parse(text)
    assert str(caught.value).startswith(message)


def test_defaults() -> None:
    policy = bind("mine", _allocate, ALL, {})
    assert policy.parameters.tolist() == [2.0, 60.0, 1024.0, 0.0, 1.0]
    assert policy.parameters.dtype == np.float64
    assert policy.label == policy.name == "mine"
    assert policy.allocate is _allocate


def test_given_values_stand_where_they_are_declared() -> None:
    policy = bind("mine", _allocate, ALL, {"mode": "fast", "weight": "7"})
    assert policy.parameters.tolist() == [7.0, 60.0, 1024.0, 0.0, 0.0]
    assert policy.label == "mine:mode=fast,weight=7"


@pytest.mark.parametrize("given", [{"delta": "60"}, {"delta": "1 min"}])
def test_a_default_written_out_leaves_the_label_alone(given) -> None:
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
        policy.name = "yours"
