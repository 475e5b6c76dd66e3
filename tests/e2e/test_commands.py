# SPDX-License-Identifier: MIT
"""The command ``penstock`` as a user runs it: real processes, real files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from penstock.cli import main
from penstock.experiments import source
from penstock.placement import ALLOCATIONS, PLACEMENTS
from penstock.policies import POLICIES
from penstock.qos import SCHEDULERS
from penstock.registry import PAPERS
from penstock.staging import STRATEGIES

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
EXAMPLE = Path(__file__).parents[2] / "examples" / "three.json"
TABLES: dict[str, Mapping[str, object]] = {
    "policies": POLICIES,
    "allocations": ALLOCATIONS,
    "placements": PLACEMENTS,
    "strategies": STRATEGIES,
    "schedulers": SCHEDULERS,
}
SMALL = ("--set", "horizon=20000", "--instances", "2")


def _run(*arguments: object, cwd: Path, **options: Any) -> Any:
    """Run ``penstock`` and return its output and its status."""
    return subprocess.run(
        [PENSTOCK, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=options.pop("text", True),
        check=False,
        timeout=120,
        **options,
    )


def _done(*arguments: object, cwd: Path, **options: Any) -> str:
    """Run ``penstock``, which must succeed; return its standard output."""
    done = _run(*arguments, cwd=cwd, **options)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return str(done.stdout)


def _content() -> dict[str, Any]:
    return {
        "penstock": 1,
        "platform": {"bandwidth": 1, "node_bandwidth": 1},
        "window": [0, 10],
        "applications": [
            {
                "name": name,
                "nodes": 1,
                "release": 0,
                "phases": [["work", 2], ["io", 3], ["work", 20]],
            }
            for name in ("a", "b")
        ],
    }


@pytest.fixture
def pair(tmp_path: Path) -> str:
    """Write an instance whose results are known by hand; return its name."""
    (tmp_path / "pair.json").write_text(json.dumps(_content()))
    return "pair.json"


# --- What it is for ---------------------------------------------------------------


def test_compare_prints_a_table_with_the_best_first(tmp_path: Path, pair: str) -> None:
    table = _done(
        *("compare", pair, "--policy", "fcfs", "--policy", "fair-share"), cwd=tmp_path
    )
    lines = table.splitlines()
    assert "pressure 0.600" in lines[0]
    assert any(line.startswith("bound") and "0.7000" in line for line in lines)
    (fcfs,) = (line for line in lines if line.startswith("fcfs"))
    (fair,) = (line for line in lines if line.startswith("fair-share"))
    assert "0.7000" in fcfs
    assert "0.7000" in fair


def test_compare_runs_all_policies_on_the_example(tmp_path: Path) -> None:
    table = _done("compare", EXAMPLE, cwd=tmp_path)
    for name in POLICIES:
        assert f"\n{name} " in table


def test_json_on_standard_output_is_one_document_and_nothing_else(
    tmp_path: Path, pair: str
) -> None:
    done = _run(
        *("compare", pair, "--policy", "fcfs", "--policy", "set-10:initial=weight"),
        *("--json", "-"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["penstock"] == 1
    assert document["provenance"]["version"] == version("penstock")
    assert document["provenance"]["command"] == (
        "penstock compare pair.json --policy fcfs --policy set-10:initial=weight "
        "--json -"
    )
    (instance,) = document["instances"]
    assert instance["pressure"] == pytest.approx(0.6)
    assert instance["window"] == [0.0, 10.0]
    assert instance["bound"]["min_yield"] == pytest.approx(0.7, abs=1e-8)
    assert list(instance["policies"]) == ["fcfs", "set-10:initial=weight"]
    fcfs = instance["policies"]["fcfs"]
    assert fcfs["min_yield"] == 0.7
    assert fcfs["yields"] == [1.0, 0.7]
    assert fcfs["events"] == 4
    assert fcfs["utilization"] == pytest.approx(0.55)
    assert fcfs["efficiency"] == pytest.approx(0.85)
    assert fcfs["stretch"] == pytest.approx(10 / 7)
    assert fcfs["seconds"] >= 0


def test_files_of_a_workload_study(tmp_path: Path) -> None:
    table = _done(
        *("compare", *SMALL, "--seed", "3", "--jobs", "1", "--no-bound"),
        *("--policy", "fcfs", "--policy", "fair-share"),
        *("--json", "a.json", "--plot", "a.svg", "--timeline", "a.png"),
        cwd=tmp_path,
    )
    assert "mean of 2 instances" in table
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.png", "a.svg"]
    document = json.loads((tmp_path / "a.json").read_text())
    assert [i["index"] for i in document["instances"]] == [0, 1]
    assert document["instances"][0]["bound"] is None
    facts = document["provenance"]
    assert (facts["seed"], facts["workload"]) == (3, "synthetic")
    assert facts["settings"] == ["horizon=20000"]
    root = ET.parse(tmp_path / "a.svg").getroot()  # noqa: S314 - our own
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    png = (tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png.endswith(b"IEND\xaeB`\x82")


def test_generate_into_a_file_then_compare(tmp_path: Path) -> None:
    small = ("--set", "h=20000", "--set", "m=6", "--seed", "4")
    _done("generate", "synthetic", *small, "-o", "one.json.gz", cwd=tmp_path)
    policy = ("--policy", "fair-share", "--no-bound", "--json", "-")
    file = json.loads(_done("compare", "one.json.gz", *policy, cwd=tmp_path))
    drawn = json.loads(
        _done("compare", *small, "--instances", "1", *policy, cwd=tmp_path)
    )
    for document in (file, drawn):
        del document["instances"][0]["policies"]["fair-share"]["seconds"]
    assert file["instances"][0].pop("file") == "one.json.gz"
    assert file["instances"] == drawn["instances"]


def test_generate_through_a_pipe_into_compare(tmp_path: Path) -> None:
    text = _done("generate", "io-sets", "--set", "n_H=0", cwd=tmp_path)
    assert json.loads(text)["penstock"] == 1
    out = _done(
        *("compare", "/dev/stdin", "--policy", "set-10:period=given", "--no-bound"),
        cwd=tmp_path,
        input=text,
    )
    assert "set-10:period=given" in out


def test_generate_several_into_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    _done("generate", "synthetic", *SMALL, "--seed", "2", "-o", "out", cwd=tmp_path)
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == ["synthetic-s2-0000.json", "synthetic-s2-0001.json"]
    one, other = ((tmp_path / "out" / name).read_bytes() for name in names)
    assert one != other


def test_generate_help_lists_workloads_and_parameters(tmp_path: Path) -> None:
    text = _done("generate", "help", cwd=tmp_path)
    for word in ("synthetic: ", "io-sets: ", "pressure=0.8", "[W]", "[n_H]"):
        assert word in text


def test_bound_prints_and_writes_the_bound(tmp_path: Path, pair: str) -> None:
    text = _done("bound", pair, "--json", "bound.json", cwd=tmp_path)
    assert "MinYield <= 0.700000" in text
    document = json.loads((tmp_path / "bound.json").read_text())
    assert document["instances"][0]["bound"]["min_yield"] == pytest.approx(
        0.7, abs=1e-8
    )
    alone = _run("bound", pair, "--json", "-", cwd=tmp_path)
    assert json.loads(alone.stdout)["instances"] == document["instances"]


def test_policies_are_listed(tmp_path: Path) -> None:
    text = _done("policies", cwd=tmp_path)
    listed = json.loads(_done("policies", "--json", "-", cwd=tmp_path))
    sections = text.split("\n\n")
    for section, (name, table) in zip(sections, TABLES.items(), strict=False):
        heading, *lines = section.splitlines()
        assert heading.startswith(f"{name}: ")
        assert [line.split()[0] for line in lines] == list(table)
        assert [row["name"] for row in listed[name]] == list(table)
    assert "[target allocation, section 4.1] needs Q_j\n" in text
    assert listed["placements"][2]["needs"] == ["V_io", "T_cpu", "b_j"]
    papers = [line.partition(":")[0] for line in sections[-1].splitlines()]
    assert papers == list(listed["papers"]) == list(PAPERS)
    assert _done("compare", "--policy", "help", cwd=tmp_path) == text


def test_version_and_help(tmp_path: Path) -> None:
    assert _done("--version", cwd=tmp_path) == f"penstock {version('penstock')}\n"
    text = _done("--help", cwd=tmp_path)
    for command in ("compare", "generate", "policies", "bound", "place"):
        assert command in text
    assert "--timeline" in _done("compare", "--help", cwd=tmp_path)


def test_the_module_is_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"penstock {version('penstock')}\n"


def test_a_policy_of_the_current_folder(tmp_path: Path, pair: str) -> None:
    (tmp_path / "mine.py").write_text(
        "from math import inf\n\n\n"
        "def allocate(view, rates):\n"
        "    last = view.active[view.n_active - 1]\n"
        "    rates[last] = view.cap[last]\n"
        "    return inf\n"
    )
    document = json.loads(
        _done(
            *("compare", pair, "--policy", "mine.allocate", "--json", "-"),
            cwd=tmp_path,
        )
    )
    outcome = document["instances"][0]["policies"]["mine.allocate"]
    assert outcome["yields"] == [0.7, 1.0]


def test_open_windows_on_demand(tmp_path: Path) -> None:
    content = _content()
    content["applications"][0]["phases"].pop()
    (tmp_path / "open.json").write_text(json.dumps(content))
    text = _done("compare", "open.json", "--open", "--policy", "fcfs", cwd=tmp_path)
    assert "0.7000" in text


def test_a_reader_that_closes_the_pipe_is_not_an_error(tmp_path: Path) -> None:
    command = f"{PENSTOCK} policies | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="needs /dev/full")
def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PENSTOCK, "policies"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    _assert_one_line(done.stderr)


# --- What cannot be used ----------------------------------------------------------


#: Cases that run as processes; the others call the same `main` in this one.
AS_PROCESSES = {
    *("syntax", "ends-inside", "no-bandwidth"),
    *("unknown-policy", "missing-file", "folder-is-a-file", "unknown-workload"),
    *("negative-seed", "bad-ending"),
}


@pytest.fixture
def attempt(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Callable[..., Any]:
    """Return a function that runs a command, in another process or in this one."""

    def run(case: str, *arguments: str) -> Any:
        if case in AS_PROCESSES:
            return _run(*arguments, cwd=tmp_path)
        monkeypatch.chdir(tmp_path)
        source.read_input.cache_clear()
        try:
            status = main(arguments)
        except SystemExit as stop:
            status = int(stop.code or 0)
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess([*map(str, arguments)], status, out, err)

    return run


def _assert_one_line(text: str) -> None:
    assert "Traceback" not in text
    assert text.startswith("penstock")
    assert text.endswith("\n")
    assert text.count("\n") == 1, text


def _changed(change: Callable[[dict[str, Any]], None]) -> str:
    content = _content()
    change(content)
    return json.dumps(content)


def _set(*path: Any) -> Callable[[dict[str, Any]], None]:
    *outer, key, value = path

    def change(content: Any) -> None:
        for step in outer:
            content = content[step]
        content[key] = value

    return change


#: Change of the instance file -> part of the message.
FILES: dict[str, tuple[str, str]] = {
    "syntax": ('{"penstock": 1,', "bad.json: not JSON"),
    "empty": ("", "bad.json: not JSON"),
    "list": ("[]", "bad.json: not an object"),
    "negative": (
        _changed(_set("applications", 1, "phases", 1, ["io", -3])),
        "bad.json: applications[1].phases[1]: -3.0 is negative",
    ),
    "nan": (
        _changed(_set("applications", 0, "phases", 0, ["work", "nan"])),
        "bad.json: applications[0].phases[0]: 'nan' is not a finite time",
    ),
    "nan-literal": (
        _changed(_set("window", [0, float("nan")])),
        "bad.json: not JSON",
    ),
    "empty-window": (
        _changed(_set("window", [5, 5])),
        "bad.json: window: the window [5.0, 5.0] is empty",
    ),
    "ends-inside": (
        _changed(_set("applications", 1, "phases", 2, ["work", 1])),
        "'b' ends at 9 s, inside the window [0, 10]",
    ),
    "late-release": (
        _changed(_set("applications", 1, "release", 10)),
        "bad.json: applications[1]: 'b' is released at 10",
    ),
    "no-bandwidth": (
        _changed(_set("platform", "bandwidth", 0)),
        "bad.json: platform.bandwidth: 0.0 is not a positive bandwidth",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_reported_in_one_line(
    tmp_path: Path, attempt: Callable[..., Any], case: str
) -> None:
    content, message = FILES[case]
    (tmp_path / "bad.json").write_text(content)
    done = attempt(
        case,
        *("compare", "bad.json", "--policy", "fcfs", "--no-bound"),
        *("--json", "out.json", "--plot", "out.svg"),
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bad.json"]
    _assert_one_line(done.stderr)


#: Arguments -> part of the message.
ARGUMENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown-policy": (
        ("compare", "pair.json", "--policy", "fcsf", "--json", "out.json"),
        "unknown policy 'fcsf' (did you mean 'fcfs'?",
    ),
    "unknown-parameter": (
        ("compare", "pair.json", "--policy", "fcfs:x=1", "--json", "out.json"),
        "policy fcfs: unknown parameter 'x'",
    ),
    "bad-parameter": (
        ("compare", "pair.json", "--policy", "set-10:initial_weight=-1"),
        "policy set-10: initial_weight: '-1' is out of range",
    ),
    "same-policy-twice": (
        ("compare", "pair.json", "--policy", "fcfs", "--policy", "fcfs"),
        "policy 'fcfs' is given twice",
    ),
    "missing-file": (
        ("compare", "none.json", "--json", "out.json"),
        "none.json: cannot read the file: No such file",
    ),
    "folder-as-file": (("place", "."), ".: cannot read the file: Is a directory"),
    "unknown-workload": (
        ("compare", "--workload", "synthetik", "--json", "out.json"),
        "unknown workload 'synthetik' (did you mean 'synthetic'?",
    ),
    "unknown-key": (
        ("generate", "synthetic", "--set", "presure=1", "-o", "out.json"),
        "unknown workload key 'presure' (did you mean 'pressure'?",
    ),
    "bad-value": (
        ("generate", "synthetic", "--set", "nu=2", "-o", "out.json"),
        "noise: 2.0 is out of range",
    ),
    "bad-size": (
        ("generate", "synthetic", "--set", "n_small=50", "-o", "out.json"),
        "n_small",
    ),
    "no-instances": (("compare", "--instances", "0"), "'0' is not a whole number"),
    "instances-text": (("bound", "--instances", "x"), "'x' is not a whole number"),
    "negative-seed": (("compare", "--seed", "-1"), "'-1' is not a whole number"),
    "generate-seed": (
        ("generate", "synthetic", "--seed", "-1", "-o", "out.json"),
        "'-1' is not a whole number",
    ),
    "seed-text": (("compare", "--seed", "x"), "'x' is not a whole number"),
    "no-jobs": (("compare", "--jobs", "0"), "'0' is not a whole number"),
    "file-and-workload": (
        ("compare", "pair.json", "--workload", "synthetic"),
        "--workload cannot be used with an instance file",
    ),
    "file-and-key": (
        ("compare", "pair.json", "--set", "W=1"),
        "--set cannot be used with an instance file",
    ),
    "file-and-instances": (
        ("bound", "pair.json", "--instances", "2"),
        "--instances cannot be used with an instance file",
    ),
    "file-and-seed": (
        ("bound", "pair.json", "--seed", "0"),
        "--seed cannot be used with an instance file",
    ),
    "folder-is-a-file": (
        ("compare", "pair.json", "--policy", "fcfs", "--json", "pair.json/out.json"),
        "pair.json/out.json: cannot write to",
    ),
    "folder-of-the-plot-is-a-file": (
        ("compare", "pair.json", "--policy", "fcfs", "--plot", "pair.json/out.svg"),
        "pair.json/out.svg: cannot write to",
    ),
    "output-is-a-folder": (
        ("import", "pair.json", "-o", "."),
        ".: this is a folder",
    ),
    "several-into-no-folder": (
        ("generate", "synthetic", "--instances", "2", "-o", "out.json"),
        "--output: 2 instances do not fit into one file (name a folder)",
    ),
    "bad-ending": (
        (
            *("compare", "pair.json", "--policy", "fcfs", "--no-bound"),
            *("--plot", "out.svg", "--timeline", "out.foo", "--json", "out.json"),
        ),
        "out.foo: cannot draw a 'foo' file",
    ),
    "unknown-command": (("comapre",), "invalid choice: 'comapre'"),
    "no-command": ((), "the following arguments are required: COMMAND"),
    "unknown-option": (("compare", "--jsno", "-"), "unrecognized arguments: --jsno"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_bad_arguments_are_reported_in_one_line(
    tmp_path: Path, pair: str, attempt: Callable[..., Any], case: str
) -> None:
    arguments, message = ARGUMENTS[case]
    done = attempt(case, *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert message in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == [pair]
    _assert_one_line(done.stderr)


def test_a_policy_that_fails_is_reported_in_one_line(tmp_path: Path, pair: str) -> None:
    (tmp_path / "mine.py").write_text(
        "def allocate(view, rates):\n    raise ValueError('no idea')\n"
    )
    done = _run(
        *("compare", pair, "--policy", "mine.allocate", "--json", "out.json"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 2
    assert "policy mine.allocate failed at t = 2 s: ValueError: no idea" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.py", pair]
    _assert_one_line(done.stderr)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_an_unreadable_file_and_a_read_only_folder(tmp_path: Path, pair: str) -> None:
    shutil.copy(tmp_path / pair, tmp_path / "locked.json")
    (tmp_path / "locked.json").chmod(0)
    done = _run("compare", "locked.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot read the file: Permission denied" in done.stderr
    _assert_one_line(done.stderr)
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o500)
    done = _run(
        *("compare", pair, "--policy", "fcfs", "--json", "folder/out.json"),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "folder cannot be written" in done.stderr
    assert list(folder.iterdir()) == []
    _assert_one_line(done.stderr)
