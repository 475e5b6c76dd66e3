# SPDX-License-Identifier: MIT
"""The commands ``penstock bench`` and ``penstock check``, from end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from penstock.bench import BENCHES
from penstock.bench.accuracy import pacing
from penstock.bench.cost import decisions
from penstock.cli import main

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def test_a_script_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert main(["check", str(script)]) == 0
    assert capsys.readouterr().out == f"{script} can be controlled\n"


def test_the_verdict_is_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\x01\x01" + bytes(10) + b"\x02\x00\x03\x00")
    program.chmod(0o755)
    assert main(["check", str(program), "--json", "-"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "not"
    (finding,) = document["findings"]
    assert "32 bits" in finding["what"]
    assert finding["remedy"]


def test_a_missing_program_gives_one_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "no-such-program"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@needs_gcc
def test_overhead_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    command = ["bench", "overhead", "--rounds=1", f"--folder={tmp_path}"]
    # Whether the goals are reached depends on the machine.
    assert main([*command, f"--json={file}"]) in {0, 1}
    document = json.loads(file.read_text())
    figures = document["benchmarks"]["overhead"]
    # Writes of two sizes without the library and in three states; reads of two sizes
    # without the library and cached; an agent with idle jobs.
    assert len(figures) == 2 * 4 + 2 * 2 + 1
    assert capsys.readouterr().out.count("\n") == len(figures)
    assert {figure["goal"] for figure in figures if "goal" in figure} == {
        "at most 20",
        "at most 80",
        "at most 100",
        "at most 1.02",
    }
    assert {path.name for path in tmp_path.iterdir()} == {"figures.json"}


@needs_gcc
def test_pacing_never_exceeds_the_grant(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(pacing, "_SIZES", (64 << 10,))
    monkeypatch.setattr(pacing, "_PROCESSES", (2,))
    monkeypatch.setattr(pacing, "_RUN_S", 0.5)
    command = ["bench", "pacing", "--rounds=1", f"--folder={tmp_path}", "--json=-"]
    assert main(command) in {0, 1}
    (figure,) = json.loads(capsys.readouterr().out)["benchmarks"]["pacing"]
    assert 0.0 < figure["value"] < 1.05
    assert figure["goal"] == "0.98 to 1.02"


@needs_gcc
def test_decisions_are_measured_up_to_the_page(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(decisions, "_JOBS", (10,))
    monkeypatch.setattr(decisions, "_EVENTS", 50)
    command = ["bench", "decisions", "--rounds=1", f"--folder={tmp_path}", "--json=-"]
    assert main(command) in {0, 1}
    figures = json.loads(capsys.readouterr().out)["benchmarks"]["decisions"]
    # Three figures of two policies in two loads; reports of jobs; time to the page.
    assert len(figures) == 2 * 2 * 3 + 1 + 2
    assert all(figure["value"] > 0.0 for figure in figures)
    # A grant that never arrives would show as the time limit of a phase, one second.
    assert figures[-2]["name"] == "to the page, p50"
    assert figures[-2]["value"] < 1000.0


@pytest.mark.parametrize("names", [["pace"], ["overhead", "nothing"]])
def test_an_unknown_benchmark_gives_one_message(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *names]) == 2
    assert f"known: {', '.join(sorted(BENCHES))}" in capsys.readouterr().err


def test_help_lists_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "help"]) == 0
    assert capsys.readouterr().out.count("\n") == len(BENCHES)
