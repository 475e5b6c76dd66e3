# SPDX-License-Identifier: MIT
"""``penstock import`` on the command line: files, JSON, messages, status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.advice.importing.sources import FORMATS
from penstock.cli import main
from penstock.cli.simulation import import_
from penstock.model import read_instance

CSV = (
    "job,begin,end,bytes,nodes\n"
    "climate,0,100,0,4\nclimate,10,12,200,4\nclimate,60,62,200,4\n"
    "fusion,5,80,0,2\nfusion,11,13,100,2\n"
)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(CSV)


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run an import that must fail; return its one line on standard error."""
    try:
        status = main(["import", *arguments])
    except SystemExit as error:
        status = int(error.code or 0)
    assert status == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def _document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["import", *arguments, "--json", "-"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_the_instance_file_is_what_compare_reads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["import", "jobs.csv", "-o", "out/site.json"]) == 0
    instance = read_instance("out/site.json")
    assert [a.name for a in instance.applications] == ["climate", "fusion"]
    assert [path.name for path in Path("out").iterdir()] == ["site.json"]
    text = capsys.readouterr().out
    assert "2 jobs in 1.667 min" in text
    assert "climate" in text
    compare = ["compare", "out/site.json", "--open", "--policy", "fcfs", "--no-bound"]
    assert main(compare) == 0


def test_json_and_the_file_hold_the_same_instance(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = _document(capsys, "jobs.csv", "-o", "site.json")
    assert document["instance"] == json.loads(Path("site.json").read_text())
    assert document["bandwidth_known"] is False
    assert document["jobs"][0]["io_seconds_instance"] == pytest.approx(4.0)
    assert document["provenance"]["sources"] == ["jobs.csv"]


def test_given_bandwidths_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--bandwidth", "1 kB/s", "--node-bandwidth", "10 B/s")
    document = _document(capsys, "jobs.csv", *given)
    platform = document["instance"]["platform"]
    assert platform == {"bandwidth": 1000.0, "node_bandwidth": 10.0}
    assert document["jobs"][0]["io_seconds_instance"] == pytest.approx(10.0)
    assert document["notes"] == []


def test_an_ensemble_is_a_folder_of_instances(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("a.swf").write_text("1 0 0 36000 16 -1 -1 16 -1 -1 1 3 4 -1 1 -1 -1 -1\n")
    options = ("--bandwidth", "1 GB/s", "--ensemble", "3", "--seed", "7")
    document = _document(capsys, "a.swf", *options, "-o", "members")
    names = sorted(path.name for path in Path("members").iterdir())
    assert names == [f"import-s7-{k:04d}.json" for k in range(3)]
    assert document["ensemble"]["seed"] == 7
    members = document["ensemble"]["instances"]
    assert members[0] == document["instance"]
    assert members[1] != members[0]
    assert json.loads(Path("members", names[1]).read_text()) == members[1]


def test_skipped_files_are_named_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("more").mkdir()
    Path("more/jobs.csv").write_text(CSV)
    for number in range(1000):
        Path(f"more/{number:04d}.txt").write_text("hello\n")
    assert main(["import", "more", "--json", "out.json"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "skipped 1000: more/0000.txt, more/0001.txt, more/0002.txt, more/0003.txt, "
        "more/0004.txt and 995 more: this is not a log of a known format (known: "
    )
    skipped = json.loads(Path("out.json").read_text())["skipped"]
    assert len({item["source"] for item in skipped}) == 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), "nowhere: no such file"),
        (("jobs.csv", "--format", "pbs"), "pbs"),
        (("jobs.csv", "--bandwidth", "12"), "has no unit"),
        (("jobs.csv", "--bandwidth", "0 B/s"), "not positive"),
        (("jobs.csv", "--gap", "-1 s"), "negative"),
        (("jobs.csv", "--io-fraction", "1"), "between 0 and 1"),
        (("jobs.csv", "--ensemble", "10001"), "limit"),
        (("jobs.csv", "--ensemble", "2", "-o", "a.json"), "name a folder"),
        (("jobs.csv", "-o", "jobs.csv/x.json"), "cannot write"),
        (("jobs.csv", "--format", "swf"), "line 1"),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in _refused(capsys, *arguments)


def test_strict_names_the_first_bad_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("note.txt").write_text("hello\n")
    line = _refused(capsys, "jobs.csv", "note.txt", "--strict", "-o", "site.json")
    assert "note.txt" in line
    assert not Path("site.json").exists()


def test_a_long_table_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"job{n},{n},{n + 1},5\n" for n in range(60))
    Path("many.csv").write_text("job,begin,end,bytes\n" + rows)
    assert main(["import", "many.csv"]) == 0
    assert "... and 20 more jobs" in capsys.readouterr().out


def test_the_formats_are_those_of_the_readers() -> None:
    assert import_._FORMATS == FORMATS


def test_a_bad_line_is_named_once_and_the_rest_is_imported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("jobs.csv").write_text(CSV + "fusion,x,13,100,2\n")
    assert main(["import", "jobs.csv"]) == 0
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("skipped 1: jobs.csv: line 7: not a valid row")
    assert "2 jobs in" in captured.out
    assert "--strict" in _refused(capsys, "jobs.csv", "--strict")


def test_many_reasons_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"fusion,x{n},13,100,2\n" for n in range(30))
    Path("jobs.csv").write_text(CSV + rows)
    assert main(["import", "jobs.csv"]) == 0
    *_, last = captured = capsys.readouterr().err.splitlines()
    assert len(captured) == 11
    assert last.startswith("skipped 20 for 20 other reasons")


def test_an_import_that_keeps_nothing_says_how_to_keep_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["import", "jobs.csv"]) == 0
    assert "-o FILE writes it" in capsys.readouterr().out
    assert main(["import", "jobs.csv", "-o", "new/folder/site.json"]) == 0
    assert "-o FILE" not in capsys.readouterr().out
    assert Path("new/folder/site.json").exists()
