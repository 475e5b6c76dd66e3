# SPDX-License-Identifier: MIT
"""Parameters of what a user names, and finding it; kinds of their own to find."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from penstock.errors import InputError, UnknownNameError
from penstock.placement import ALLOCATION_REGISTRY, PLACEMENT_REGISTRY
from penstock.policies import POLICY_REGISTRY
from penstock.registry import (
    PAPERS,
    Parameter,
    Registry,
    TableRow,
    labelled,
    parameter_values,
)

# --- Parameters -------------------------------------------------------------------

PLAIN = Parameter("weight", "how heavy", 2.0)
WHOLE = Parameter("wide", "how many", 2, low=1)
SOME = Parameter("tick", "how often", 0.0, high=5.0, least=1e-9)
TIME = Parameter("delta", "how long", 60.0, unit="s", low=1.0)
VOLUME = Parameter("chunk", "how much", 1024.0, unit="bytes")
RATE = Parameter("floor", "how fast", 0.0, unit="bytes/s")
WORD = Parameter("mode", "which way", "slow", choices=("fast", "slow"))
ALL = (PLAIN, WHOLE, TIME, VOLUME, RATE, WORD)


@pytest.mark.parametrize(
    ("parameter", "text", "value"),
    [
        (PLAIN, "3", 3.0),
        (PLAIN, "0", 0.0),
        (SOME, "0", 0.0),
        (SOME, "1e-9", 1e-9),
        (SOME, "5", 5.0),
        (PLAIN, "1e-3", 0.001),
        (WHOLE, "07", 7),
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
        (WHOLE, "1.5", "wide: '1.5' is not a whole number (how many)"),
        (WHOLE, "", "wide: '' is not a whole number"),
        (WHOLE, "0", "wide: '0' is out of range (how many; at least 1)"),
        (
            SOME,
            "1e-10",
            "tick: '1e-10' is out of range (how often; 0 or at least 1e-09",
        ),
        (
            SOME,
            "7",
            "tick: '7' is out of range (how often; 0 or at least 1e-09, at most",
        ),
        (SOME, "inf", "tick: 'inf' is out of range"),
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


def test_a_whole_number_stays_one() -> None:
    assert type(WHOLE.parse("3")) is int
    assert type(PLAIN.parse("3")) is float


@given(st.floats(0, 1e300) | st.integers(1, 10**12))
def test_what_is_shown_is_read_as_the_same_value(value: float) -> None:
    parameter = WHOLE if isinstance(value, int) else PLAIN
    assert parameter.parse(parameter.show(value)) == value


def test_values_stand_in_the_order_of_declaration() -> None:
    values = parameter_values("mine", ALL, {"mode": "fast", "weight": "7"})
    assert list(values) == [parameter.name for parameter in ALL]
    assert list(values.values()) == [7.0, 2, 60.0, 1024.0, 0.0, 0.0]
    assert labelled("mine", ALL, values) == "mine:mode=fast,weight=7"
    assert labelled("mine", ALL, parameter_values("mine", ALL, {})) == "mine"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"wieght": "1"}, "mine: unknown parameter 'wieght' (did you mean 'weight'?"),
        ({"delta": "0"}, "mine: delta: '0' is out of range"),
    ],
)
def test_mistakes_name_the_owner(given: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parameter_values("mine", ALL, given)
    assert str(caught.value).startswith(message)


# --- Finding ----------------------------------------------------------------------

TOOLS = Registry(
    kind="tool",
    plural="tools",
    decides="what to do",
    package="my_tools",
    table={"saw": TableRow("saw", "Saw.", "papers/1 §1")},
    function="work",
    arguments=("wood",),
)
SAW = """
from penstock.registry import Parameter

PARAMETERS = (Parameter("teeth", "how many", 40), Parameter("speed", "how fast", 2.0))


def work(wood, teeth):
    return wood, teeth


def plane(wood, speed):
    return wood, speed
"""


@pytest.fixture(autouse=True)
def _tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make a package in the current folder; forget it afterwards."""
    (tmp_path / "my_tools").mkdir()
    (tmp_path / "my_tools" / "saw.py").write_text(SAW)
    (tmp_path / "my_tools" / "odd.py").write_text("import no_such_module_at_all\n")
    (tmp_path / "my_tools" / "exit.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "plane.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *(p for p in sys.path if p)])
    yield
    for name in [name for name in sys.modules if name.startswith("my_tools")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["saw", "my_tools.saw", "my_tools.saw.work"])
def test_an_entry_is_found_with_what_it_takes(name: str) -> None:
    found = TOOLS.find(f"{name}: teeth = 3 ")
    assert found.name == name
    assert found.function("oak", 3) == ("oak", 3)
    assert [parameter.name for parameter in found.declared] == ["teeth"]
    assert found.given == {"teeth": "3"}
    assert found.home.__name__ == "my_tools.saw"


def test_another_function_takes_other_parameters() -> None:
    found = TOOLS.find("my_tools.saw.plane")
    assert [parameter.name for parameter in found.declared] == ["speed"]


def test_parameters_that_are_not_given_by_name_are_all_there() -> None:
    bare = replace(TOOLS, arguments=("wood", "teeth"), by_name=False)
    assert len(bare.find("saw").declared) == 2
    with pytest.raises(InputError, match=r"tool saw: `work` must take \(wood\) \(see"):
        replace(TOOLS, by_name=False).find("saw")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("swa", "unknown tool 'swa' (did you mean 'saw'? known: saw)"),
        ("my_tools.none", "unknown tool 'my_tools.none' (known: saw)"),
        ("my_tools..saw", "unknown tool 'my_tools..saw' (known: saw)"),
        ("saw:teeth", "tool saw: 'teeth' is not a parameter (write name:key=value"),
        ("my_tools.odd", "tool my_tools.odd: importing my_tools.odd failed: ModuleNot"),
        ("my_tools.odd.work", "tool my_tools.odd.work: importing my_tools.odd.work f"),
        ("saw:teeth=3,teeth=3", "tool saw: teeth is given twice (leave one out)"),
        ("my_tools.exit", "tool my_tools.exit: importing my_tools.exit failed: System"),
        ("plane", "unknown tool 'plane' (for that of plane.py write plane.work)"),
        ("math.pi", "tool math.pi: no function `work` (see my_tools/_template.py)"),
        ("math.log", "tool math.log: `work` must take (wood) and declared parameters"),
    ],
)
def test_a_mistake_gets_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        TOOLS.find(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# --- The registries of penstock ---------------------------------------------------


@pytest.mark.parametrize(
    ("registry", "group"),
    [
        (POLICY_REGISTRY, "penstock.policies"),
        (ALLOCATION_REGISTRY, "penstock.allocations"),
        (PLACEMENT_REGISTRY, "penstock.placements"),
    ],
)
def test_groups_and_papers(registry: Registry, group: str) -> None:
    assert registry.group == group
    for row in registry.table.values():
        assert row.paper.split()[0] in (*PAPERS, "beyond")


def test_an_unknown_entry_is_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError):
        TOOLS.find("hammer")
