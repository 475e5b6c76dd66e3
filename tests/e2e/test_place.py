# SPDX-License-Identifier: MIT
"""``penstock place`` and ``penstock compare --problem`` as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.cli import main
from penstock.model import read_problem
from penstock.placement import ALLOCATIONS, PLACEMENTS

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
EXAMPLE = Path(__file__).parents[2] / "examples" / "problem.json"

Attempt = Callable[..., subprocess.CompletedProcess[str]]


def _content(resources: int = 1) -> dict[str, Any]:
    """Return two applications of 2 s of work and 3 s of I/O each."""
    phases = [["work", 2], ["io", 3]]
    return {
        "penstock": 1,
        "resources": resources,
        "compute_nodes": 4,
        "applications": [
            {"name": name, "nodes": 1, "phases": phases, "bandwidth": [1]}
            for name in ("a", "b")
        ],
    }


@pytest.fixture
def pair(tmp_path: Path) -> str:
    """Write a problem whose results are known by hand; return its name."""
    (tmp_path / "pair.json").write_text(json.dumps(_content()))
    return "pair.json"


@pytest.fixture
def attempt(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Attempt:
    """Return a function that runs a command in this process, in the test's folder."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = int(stop.code or 0)
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess([*map(str, arguments)], status, out, err)

    return run


def _done(done: subprocess.CompletedProcess[str]) -> str:
    """Return the standard output of a command, which must have succeeded."""
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


# --- place ------------------------------------------------------------------------


