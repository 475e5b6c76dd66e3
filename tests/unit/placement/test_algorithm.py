# SPDX-License-Identifier: MIT
"""Finding an algorithm, setting its parameters, and checking what it returns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import InputError, PolicyError, UnknownNameError
from penstock.placement import (
    ALLOCATION_REGISTRY,
    ALLOCATIONS,
    PLACEMENT_REGISTRY,
    PLACEMENTS,
    get_allocation,
    get_placement,
    placement_for,
)
from unit.placement.problems import application, problem

OWN = """
from penstock.placement.algorithm import Parameter

NEEDS = frozenset()
PARAMETERS = (Parameter("wide", "how many", 2), Parameter("part", "of it", 0.5))


def allocate(problem, wide):
    return [wide] * len(problem.applications)


def place(problem, allocation, part):
    return [range(n) for n in allocation]
"""
TWO = problem(3, application("a", [1.0, 2.0, 3.0]), application("b", [1.0, 2.0, 3.0]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder the current one; forget its modules afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("my_"):
            del sys.modules[name]


# --- By name ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_every_allocation_is_found(name: str) -> None:
    algorithm = get_allocation(name)
    assert algorithm.name == algorithm.label == name
    assert algorithm.needs == ALLOCATIONS[name].needs


@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_placement_is_found(name: str) -> None:
    algorithm = get_placement(name)
    assert algorithm.name == algorithm.label == name
    assert algorithm.needs == PLACEMENTS[name].needs


@pytest.mark.parametrize(
    "text", ["random:seed=7", "random: seed = 7 ", "random:seed=07"]
)
def test_a_parameter_is_set_and_shown(text: str) -> None:
    assert get_allocation(text).label == "random:seed=7"
    assert get_placement(text).settings == {"seed": 7}
    assert get_allocation("random:seed=0").label == "random"


def test_every_allocation_has_a_placement_that_goes_with_it() -> None:
    chosen = {name: placement_for(name) for name in (*ALLOCATIONS, "my.own")}
    assert chosen.pop("mckp") == "exclusive"
    assert set(chosen.values()) == {"greedy-non-clairvoyant"}


def test_listing_the_algorithms_imports_nothing_heavy() -> None:
    program = (
        "import sys; import penstock.placement as p; print(*p.ALLOCATIONS);"
        "sys.exit(','.join({'numpy', 'numba', 'msgspec'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list(ALLOCATIONS)


# --- Mistakes ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["n-sis", "", "N-SYS", "greedy-clairvoyant"])
def test_an_unknown_allocation_lists_the_known(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_allocation(name)
    assert str(caught.value).startswith(f"unknown allocation {name!r}")
    assert ", ".join(sorted(ALLOCATIONS)) in str(caught.value)


def test_an_unknown_placement_lists_the_known() -> None:
    with pytest.raises(
        UnknownNameError, match="did you mean 'greedy-clairvoyant'"
    ) as task:
        get_placement("greedy-clairvoiant")
    assert ", ".join(sorted(PLACEMENTS)) in str(task.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("static:x", "allocation static: 'x' is not a parameter (write name:key="),
        ("static:x=1", "allocation static: unknown parameter 'x' (known: none)"),
        ("random:sead=1", "allocation random: unknown parameter 'sead' (did you mean"),
        ("random:seed=x", "allocation random: seed: 'x' is not a whole number"),
        ("random:seed=1.5", "allocation random: seed: '1.5' is not a whole number"),
        ("random:seed=-1", "allocation random: seed: '-1' is out of range"),
        ("random:seed=", "allocation random: seed: '' is not a whole number"),
        ("no.such.thing", "unknown allocation 'no.such.thing' (known: best-bandwidth"),
        (".t_cpu", "unknown allocation '.t_cpu' (did you mean 't-cpu'?"),
        ("a..b", "unknown allocation 'a..b' (known: best-bandwidth"),
        ("math.pi", "allocation math.pi: no function `allocate`"),
        ("math.nothing", "unknown allocation 'math.nothing' (known: "),
    ],
)
def test_a_mistake_gets_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        get_allocation(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# --- By dotted name ---------------------------------------------------------------


def test_an_algorithm_of_the_current_folder(folder: Path) -> None:
    (folder / "my_own.py").write_text(OWN)
    allocation = get_allocation("my_own.allocate:wide=3")
    assert allocation.label == "my_own.allocate:wide=3"
    assert allocation.allocate(TWO) == (3, 3)
    placement = get_placement("my_own.place:part=0.25")
    assert placement.settings == {"part": 0.25}
    assert placement.place(TWO, (1, 2)) == ((0,), (0, 1))


def test_a_module_inside_a_package(folder: Path) -> None:
    (folder / "my_package").mkdir()
    (folder / "my_package" / "my_own.py").write_text(OWN)
    assert get_allocation("my_package.my_own").allocate(TWO) == (2, 2)
    assert get_placement("my_package.my_own").place(TWO, [1, 1]) == ((0,), (0,))


def test_a_parameter_of_the_other_function_is_unknown(folder: Path) -> None:
    (folder / "my_own.py").write_text(OWN)
    with pytest.raises(InputError, match=r"unknown parameter 'part' \(known: wide\)"):
        get_allocation("my_own.allocate:part=1")


def test_a_module_declares_for_functions_that_it_imports(folder: Path) -> None:
    (folder / "my_pkg").mkdir()
    (folder / "my_pkg" / "my_own.py").write_text(OWN)
    text = OWN.partition("def allocate")[0].replace("2)", "3)")
    (folder / "my_pkg" / "my_again.py").write_text(
        f"{text}\nfrom my_pkg.my_own import allocate\n"
    )
    assert get_allocation("my_pkg.my_again").allocate(TWO) == (3, 3)
    assert get_allocation("my_pkg.my_again.allocate").allocate(TWO) == (2, 2)


# --- By entry point ---------------------------------------------------------------


def test_nothing_is_installed_by_default() -> None:
    assert ALLOCATION_REGISTRY.installed() == PLACEMENT_REGISTRY.installed() == {}


def test_an_installed_algorithm_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = folder / "my_dist-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-dist\n")
    (info / "entry_points.txt").write_text(
        "[penstock.allocations]\nwide = my_own\n"
        "[penstock.placements]\nfirst = my_own:place\n"
    )
    (folder / "my_own.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(folder))
    assert get_allocation("wide:wide=3").allocate(TWO) == (3, 3)
    assert get_placement("first").place(TWO, (1, 2)) == ((0,), (0, 1))
    with pytest.raises(UnknownNameError, match=r"unknown allocation 'first' .*, wide"):
        get_allocation("first")


# --- What is broken ---------------------------------------------------------------

_OK = "NEEDS = frozenset()\ndef allocate(problem): return 1\n"
BROKEN = {
    "missing import": ("import no_such_module_at_all\n", "no_such_module_at_all"),
    "syntax": ("def allocate(problem:\n", "importing my_pkg.my_broken failed: Syntax"),
    "raises": ("raise RuntimeError('boom')\n", "RuntimeError: boom"),
    "no function": ("NEEDS = frozenset()\n", "no function `allocate`"),
    "no needs": ("def allocate(problem): return 1\n", "NEEDS is not a frozenset"),
    "set": (_OK + "NEEDS = {'b_j'}\n", "NEEDS is not a frozenset of `Input`"),
    "text": (_OK + "NEEDS = frozenset({'b_j'})\n", "NEEDS is not a frozenset"),
    "parameters": (_OK + "PARAMETERS = ('x',)\n", "PARAMETERS is not a tuple"),
    "arguments": (
        "NEEDS = frozenset()\ndef allocate(problem, more): return 1\n",
        "`allocate` must take (problem) and declared parameters only",
    ),
    "no argument": (
        "NEEDS = frozenset()\ndef allocate(): return 1\n",
        "`allocate` must take (problem)",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_module_is_reported_in_one_line(folder: Path, case: str) -> None:
    text, message = BROKEN[case]
    (folder / "my_pkg").mkdir()
    (folder / "my_pkg" / "my_broken.py").write_text(text)
    with pytest.raises((InputError, PolicyError)) as caught:
        get_allocation("my_pkg.my_broken")
    assert str(caught.value).startswith("allocation my_pkg.my_broken: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# --- What comes out ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("[1]", "allocation: 1 entries for 2 applications"),
        ("[1, 0]", "applications[1]: 0 is not a number of targets for 'b'"),
        ("[4, 1]", "applications[0]: 4 is not a number of targets for 'a'"),
        ("[1, 1.5]", "[1, 1.5] is not a list of whole numbers"),
        ("None", "None is not a list of whole numbers"),
    ],
)
def test_a_broken_allocation_is_caught(
    folder: Path, returned: str, message: str
) -> None:
    text = f"NEEDS = frozenset()\ndef allocate(problem): return {returned}\n"
    (folder / "my_wrong.py").write_text(text)
    with pytest.raises(PolicyError) as caught:
        get_allocation("my_wrong.allocate").allocate(TWO)
    assert str(caught.value).startswith(f"allocation my_wrong.allocate: {message}")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("[(0,)]", "[(0,)] is not a list of targets for each application"),
        ("None", "None is not a list of targets for each application"),
        ("[(0,), 1]", "1 is not a list of whole numbers"),
        ("[(0,), (1,)]", "[1] is not 2 different targets of 0 to 2"),
        ("[(0,), (1, 1)]", "[1, 1] is not 2 different targets of 0 to 2"),
        ("[(0,), (1, 3)]", "[1, 3] is not 2 different targets of 0 to 2"),
        ("[(-1,), (1, 2)]", "[-1] is not 1 different targets of 0 to 2"),
    ],
)
def test_a_broken_placement_is_caught(
    folder: Path, returned: str, message: str
) -> None:
    text = f"NEEDS = frozenset()\ndef place(problem, allocation): return {returned}\n"
    (folder / "my_wrong.py").write_text(text)
    with pytest.raises(PolicyError) as caught:
        get_placement("my_wrong.place").place(TWO, (1, 2))
    assert str(caught.value) == f"placement my_wrong.place: {message}"


def test_an_unlawful_allocation_is_not_placed() -> None:
    with pytest.raises(InputError, match=r"applications\[1\]: 4 is not a number"):
        get_placement("greedy-non-clairvoyant").place(TWO, (1, 4))
