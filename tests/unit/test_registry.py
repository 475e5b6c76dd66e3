# SPDX-License-Identifier: MIT
"""Parameters of plug-ins, plug-ins with settings, and how a registry finds them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from penstock.errors import (
    InputError,
    PolicyError,
    UnavailableError,
    UnknownNameError,
    reason_of,
)
from penstock.placement import ALLOCATION_REGISTRY, PLACEMENT_REGISTRY
from penstock.policies import POLICY_REGISTRY
from penstock.registry import (
    PAPERS,
    BoundPlugin,
    Lookup,
    Parameter,
    Registry,
    Setting,
    TableRow,
    call_plugin,
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
        (WORD, "fast", "fast"),
        (WORD, "slow", "slow"),
    ],
)
def test_values_arrive_in_base_units_and_words_stay_words(
    parameter: Parameter, text: str, value: Setting
) -> None:
    assert parameter.parse(text) == value
    assert parameter.parse(parameter.show(value)) == value


def test_compiled_code_gets_the_position_of_a_word() -> None:
    assert [WORD.number(word) for word in ("fast", "slow")] == [0.0, 1.0]
    assert type(WHOLE.number(3)) is float
    assert TIME.number(2.5) == 2.5


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
def test_a_bad_value_gets_a_message(
    parameter: Parameter, text: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        parameter.parse(text)
    assert str(caught.value).startswith(message)


def test_a_whole_number_stays_one() -> None:
    assert type(WHOLE.parse("3")) is int
    assert type(PLAIN.parse("3")) is float


@given(st.floats(0, 1e300) | st.integers(1, 10**12))
def test_a_printed_value_is_read_as_the_same_value(value: float) -> None:
    parameter = WHOLE if isinstance(value, int) else PLAIN
    assert parameter.parse(parameter.show(value)) == value


# --- Bound plug-ins -----------------------------------------------------------------


class Tool(BoundPlugin):
    """A kind of plug-in of its own."""

    KIND = "tool"


def returns_all(*arguments: object, **settings: object) -> tuple[object, ...]:
    """Return what it is called with."""
    return (*arguments, settings)


def bound(
    given: dict[str, str], function: Callable[..., object] = returns_all
) -> BoundPlugin:
    """Return a tool with parameters of every kind."""
    return Tool.bind(Lookup("mine", function, None, ALL, given))


def test_settings_stand_in_the_order_of_declaration() -> None:
    tool = bound({"mode": "fast", "weight": "7"})
    assert list(tool.settings) == [parameter.name for parameter in ALL]
    assert list(tool.settings.values()) == [7.0, 2, 60.0, 1024.0, 0.0, "fast"]
    assert tool.given == {"mode", "weight"}


def test_the_label_has_what_is_not_at_its_default() -> None:
    tool = bound({"mode": "fast", "weight": "7", "delta": "1 min"})
    assert tool.label == str(tool) == "mine:mode=fast,weight=7"
    assert tool.title == "tool mine:mode=fast,weight=7"
    assert bound({}).label == "mine"
    assert bound({"mode": "slow"}).label == "mine"


def test_a_call_passes_settings_by_name() -> None:
    *arguments, settings = bound({"wide": "3"}).call("oak", 5)
    assert arguments == ["oak", 5]
    assert settings == {
        "weight": 2.0,
        "wide": 3,
        "delta": 60.0,
        "chunk": 1024.0,
        "floor": 0.0,
        "mode": "slow",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"wieght": "1"},
            "tool mine: unknown parameter 'wieght' (did you mean 'weight'?",
        ),
        ({"delta": "0"}, "tool mine: delta: '0' is out of range"),
    ],
)
def test_a_bad_setting_names_the_plugin(given: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        bound(given)
    assert str(caught.value).startswith(message)


def test_bound_plugins_are_compared_by_value() -> None:
    assert bound({}) == bound({})
    assert bound({}) != bound({"wide": "3"})


def raising(error: BaseException) -> Callable[..., object]:
    """Return a function that raises `error`."""

    def fail(**_settings: object) -> object:
        raise error

    return fail


@pytest.mark.parametrize(
    "error", [KeyError("x"), RuntimeError("x"), SystemExit(3), GeneratorExit("x")]
)
def test_an_exception_of_a_plugin_becomes_a_policy_error(error: BaseException) -> None:
    with pytest.raises(PolicyError) as caught:
        bound({"wide": "3"}, raising(error)).call()
    assert caught.value.what == f"tool mine:wide=3 failed: {reason_of(error)}"
    assert re.fullmatch(r"correct test_registry\.py line \d+", caught.value.remedy)
    assert caught.value.__cause__ is error


def test_a_failure_without_foreign_code_names_no_line() -> None:
    with pytest.raises(PolicyError, match=r"^mine failed: TypeError: .*its code\)$"):
        call_plugin("mine failed", len, 3)


@pytest.mark.parametrize(
    "error", [InputError("no"), UnavailableError("later"), KeyboardInterrupt()]
)
def test_errors_of_penstock_and_ctrl_c_pass_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        call_plugin("mine failed", raising(error))
    assert caught.value is error


# --- Finding ----------------------------------------------------------------------

TOOLS = Registry(
    kind="tool",
    plural="tools",
    decides="what to do",
    package="my_tools",
    table={"saw": TableRow("saw", "Saw.", "bandwidth sharing, section 1")},
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
    entry = TOOLS.find(f"{name}: teeth = 3 ")
    assert entry.name == name
    assert entry.function("oak", 3) == ("oak", 3)
    assert [parameter.name for parameter in entry.declared] == ["teeth"]
    assert entry.given == {"teeth": "3"}
    assert entry.module.__name__ == "my_tools.saw"


def test_another_function_takes_other_parameters() -> None:
    entry = TOOLS.find("my_tools.saw.plane")
    assert [parameter.name for parameter in entry.declared] == ["speed"]


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
        ("plane", "unknown tool 'plane' (to use plane.py write plane.work)"),
        ("math.pi", "tool math.pi: no function `work` (see my_tools/_template.py)"),
        ("math.log", "tool math.log: `work` must take (wood) and declared parameters"),
    ],
)
def test_a_mistake_gets_one_line(text: str, message: str) -> None:
    with pytest.raises((InputError, PolicyError)) as caught:
        TOOLS.find(text)
    assert isinstance(caught.value, PolicyError) == ("importing" in message)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# --- The registries of penstock ---------------------------------------------------


@pytest.mark.parametrize(
    ("plugins", "group"),
    [
        (POLICY_REGISTRY, "penstock.policies"),
        (ALLOCATION_REGISTRY, "penstock.allocations"),
        (PLACEMENT_REGISTRY, "penstock.placements"),
    ],
)
def test_groups_and_papers(plugins: Registry, group: str) -> None:
    assert plugins.group == group
    for row in plugins.table.values():
        assert row.paper.partition(", section")[0] in (*PAPERS, "beyond the papers")


def test_an_unknown_entry_is_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError):
        TOOLS.find("hammer")
