# SPDX-License-Identifier: MIT
"""Finding a policy by name, by dotted name, by entry point; and mistakes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from penstock.errors import InputError, PolicyError, UnknownNameError
from penstock.kernels import is_kernel
from penstock.policies import (
    ENTRY_POINTS,
    POLICIES,
    get_policy,
    installed_policies,
)

#: Installs a distribution with these entry points.
Announce: TypeAlias = Callable[[str], None]
PLAIN = """
from math import inf

from penstock.policies.policy import Parameter

PARAMETERS = (Parameter("patience", "how long", 3.0, unit="s"),)


def allocate(view, rates):
    return inf


def other(view, rates):
    return inf
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder the current one; forget its modules afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(tmp_path)) or name.startswith("my_"):
            del sys.modules[name]


# --- By name ----------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_of_the_table_is_found(name: str) -> None:
    policy = get_policy(name)
    assert policy.name == policy.label == name
    assert is_kernel(policy.allocate)


def test_parameters_are_set_and_others_keep_their_default() -> None:
    policy = get_policy("set-10:initial=weight,initial_weight=2.5")
    assert policy.parameters.tolist() == [2.0, 2.5, 0.0, 0.0]
    assert policy.label == "set-10:initial=weight,initial_weight=2.5"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("delta=48", 48.0),
        ("delta=2 min", 120.0),
        (" delta = 1.5h ", 5400.0),
        ("delta=250ms", 0.25),
        ("", 0.0),
    ],
)
def test_parameters_carry_units(text: str, seconds: float) -> None:
    policy = get_policy(f"periodic-greedy-yield:{text}")
    assert policy.parameters[0] == seconds


@pytest.mark.parametrize("text", ["fcfs:", "set-10:update=completion", "set-10:"])
def test_a_parameter_at_its_default_is_not_in_the_label(text: str) -> None:
    assert get_policy(text).label == text.partition(":")[0]


def test_labels_do_not_depend_on_the_order_of_the_parameters() -> None:
    one = get_policy("periodic-greedy-yield:clock=event,delta=3")
    other = get_policy("periodic-greedy-yield:delta=3,clock=event")
    assert one.label == other.label == "periodic-greedy-yield:clock=event,delta=3"


# --- Mistakes ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fcsf", "", "FCFS", "fair share", "no.such.module"])
def test_an_unknown_policy_lists_the_known(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_policy(name)
    assert str(caught.value).startswith(f"unknown policy {name!r}")
    for known in POLICIES:
        assert known in str(caught.value)


def test_an_unknown_policy_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'greedy-yield'"):
        get_policy("greedy-yeild")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fcfs:x", "policy fcfs: 'x' is not a parameter (write name:key=value"),
        ("fcfs:x=1", "policy fcfs: unknown parameter 'x' (known: none)"),
        ("set-10:initail=weight", "policy set-10: unknown parameter 'initail' (did"),
        (
            "set-10:initial=wait",
            "policy set-10: initial: unknown value 'wait' (did you mean 'weight'? "
            "known: auto, precedence, weight)",
        ),
        ("set-10:initial_weight=x", "policy set-10: initial_weight: 'x' is not a"),
        ("set-10:initial_weight=0", "policy set-10: initial_weight: '0' is out of"),
        ("set-10:initial_weight=1e308", "policy set-10: initial_weight: '1e308' is"),
        ("set-10:initial_weight=nan", "policy set-10: initial_weight: 'nan' is"),
        ("set-10:initial_weight=inf", "policy set-10: initial_weight: 'inf' is"),
        (
            "periodic-greedy-yield:delta=3 GiB",
            "policy periodic-greedy-yield: delta: '3 GiB' is not a number in s",
        ),
        (
            "periodic-greedy-yield:delta=-1",
            "policy periodic-greedy-yield: delta: '-1' is out of range",
        ),
        (
            "periodic-greedy-yield:delta=1e-30",
            "policy periodic-greedy-yield: delta: '1e-30' is out of range",
        ),
        ("periodic-greedy-yield:delta=", "policy periodic-greedy-yield: delta: ''"),
    ],
)
def test_a_bad_parameter_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        get_policy(text)
    assert str(caught.value).startswith(message)


# --- By dotted name ---------------------------------------------------------------


def test_a_module_of_the_current_folder(folder: Path) -> None:
    (folder / "my_package").mkdir()
    (folder / "my_package" / "my_policy.py").write_text(PLAIN)
    policy = get_policy("my_package.my_policy:patience=2 min")
    assert policy.name == "my_package.my_policy"
    assert policy.parameters.tolist() == [120.0]
    assert policy.label == "my_package.my_policy:patience=120"
    assert policy.allocate.__name__ == "allocate"