def test_json_on_standard_output_is_one_document_and_nothing_else(
    tmp_path: Path, pair: str
) -> None:
    done = subprocess.run(
        [PENSTOCK, "place", pair, "--simulate", "--json", "-"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(_done(done)) == {
        "penstock": 1,
        "provenance": {
            "version": version("penstock"),
            "command": "penstock place pair.json --simulate --json -",
            "problem": "pair.json",
            "allocation": "t-cpu",
            "placement": "greedy-non-clairvoyant",
            "policy": "fair-share",
        },
        "allocation": {"a": 1, "b": 1},
        "placement": {"a": [0], "b": [0]},
        "io_load": pytest.approx(2 * 3 / 5),
        # Both post at 2, share the target, and end at 8.
        "metrics": {
            "mean_io_slowdown": 2.0,
            "rho_io": 1.0,
            "rho_con": 1.0,
            "io_spread": 0.0,
            "machine_idletime": pytest.approx(12 / (8 * 4)),
            "slowdowns": {"a": 2.0, "b": 2.0},
        },
    }


def test_the_table_shows_targets_and_slowdowns_of_every_application(
    attempt: Attempt, pair: str
) -> None:
    text = _done(attempt("place", pair, "--simulate", "--json", "out.json"))
    assert text == (
        "t-cpu + greedy-non-clairvoyant: 1 target, I/O-load 1.200\n"
        "\n"
        "application  on targets  n  slowdown  = rho_io  + rho_con  time in I/O\n"
        "a            0           1     2.000     1.000      1.000          6 s\n"
        "b            0           1     2.000     1.000      1.000          6 s\n"
        "\n"
        "Mean-I/O-SlowDown 2.0000 = rho_io 1.0000 + rho_con 1.0000\n"
        "I/O-spread 0.0000, Machine-Idletime 0.3750\n"
        "fair-share on every target, for 8 s: until the first application ends\n"
    )
    assert json.loads(Path("out.json").read_text())["metrics"]["rho_con"] == 1.0


def test_incomplete_operations_are_reported(tmp_path: Path, attempt: Attempt) -> None:
    content = _content()
    content["applications"][1]["phases"] = [["work", 2], ["io", 30]]
    (tmp_path / "long.json").write_text(json.dumps(content))
    text = _done(attempt("place", "long.json", "--simulate"))
    assert text.endswith("operation by then: the part that was done counts\n")


def test_without_simulation_there_are_no_metrics(attempt: Attempt) -> None:
    text = _done(attempt("place", EXAMPLE, "--json", "out.json"))
    lines = text.splitlines()
    assert lines[0].startswith("t-cpu + greedy-non-clairvoyant: 6 targets, I/O-load 0.")
    assert lines[2].split() == ["application", "on", "targets", "n"]
    assert "climate       0-5         6" in lines
    assert "fusion        0-2,5       4" in lines
    document = json.loads(Path("out.json").read_text())
    assert document["metrics"] is None
    assert "policy" not in document["provenance"]
    problem = read_problem(EXAMPLE)
    assert list(document["allocation"]) == [a.name for a in problem.applications]
    assert document["io_load"] == problem.io_load(list(document["allocation"].values()))
    for name, targets in document["placement"].items():
        assert len(set(targets)) == document["allocation"][name]


def test_mckp_comes_with_its_own_placement(attempt: Attempt) -> None:
    plain = _done(attempt("place", EXAMPLE, "--allocation", "mckp"))
    assert plain.startswith("mckp + exclusive: ")
    mixed = ("--allocation", "mckp", "--placement", "random:seed=2")
    assert _done(attempt("place", EXAMPLE, *mixed)).startswith("mckp + random:seed=2: ")


def test_a_policy_shares_every_target(attempt: Attempt) -> None:
    options = ("--simulate", "--json", "-", "--policy")
    fair, first = (
        json.loads(_done(attempt("place", EXAMPLE, *options, policy)))
        for policy in ("fair-share", "greedy-yield")
    )
    assert fair["placement"] == first["placement"]
    assert fair["metrics"]["rho_con"] != first["metrics"]["rho_con"]


def test_algorithms_run_without_inputs_that_they_do_not_need(
    attempt: Attempt, tmp_path: Path
) -> None:
    content = _content(resources=3)
    del content["applications"][1]["bandwidth"], content["applications"][1]["phases"]
    (tmp_path / "little.json").write_text(json.dumps(content))
    text = _done(attempt("place", "little.json", "--allocation", "static"))
    assert "I/O-load not known" in text
    document = json.loads(
        _done(attempt("place", "little.json", "--allocation", "static", "--json", "-"))
    )
    assert document["io_load"] is None
    assert document["allocation"] == {"a": 1, "b": 1}


def test_an_algorithm_of_the_current_folder(
    attempt: Attempt, tmp_path: Path, pair: str
) -> None:
    template = Path(penstock.__file__).parent
    text = (template / "placement" / "_template.py").read_text()
    (tmp_path / "my_template.py").write_text(text)
    name = "my_template.allocate:gain=0.2"
    text = _done(attempt("place", pair, "--allocation", name))
    assert text.startswith(f"{name} + greedy-non-clairvoyant: ")


# --- compare --problem ------------------------------------------------------------


def test_all_combinations_side_by_side(attempt: Attempt) -> None:
    done = attempt("compare", "--problem", EXAMPLE, "--json", "out.json")
    text = _done(done)
    table = text.split("\n\n")[1].splitlines()
    assert table[0].split() == [
        *("allocation", "placement", "Mean-I/O-SlowDown", "=", "rho_io", "+"),
        *("rho_con", "I/O-spread", "Machine-Idletime", "I/O-load"),
    ]
    rows = [line.split() for line in table[1:]]
    slowdowns = [float(row[2]) for row in rows]
    assert slowdowns == sorted(slowdowns)
    document = json.loads(Path("out.json").read_text())
    assert document["provenance"]["problem"] == str(EXAMPLE)
    listed = [(c["allocation"], c["placement"]) for c in document["combinations"]]
    assert [(row[0], row[1]) for row in rows] == listed
    refused = {(r["allocation"], r["placement"]) for r in document["refusals"]}
    assert refused.isdisjoint(listed)
    assert len(listed) + len(refused) == len(ALLOCATIONS) * len(PLACEMENTS)
    assert ("t-cpu", "exclusive") in refused
    assert "not t-cpu + exclusive:\n  placement exclusive: the allocation" in text
    for row, combination in zip(rows, document["combinations"], strict=True):
        assert row[7] == f"{combination['io_load']:.4f}"
        assert set(combination) == {
            *("allocation", "placement", "policy", "window", "io_load", "metrics"),
        }


def test_one_combination_equals_the_result_of_place(attempt: Attempt) -> None:
    one = ("--allocation", "n-sys", "--placement", "greedy-clairvoyant", "--json", "-")
    placed = json.loads(_done(attempt("place", EXAMPLE, "--simulate", *one)))
    compared = json.loads(_done(attempt("compare", "--problem", EXAMPLE, *one)))
    (combination,) = compared["combinations"]
    assert combination["metrics"] == placed["metrics"]
    assert combination["io_load"] == placed["io_load"]


def test_several_policies_have_a_column(attempt: Attempt) -> None:
    text = _done(
        attempt(
            *("compare", "--problem", EXAMPLE, "--allocation", "t-cpu"),
            *("--policy", "fair-share", "--policy", "greedy-yield"),
        )
    )
    assert "\nt-cpu       greedy-clairvoyant      greedy-yield" in text
    assert (
        "not t-cpu + exclusive + fair-share, t-cpu + exclusive + greedy-yield" in text
    )


def test_a_comparison_in_which_nothing_can_be_compared_is_refused(
    attempt: Attempt, tmp_path: Path
) -> None:
    content = _content()
    del content["applications"][1]["bandwidth"]
    (tmp_path / "little.json").write_text(json.dumps(content))
    done = attempt("compare", "--problem", "little.json", "--json", "o")
    _assert_refused(done, "none of 24 combinations can be simulated; random + random")
    assert "the bandwidth of 'b' is not known" in done.stderr
    assert not (tmp_path / "o").exists()


def test_an_algorithm_that_fails_is_reported_in_one_line(
    attempt: Attempt, tmp_path: Path
) -> None:
    (tmp_path / "boom.py").write_text(
        "NEEDS = frozenset()\n\n\ndef allocate(problem):\n    return 1 / 0\n"
    )
    (tmp_path / "problem.json").write_text(json.dumps(_content()))
    done = attempt("place", "problem.json", "--allocation", "boom.allocate")
    message = "allocation boom.allocate failed: ZeroDivisionError: division by zero"
    _assert_refused(done, message)


# --- What cannot be used ----------------------------------------------------------


def _set(*path: Any) -> Callable[[Any], None]:
    """Return a function that sets the place `path[:-1]` of a document to `path[-1]`."""
    *outer, key, value = path

    def change(content: Any) -> None:
        for step in outer:
            content = content[step]
        content[key] = value

    return change


FIRST = ("applications", 0)
#: Change of the problem -> part of the message.
FILES: dict[str, tuple[Callable[[Any], None], str]] = {
    "zero": (
        _set(*FIRST, "bandwidth", [0]),
        "bad.json: applications[0].bandwidth[0]: 0 is not a positive bandwidth",
    ),
    "gap": (
        _set(*FIRST, "bandwidth", [1, None, 3]),
        "bad.json: applications[0].bandwidth[1]: the bandwidth is missing",
    ),
    "negative": (
        _set(*FIRST, "bandwidth", ["-1 GiB/s"]),
        "bad.json: applications[0].bandwidth[0]: '-1 GiB/s' is not a positive",
    ),
    "no target": (_set("resources", 0), "bad.json: resources: 0 is not a number of"),
    "nodes": (
        _set("compute_nodes", 1),
        "bad.json: compute_nodes: the applications use 2 compute nodes, but",
    ),
    "key": (_set(*FIRST, "release", 0), "bad.json: applications[0]: unknown key 'rel"),
    "unknown input": (
        lambda content: content["applications"][1].pop("bandwidth"),
        "bad.json: applications[1]: allocation t-cpu needs b_j, which is not known",
    ),
    "too short": (
        _set(*FIRST, "phases", [["work", 1], ["io", 1]]),
        "bad.json: applications[1]: 'b' has transferred nothing",
    ),
}


def _assert_refused(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("penstock")
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("case", FILES)
def test_a_bad_problem_is_reported_in_one_line(
    tmp_path: Path, attempt: Attempt, case: str
) -> None:
    change, message = FILES[case]
    content = _content()
    change(content)
    (tmp_path / "bad.json").write_text(json.dumps(content))
    done = attempt("place", "bad.json", "--simulate", "--json", "out.json")
    _assert_refused(done, message)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.json"]


@pytest.mark.parametrize("case", ["zero", "gap", "negative", "no target"])
def test_a_bad_problem_is_not_compared_either(
    tmp_path: Path, attempt: Attempt, case: str
) -> None:
    change, message = FILES[case]
    content = _content()
    change(content)
    (tmp_path / "bad.json").write_text(json.dumps(content))
    _assert_refused(attempt("compare", "--problem", "bad.json", "--json", "o"), message)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.json"]


#: Arguments -> part of the message.
ARGUMENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "allocation": (
        ("place", "pair.json", "--allocation", "t-cup"),
        "unknown allocation 't-cup' (did you mean 't-cpu'? known: best-bandwidth, mckp",
    ),
    "placement": (
        ("place", "pair.json", "--placement", "greedy"),
        "unknown placement 'greedy' (known: exclusive, greedy-clairvoyant, greedy-non",
    ),
    "policy": (
        ("place", "pair.json", "--simulate", "--policy", "fcsf"),
        "unknown policy 'fcsf' (did you mean 'fcfs'?",
    ),
    "parameter": (
        ("place", "pair.json", "--placement", "random:sede=1"),
        "placement random: unknown parameter 'sede' (did you mean 'seed'? known: seed)",
    ),
    "policy without simulation": (
        ("place", "pair.json", "--policy", "fcfs"),
        "--policy has no effect without --simulate",
    ),
    "no file": (("place", "none.json"), "none.json: cannot read the file: No such"),
    "no folder": (
        ("place", "pair.json", "--json", "pair.json/out.json"),
        "pair.json/out.json: cannot write to",
    ),
    "nothing": (("place",), "the following arguments are required: PROBLEM"),
    "compared allocation": (
        ("compare", "--problem", "pair.json", "--allocation", "t-cup"),
        "unknown allocation 't-cup' (did you mean 't-cpu'?",
    ),
    "twice": (
        ("compare", "--problem", "pair.json", *("--placement", "random") * 2),
        "placement 'random' is given twice",
    ),
    "instance": (
        ("compare", "three.json", "--problem", "pair.json"),
        "an instance file cannot be used with --problem",
    ),
    "workload": (
        ("compare", "--problem", "pair.json", "--workload", "synthetic"),
        "--workload cannot be used with --problem",
    ),
    "seed": (
        ("compare", "--problem", "pair.json", "--seed", "0"),
        "--seed cannot be used with --problem",
    ),
    "bound": (
        ("compare", "--problem", "pair.json", "--no-bound"),
        "--no-bound cannot be used with --problem",
    ),
    "without a problem": (
        ("compare", "--allocation", "t-cpu"),
        "--allocation cannot be used without --problem",
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_bad_arguments_are_reported_in_one_line(
    tmp_path: Path, attempt: Attempt, pair: str, case: str
) -> None:
    arguments, message = ARGUMENTS[case]
    _assert_refused(attempt(*arguments), message)
    assert [p.name for p in tmp_path.iterdir()] == [pair]


def test_exclusive_targets_for_more_applications_than_there_are(
    tmp_path: Path, attempt: Attempt
) -> None:
    content = _content(resources=2)
    for application in content["applications"]:
        application["bandwidth"] = [1, 2]
    content["applications"].append({**content["applications"][0], "name": "c"})
    (tmp_path / "crowd.json").write_text(json.dumps(content))
    done = attempt(
        *("place", "crowd.json", "--allocation", "best-bandwidth"),
        *("--placement", "exclusive", "--json", "out.json"),
    )
    message = "placement exclusive: the allocation gives the applications 6 targets"
    _assert_refused(done, message)
    assert [p.name for p in tmp_path.iterdir()] == ["crowd.json"]


def test_more_targets_than_were_measured(
    tmp_path: Path, attempt: Attempt, pair: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "my_greedy.py").write_text(
        "NEEDS = frozenset()\n\n\n"
        "def allocate(problem):\n    return [2] * len(problem.applications)\n"
    )
    done = attempt(
        "place", pair, "--allocation", "my_greedy.allocate", "--json", "out.json"
    )
    _assert_refused(
        done, "2 is not a number of targets for 'a' (give 1 to 1: these targets"
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["my_greedy.py", pair]
