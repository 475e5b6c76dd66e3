# SPDX-License-Identifier: MIT
"""``penstock compare`` with several files, folders, results of it, wrong files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.experiments.source import read_input
from penstock.model import write_instance
from penstock.workloads import Synthetic

ROOT = Path(__file__).parents[5]
DARSHAN = ROOT / "tests" / "data" / "hdf5_diagonal_write_half_flush_dxt.darshan"
POLICIES = ("--policy", "fcfs", "--policy", "fair-share", "--jobs", "1")


@pytest.fixture(autouse=True)
def instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with three instances; work beside it."""
    read_input.cache_clear()
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    workload = Synthetic(horizon=20_000.0, applications=6)
    for index in range(3):
        write_instance(workload.instance(1, index), folder / f"{index}.json")
    (folder / "notes.txt").write_text("not an instance")
    (folder / ".hidden.json").write_text("not an instance")
    return folder


def result(*words: str) -> list[dict[str, Any]]:
    """Return the instances of the JSON result, without the times."""
    assert main(["compare", *words, "--json", "result.json"]) == 0
    read_input.cache_clear()
    entries: list[dict[str, Any]] = json.loads(Path("result.json").read_text())[
        "instances"
    ]
    for entry in entries:
        for outcome in entry["policies"].values():
            del outcome["seconds"]
    return entries


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return the lines on standard error of a command that is refused."""
    capsys.readouterr()
    assert main(["compare", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    return printed.err.splitlines()


def test_a_folder_is_its_instances_in_the_order_of_their_names() -> None:
    files = [f"folder/{index}.json" for index in range(3)]
    together = result("folder", *POLICIES)
    assert [entry["file"] for entry in together] == files
    assert [entry["index"] for entry in together] == [0, 1, 2]
    apart = [{**result(file, *POLICIES)[0], "index": i} for i, file in enumerate(files)]
    assert together == apart
    assert result(*files, *POLICIES) == together


def test_files_may_stand_around_options() -> None:
    words = ("folder/0.json", *POLICIES, "folder/1.json", "--no-bound", "folder/2.json")
    assert len(result(*words)) == 3


def test_an_instance_that_is_given_twice_counts_once() -> None:
    shutil.copy("folder/0.json", "copy.json")
    words = ("folder/0.json", "folder/0.json", "copy.json", *POLICIES)
    assert len(result(*words)) == 1


def test_copies_that_count_once_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy("folder/0.json", "copy.json")
    result("folder/0.json", "folder/1.json", "folder/0.json", "copy.json", *POLICIES)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("counted once")] == [
        "counted once: folder/0.json is given several times",
        "counted once: copy.json is the same instance as folder/0.json",
    ]
    result("folder/0.json", "folder/1.json", *POLICIES)
    assert "counted once" not in capsys.readouterr().err


def test_the_text_lists_the_instances_and_their_spread(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["compare", "folder", *POLICIES]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mean of 3 instances")
    assert "(10-90 %)" in lines[2]
    assert [line.split()[0] for line in lines[-3:]] == [
        f"folder/{index}.json" for index in range(3)
    ]


def test_a_result_is_shown_again_without_simulating(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = result("folder", *POLICIES)
    shown = capsys.readouterr().out
    Path("result.json").rename("old.json")
    monkeypatch.setattr(
        "penstock.experiments.comparison.compare", lambda *_: pytest.fail("simulated")
    )
    assert result("old.json") == first
    printed = capsys.readouterr()
    assert printed.out == shown
    assert printed.err == "nothing was simulated: all results are from files\n"


def test_a_result_and_an_instance_are_compared_together() -> None:
    everything = result("folder", *POLICIES)
    result("folder/0.json", "folder/1.json", *POLICIES)
    Path("result.json").rename("old.json")
    assert result("old.json", "folder/2.json", "--jobs", "1") == everything


def test_results_of_a_workload_are_read_too() -> None:
    words = ("--set", "h=2000", "--set", "m=6", "--instances", "2", *POLICIES)
    first = result(*words)
    Path("result.json").rename("old.json")
    again = result("old.json")
    assert [entry["file"] for entry in again] == [
        "old.json, instance 0",
        "old.json, instance 1",
    ]
    assert [{**entry, "file": None} for entry in first] == [
        {**entry, "file": None} for entry in again
    ]


def test_policies_of_one_result_may_be_chosen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result("folder", *POLICIES)
    Path("result.json").rename("old.json")
    (entry, *_) = result("old.json", "--policy", "fcfs")
    assert list(entry["policies"]) == ["fcfs"]
    (line,) = refused(capsys, "old.json", "--policy", "greedy-com")
    assert "old.json: it has no result of policy greedy-com for folder/0.json" in line
    assert "(it has fcfs, fair-share; to simulate greedy-com, name the instance" in line


def test_policies_that_are_not_in_all_results_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result("folder/0.json", *POLICIES)
    Path("result.json").rename("both.json")
    result("folder/1.json", "--policy", "fcfs")
    Path("result.json").rename("one.json")
    capsys.readouterr()
    (first, _) = result("both.json", "one.json")
    assert list(first["policies"]) == ["fcfs"]
    assert "not in all results, left out: fair-share\n" in capsys.readouterr().err


def test_results_with_and_without_open_are_not_mixed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result("folder/0.json", "--open", *POLICIES)
    Path("result.json").rename("open.json")
    (line,) = refused(capsys, "open.json", "folder/1.json")
    assert "open.json uses --open, other inputs do not" in line
    (line,) = refused(capsys, "open.json", "--timeline", "t.svg")
    assert line.startswith("penstock: --timeline cannot be used with results, which")


@pytest.mark.parametrize("name", ["log.darshan", "log"])
def test_a_darshan_log_is_recognised_by_name_and_content(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(DARSHAN, name)
    (line,) = refused(capsys, name)
    assert line.startswith(f"penstock: {name}: this is a Darshan log")
    assert "penstock import" in line


def test_a_name_alone_tells_a_darshan_log(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cut.darshan").write_bytes(b"")
    assert "this is a Darshan log" in refused(capsys, "cut.darshan")[0]


def test_every_wrong_file_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(DARSHAN, "log")
    Path("table.parquet").write_bytes(b"PAR1" + bytes(20) + b"PAR1")
    Path("text.json").write_text("no JSON")
    wrong = ("log", "table.parquet", "text.json", "missing.json")
    lines = refused(capsys, "folder", *wrong)
    assert [line.split(": ")[1] for line in lines] == list(wrong)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("empty",), "empty: this folder has no files *.json or *.json.gz"),
        (("folder", "--seed", "2"), "--seed cannot be used with an instance file"),
        (("folder", ""), "an instance file: the value is empty"),
        (
            ("folder", "--json", "folder/1.json"),
            "folder/1.json: this command already reads this file",
        ),
        (("folder", "--problem", "folder/1.json"), "an instance file cannot be used"),
        (("pipe", "folder"), "pipe: a pipe cannot be read beside other files"),
    ],
)
def test_wrong_combinations(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    os.mkfifo("pipe")
    (line,) = refused(capsys, *words)
    assert message in line


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("two-level", "penstock bench slo"),
        ("2a", "penstock bench delta"),
        ("t-cpu", "--problem FILE --allocation NAME"),
        ("greedy-clairvoyant", "--problem FILE --placement NAME"),
    ],
)
def test_what_is_no_policy_says_where_it_is_compared(
    name: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = refused(capsys, "--policy", name)
    assert f"--policy: {name!r} is no policy but one of the" in line
    assert where in line