def test_a_function_of_a_module_has_the_parameters_of_the_module(folder: Path) -> None:
    (folder / "my_policy.py").write_text(PLAIN)
    policy = get_policy("my_policy.other")
    assert policy.allocate.__name__ == "other"
    assert policy.parameters.tolist() == [3.0]
    assert get_policy("my_policy.allocate:patience=4").parameters.tolist() == [4.0]


def test_a_kernel_is_found_by_its_dotted_name() -> None:
    policy = get_policy("penstock.policies.bandwidth_sharing.fcfs")
    assert policy.allocate is get_policy("fcfs").allocate


def test_parameters_may_be_left_out(folder: Path) -> None:
    (folder / "my_bare.py").write_text("def allocate(view, rates):\n    return 1.0\n")
    assert get_policy("my_bare.allocate").parameters.tolist() == []


BROKEN = {
    "missing_import": ("import no_such_module_at_all\n", "no_such_module_at_all"),
    "import_name": ("from math import no_such_name\n", "no_such_name"),
    "syntax": ("def allocate(view, rates:\n", "importing my_pkg.my_broken failed"),
    "name_error": ("allocate = no_such_name\n", "no_such_name"),
    "raises": ("raise RuntimeError('boom')\n", "boom"),
    "no_function": ("x = 1\n", "no function `allocate`"),
    "not_callable": ("allocate = 3\n", "no function `allocate`"),
    "one_argument": ("def allocate(view):\n    return 1.0\n", "take (view, rates)"),
    "three": ("def allocate(a, b, c):\n    return 1.0\n", "take (view, rates)"),
    "builtin": ("allocate = min\n", "take (view, rates)"),
    "parameters": (
        "PARAMETERS = 3\n\n\ndef allocate(view, rates):\n    return 1.0\n",
        "PARAMETERS",
    ),
    "parameters_text": (
        "PARAMETERS = ('x',)\n\n\ndef allocate(view, rates):\n    return 1.0\n",
        "PARAMETERS",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_module_is_reported_in_one_line(folder: Path, case: str) -> None:
    text, message = BROKEN[case]
    (folder / "my_pkg").mkdir()
    (folder / "my_pkg" / "my_broken.py").write_text(text)
    with pytest.raises((InputError, PolicyError)) as caught:
        get_policy("my_pkg.my_broken")
    assert str(caught.value).startswith("policy my_pkg.my_broken: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [".fcfs", "a..b", "nums.", ".", "..", "a/b.c"])
def test_a_name_that_is_no_module_is_unknown(folder: Path, name: str) -> None:
    with pytest.raises(InputError):
        get_policy(name)


def test_a_function_that_a_module_lacks_is_unknown(folder: Path) -> None:
    (folder / "my_policy.py").write_text(PLAIN)
    message = r"unknown policy 'my_policy\.nothing' \(my_policy\.py has no nothing"
    with pytest.raises(InputError, match=message):
        get_policy("my_policy.nothing")


# --- By entry point ---------------------------------------------------------------


@pytest.fixture
def announce(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Announce:
    """Install a distribution whose entry points announce policies."""

    def install(points: str) -> None:
        info = folder / "my_dist-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-dist\n")
        (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{points}\n")
        (folder / "my_announced.py").write_text(PLAIN)
        monkeypatch.syspath_prepend(str(folder))

    return install


def test_nothing_is_installed_by_default() -> None:
    assert installed_policies() == {}


@pytest.mark.parametrize("value", ["my_announced", "my_announced:allocate"])
def test_an_installed_policy_is_found(announce: Announce, value: str) -> None:
    announce(f"mine = {value}")
    assert list(installed_policies()) == ["mine"]
    policy = get_policy("mine:patience=5")
    assert policy.name == "mine"
    assert policy.label == "mine:patience=5"
    assert policy.parameters.tolist() == [5.0]


def test_an_installed_policy_is_listed_among_the_known(announce: Announce) -> None:
    announce("mine = my_announced")
    with pytest.raises(UnknownNameError, match="mine"):
        get_policy("nine")


def test_the_table_goes_before_installed_policies(announce: Announce) -> None:
    announce("fcfs = my_announced")
    assert is_kernel(get_policy("fcfs").allocate)


@pytest.mark.parametrize("value", ["no_such_module_at_all", "my_announced:nothing"])
def test_a_broken_entry_point_is_reported(announce: Announce, value: str) -> None:
    announce(f"mine = {value}")
    with pytest.raises(PolicyError, match="policy mine: importing "):
        get_policy("mine")
