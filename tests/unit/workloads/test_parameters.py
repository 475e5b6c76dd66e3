# SPDX-License-Identifier: MIT
"""Parameters of workloads: names and symbols, ranges, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import pytest

from penstock.errors import InputError, UnknownNameError
from penstock.workloads import WORKLOADS, IOSets, Synthetic, get_workload
from penstock.workloads.parameters import (
    check_parameters,
    describe,
    parameter,
    parse_settings,
    range_of,
)


@dataclass(frozen=True)
class Sample:
    length: float = parameter(2.0, "ell", "how long", low=0.5)
    count: int = parameter(3, "n", "how many", low=0, high=9)

    def __post_init__(self) -> None:
        check_parameters(self)


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ([], {}),
        (["length=7"], {"length": 7.0}),
        (["ell=7.5", "n=4"], {"length": 7.5, "count": 4}),
        (["length=1e3"], {"length": 1000.0}),
    ],
)
def test_settings_by_name_or_symbol(settings: list[str], values: Any) -> None:
    assert parse_settings(Sample, settings) == values


@pytest.mark.parametrize("again", ["length=1", "ell=2"])
def test_a_parameter_is_given_once_under_whichever_name(again: str) -> None:
    with pytest.raises(InputError, match="length is given twice"):
        parse_settings(Sample, ["length=1", again])


def test_kinds_are_those_of_the_defaults() -> None:
    values = parse_settings(Sample, ["length=1", "count=1"])
    assert {k: type(v) for k, v in values.items()} == {"length": float, "count": int}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("length", "'length' is not a setting (write key=value)"),
        ("", "'' is not a setting"),
        ("lenght=1", "unknown workload key 'lenght' (did you mean 'length'?"),
        ("=1", "unknown workload key ''"),
        ("length=", "length: '' is not a number (how long)"),
        ("length=x", "length: 'x' is not a number"),
        ("n=2.5", "n: '2.5' is not a whole number (how many)"),
        ("n=", "n: '' is not a whole number"),
        ("n=1e2", "n: '1e2' is not a whole number"),
    ],
)
def test_an_invalid_setting_is_refused(setting: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_settings(Sample, [setting])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"length": 0.4}, "length"),
        ({"length": math.nan}, "length"),
        ({"length": math.inf}, "length"),
        ({"count": -1}, "count"),
        ({"count": 10}, "count"),
    ],
)
def test_a_value_out_of_range_is_refused(values: Any, place: Any) -> None:
    with pytest.raises(InputError, match="is out of range") as caught:
        Sample(**values)
    assert caught.value.where == place


def test_ranges_in_words() -> None:
    assert [range_of(item) for item in fields(Sample)] == ["at least 0.5", "0 to 9"]


def test_describe_has_a_line_per_parameter() -> None:
    assert describe(Sample) == [
        "length=2  how long; at least 0.5 [ell]",
        "count=3  how many; 0 to 9 [n]",
    ]


# --- The workloads ----------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS.values())
def test_defaults_are_in_range_and_symbols_differ(workload: Any) -> None:
    made = workload()
    symbols = [item.metadata["symbol"] for item in fields(made)]
    assert len(set(symbols)) == len(symbols)
    names = {item.name for item in fields(made)}
    clashes = {
        item.metadata["symbol"]
        for item in fields(made)
        if item.metadata["symbol"] in names - {item.name}
    }
    assert not clashes


@pytest.mark.parametrize(
    ("settings", "attribute", "value"),
    [
        (["W=0.5"], "pressure", 0.5),
        (["pressure=0.5"], "pressure", 0.5),
        (["nu=0.25"], "noise", 0.25),
        (["h=3000"], "horizon", 3000.0),
        (["m=6"], "applications", 6),
        (["n_small=5"], "n_small", 5),
        (["sigma=0"], "sigma", 0.0),
    ],
)
def test_symbols_of_the_synthetic_workload(
    settings: list[str], attribute: str, value: Any
) -> None:
    assert getattr(get_workload("synthetic", settings), attribute) == value


@pytest.mark.parametrize(
    ("settings", "attribute", "value"),
    [
        (["omega=0.5"], "stress", 0.5),
        (["n_H=7"], "n_high", 7),
        (["nu=0.25"], "noise", 0.25),
        (["h=30000"], "horizon", 30000.0),
        (["sigma=0.3"], "sigma", 0.3),
    ],
)
def test_symbols_of_the_io_sets_workload(
    settings: list[str], attribute: str, value: Any
) -> None:
    assert getattr(get_workload("io-sets", settings), attribute) == value


def test_get_workload_without_settings_is_the_default() -> None:
    assert get_workload("synthetic") == Synthetic()
    assert get_workload("io-sets") == IOSets()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("synthetic:horizon=9", "--set horizon=9"),
        ("io-sets:a=1,b=2", "--set a=1 --set b=2"),
        ("synthetic:", "--set KEY=VALUE"),
    ],
)
def test_parameters_in_the_name_of_a_workload_are_refused_with_a_hint(
    name: str, options: str
) -> None:
    with pytest.raises(InputError) as caught:
        get_workload(name)
    assert caught.value.remedy.startswith(f"give parameters with {options}, in Python ")


def test_an_unknown_workload_lists_the_known() -> None:
    with pytest.raises(UnknownNameError, match="unknown workload 'synthetik'") as e:
        get_workload("synthetik")
    for name in WORKLOADS:
        assert name in str(e.value)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("synthetic", "W=-0.1"),
        ("synthetic", "m=2"),
        ("synthetic", "n_small=-2"),
        ("synthetic", "nu=1.5"),
        ("synthetic", "sigma=-1"),
        ("synthetic", "h=0"),
        ("synthetic", "h=nan"),
        ("synthetic", "n_small=41"),
        ("io-sets", "n_H=41"),
        ("io-sets", "n_H=-1"),
        ("io-sets", "h=9000"),
        ("io-sets", "omega=-1"),
        ("io-sets", "nu=2"),
    ],
)
def test_values_out_of_range_are_refused(name: str, setting: str) -> None:
    with pytest.raises(InputError, match="out of range"):
        get_workload(name, [setting])
