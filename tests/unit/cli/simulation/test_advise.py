# SPDX-License-Identifier: MIT
"""``penstock advise``: words first, files on request, one message for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.live.settings import load_settings
from penstock.model import write_instance
from support.archives import operation, record, run
from unit.samples import app, make

FEW = ("--scenarios", "3")


@pytest.fixture
def instance(tmp_path: Path) -> str:
    """Return a file in which short operations wait for long ones under fcfs."""
    path = tmp_path / "site.json"
    long = [("work", 10.0), ("io", 20.0)] * 8
    short = [("work", 3.0), ("io", 0.5)] * 64
    jobs = (app("long", *long, ("work", 999.0)), app("short", *short, ("work", 999.0)))
    write_instance(make(*jobs, window=(0.0, 150.0)), path)
    return str(path)


def test_the_answer_comes_first(
    instance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", instance, "--now", "fcfs", *FEW]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Switch from fcfs to ")
    assert any(line.startswith("bound ") for line in lines)
    assert "Assumed:" in lines


def test_json_settings_and_report_agree(instance: str, tmp_path: Path) -> None:
    result, settings, page = (tmp_path / n for n in ("a.json", "a.toml", "a.html"))
    words = ["--json", str(result), "--settings", str(settings), "--report", str(page)]
    assert main(["advise", instance, "--now", "fcfs", *FEW, *words]) == 0
    advice = json.loads(result.read_text())
    assert advice["verdict"] == "change"
    assert load_settings({}, {}, str(settings)).policy == advice["policy"]
    assert advice["summary"] in page.read_text()
    assert advice["provenance"]["seed"] == 1


def test_the_same_command_gives_the_same_bytes(
    instance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for _ in range(2):
        assert main(["advise", instance, *FEW, "--json", "-"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_a_given_bandwidth_replaces_that_of_the_instance(
    instance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", instance, *FEW, "--bandwidth", "1 GB/s"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Keep fair-share.")
    assert "1 GB/s (given)" in out


def test_targets_add_a_placement(
    instance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", instance, *FEW, "--targets", "2", "--json", "-"]) == 0
    placement = json.loads(capsys.readouterr().out)["placement"]
    assert set(placement["targets"]) == {"long", "short"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--now", "fcsf"], "fcfs"),
        (["--bandwidth", "0 MB/s"], "is not positive"),
        (["--bandwidth", "10 Mb/s"], "--bandwidth"),
        (["--uncertainty", "2"], "from 0 to 1"),
        (["--targets", "99999999"], "number of storage targets"),
        (["--scenarios", "0"], "--scenarios"),
    ],
)
def test_mistakes_get_one_message(
    instance: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["advise", instance, *FEW, *words])
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    captured = capsys.readouterr()
    assert status == 2
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1


def test_a_result_is_no_instance(
    instance: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = tmp_path / "result.json"
    assert main(["compare", instance, "--open", "--json", str(result)]) == 0
    assert main(["advise", str(result)]) == 2
    assert "this is a result, not an instance" in capsys.readouterr().err


LOG = Path(__file__).parents[4] / "examples" / "logs" / "sacct.txt"


def test_logs_are_imported_first(capsys: pytest.CaptureFixture[str]) -> None:
    rates = ["--bandwidth", "10 GB/s", "--node-bandwidth", "1 GB/s"]
    assert main(["advise", str(LOG), *rates, *FEW]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Keep fair-share.")
    assert "2 jobs were imported with the detail accounting." in out


def test_logs_and_instances_do_not_mix(
    instance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", instance, str(LOG)]) == 2
    assert "this is a log, but other inputs are instances" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    ["--align", "--periods", "--gap=50ms", "--io-fraction=0.1", "--format=auto"],
)
def test_options_of_logs_are_refused_for_instances(
    instance: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", instance, option]) == 2
    flag = option.partition("=")[0]
    assert f"{flag} cannot be used with instances" in capsys.readouterr().err


def test_a_folder_of_instances_is_read(
    instance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(Path(instance).parent)
    assert main(["advise", folder, "--now", "fcfs", *FEW]) == 0
    assert capsys.readouterr().out.startswith("Switch from fcfs")


def test_without_a_source_the_archive_of_this_machine_is_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PENSTOCK_ARCHIVE", str(tmp_path / "archive"))
    assert main(["advise", *FEW]) == 2
    assert "there are no past jobs" in capsys.readouterr().err
    done = [operation(10.0 * n, 10.0 * n + 5.0) for n in range(5)]
    record(tmp_path / "archive", (run(), done), (run("7:b"), done))
    assert main(["advise", *FEW]) == 0
    out = capsys.readouterr().out
    assert "The policy in use is fcfs (that of the last job of the archive" in out
    assert "Efficiency: progress of all jobs together" in out


@pytest.mark.parametrize(
    ("bandwidth", "doubt"),
    [
        ("1 MB/s", "less than the 2"),
        ("1 TB/s", "more than 1000 times the 2"),
        ("2 GB/s", ""),
    ],
)
def test_a_bandwidth_that_cannot_be_right_is_doubted(
    bandwidth: str, doubt: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "jobs.csv"
    rows = [f"{job},{10 * n},{10 * n + 1},100000000" for n in range(3) for job in "ab"]
    path.write_text("\n".join(["job,begin,end,bytes", *rows]))
    assert main(["advise", str(path), *FEW, "--bandwidth", bandwidth]) == 0
    out = capsys.readouterr().out
    assert ("WARNING: the bandwidth that was given" in out) == bool(doubt)
    assert doubt in out
