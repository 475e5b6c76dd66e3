# SPDX-License-Identifier: MIT
"""``penstock report``: words, JSON and a page of one past job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli import main
from support.archives import operation, record, run


@pytest.fixture
def folder(tmp_path: Path) -> str:
    record(
        tmp_path / "archive",
        (run("7:a"), [operation(2.0, 3.0)]),
        (run("7:b", lost_s=1.0), [operation(2.0, 4.0, lost_s=1.0)]),
    )
    return str(tmp_path)


def test_words_json_and_page(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, result = tmp_path / "b.html", tmp_path / "b.json"
    words = ["--folder", folder, "--html", str(page), "--json", str(result)]
    assert main(["report", "b", *words]) == 0
    assert "It waited for a (1 s)." in capsys.readouterr().out
    assert json.loads(result.read_text())["job"]["job"] == "b"
    assert "Report on b" in page.read_text()


def test_one_line_for_a_batch_system(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "7:b", "--line", "--folder", folder]) == 0
    assert capsys.readouterr().out == (
        "I/O: moved 3 GB in 1 operation, lost 1 s, yield 0.990, policy fcfs\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["b", "--line", "--json", "-"], "--json cannot be used with --line"),
        (["c"], "there is no job 'c'"),
        (["b", "--bandwidth", "1 Mb/s"], "--bandwidth"),
        (["b", "--bandwidth", "0"], "'0' is not positive"),
    ],
)
def test_mistakes_get_one_message(
    folder: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["report", *words, "--folder", folder])
    except SystemExit as error:
        status = int(error.code or 0)
    assert status == 2
    captured = capsys.readouterr().err
    assert message in captured
    assert len(captured.splitlines()) == 1


def test_jobs_of_several_users_with_one_name_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(
        tmp_path / "archive",
        (run("1001:a", lost_s=6.0), [operation(0.0, 10.0, lost_s=6.0)]),
        (run("1002:a"), [operation(0.0, 10.0, moved_bytes=2e9)]),
        (run("1002:b"), [operation(0.0, 10.0)]),
    )
    folder, result = ["--folder", str(tmp_path)], tmp_path / "a.json"
    assert main(["report", "ann:a", "--json", str(result), *folder]) == 0
    text = capsys.readouterr().out
    assert text.startswith("ann:a ran from ")
    assert "It waited for 1002:a (4 s), b (2 s)." in text
    drawn = [line.split()[0] for line in text.splitlines() if line.endswith("|")]
    assert drawn == ["ann:a", "1002:a", "b"]
    document = json.loads(result.read_text())
    assert (document["job"]["job"], document["job"]["user"]) == ("a", 1001)
    delays = [(each["user"], each["job"]) for each in document["delays"]]
    assert delays == [(1002, "a"), (1002, "b")]
    assert main(["report", "a", *folder]) == 2
    assert "name one by its user: ann:a or 1002:a" in capsys.readouterr().err
    assert main(["ctl", "explain", "ann:a", *folder]) == 0
    assert "See: penstock report ann:a" in capsys.readouterr().out
