# SPDX-License-Identifier: MIT
"""``penstock history`` without a daemon reads the archive itself."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.live.archive.tables import open_database
from support.archives import operation, record, run


def test_jobs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "archive", (run("7:climate"), [operation(1.0, 2.0)]))
    assert main(["history", "--folder", str(tmp_path)]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[0] == "job"
    assert line.split()[:2] == ["climate", "fcfs"]
    assert line.endswith("0.800")


def test_users_have_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run("1001:climate"), run("1002:climate")]
    record(tmp_path / "archive", *((each, [operation(1.0, 2.0)]) for each in runs))
    assert main(["history", "--folder", str(tmp_path)]) == 0
    rows = [row.split()[:2] for row in capsys.readouterr().out.splitlines()]
    assert rows == [["job", "user"], ["climate", "ann"], ["climate", "1002"]]
    words = ["--line", "--folder", str(tmp_path)]
    for name in ("ann:climate", "1001:climate"):
        assert main(["report", name, *words]) == 0


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("", []),
        ("begin", ["A daemon was started while it ran"]),
        ("end", ["The daemon was killed while it ran"]),
        ("both", ["A daemon was started while", "The daemon was killed while"]),
    ],
)
def test_what_no_daemon_recorded_is_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    missing: str,
    words: list[str],
) -> None:
    done = run("7:climate", missing=missing)
    record(tmp_path / "archive", (done, [operation(1.0, 2.0)]))
    assert main(["history", "--folder", str(tmp_path)]) == 0
    notes = capsys.readouterr().out.splitlines()[2:]
    assert [
        note.partition(": ")[2][: len(word)]
        for note, word in zip(notes, words, strict=True)
    ] == words
    assert main(["report", "climate", "--folder", str(tmp_path)]) == 0
    report = capsys.readouterr().out
    assert all(word in report for word in words)
    assert ("while it ran" in report) == bool(words)


@pytest.mark.parametrize(
    ("shared", "moved"), [(8 * 2.0**20, "80 MiB"), (8e6, "83.89 MB"), (inf, "83.89 MB")]
)
def test_volumes_have_the_units_of_the_bandwidth_that_was_shared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shared: float, moved: str
) -> None:
    done = run("7:climate", moved_bytes=80 * 2.0**20)
    record(tmp_path / "archive", (done, [operation(1.0, 2.0, capacity=shared)]))
    assert main(["history", "--folder", str(tmp_path)]) == 0
    assert moved in capsys.readouterr().out


def test_json_has_units_of_bytes_and_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "archive", (run("7:climate"), []), (run("7:genome"), []))
    words = ["--folder", str(tmp_path), "--limit", "1", "--json", "-"]
    assert main(["history", *words]) == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert (job["moved"], job["lost"], job["nodes"]) == (3e9, 20.0, 2)


def test_an_empty_archive_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_database(tmp_path / "archive").close()
    assert main(["history", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no past jobs\n"


def test_without_daemon_and_archive_there_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (tmp_path, tmp_path / "x"):
        assert main(["history", "--archive", str(folder)]) == 2
        assert "there is no archive" in capsys.readouterr().err
