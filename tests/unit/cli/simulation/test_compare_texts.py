# SPDX-License-Identifier: MIT
"""``penstock compare``: the texts of its table, and help texts of all simulations."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.cli.simulation import compare, generate, place, reproduce, study
from penstock.model import write_instance
from unit.samples import app, make, pair

SMALL = ("--set", "horizon=2000", "--set", "pressure=1")


def _output(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    assert main(words) == 0
    out, err = capsys.readouterr()
    return out.splitlines(), err


@pytest.fixture
def instance(tmp_path: Path) -> str:
    write_instance(pair(), path := tmp_path / "pair.json")
    return str(path)


def test_one_instance_names_its_worst_application(
    instance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, errors = _output(capsys, "compare", instance, "--policy", "fcfs")
    header, fcfs = lines[2], lines[-1]
    assert header.split()[-1] == "worst"
    assert fcfs.index(" b") + 1 == header.index("worst")
    assert errors.startswith("1 run, ")


def test_several_instances_have_their_spread_and_no_worst_application(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--instances", "2", "--policy", "fcfs", "--no-bound", "--jobs", "1")
    lines, errors = _output(capsys, "compare", *SMALL, *options)
    assert lines[0] == (
        "workload synthetic: pressure=1, applications=60, n_small=-1, sigma=0.5, "
        "noise=0.5, horizon=2000; seed 1"
    )
    assert lines[3].endswith("Stretch")
    assert lines[3].split()[2:4] == ["(10-90", "%)"]
    low, high = map(float, lines[4].split()[2].split("-"))
    assert low <= high <= 1.0
    assert errors.startswith("2 runs, ")


@pytest.mark.parametrize(
    ("name", "shown"), [("x" * 300, f"{'x' * 39}…"), ("x" * 40, "x" * 40)]
)
def test_a_long_name_is_cut_in_the_table(
    tmp_path: Path, name: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = ("io", 3.0), ("work", 20.0)
    write_instance(make(app("a", *phases), app(name, *phases)), tmp_path / "i.json")
    lines, _ = _output(capsys, "compare", str(tmp_path / "i.json"), "--policy", "fcfs")
    assert lines[-1].split()[-1] == shown


def test_without_delays_no_application_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_instance(make(app("a", ("work", 20.0))), tmp_path / "i.json")
    lines, _ = _output(capsys, "compare", str(tmp_path / "i.json"), "--policy", "fcfs")
    assert lines[-1].split()[-1] == "-"


def test_the_document_gives_the_yield_of_every_application(
    instance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, _ = _output(capsys, "compare", instance, "--policy", "fcfs", "--json", "-")
    (result,) = json.loads("\n".join(lines))["instances"]
    yields = result["policies"]["fcfs"]["yields"]
    assert dict(zip(result["applications"], yields, strict=True)) == {"a": 1, "b": 0.7}


@pytest.mark.parametrize("command", [compare, generate, place, reproduce, study])
def test_every_option_has_a_help_text(command: Any) -> None:
    parser = argparse.ArgumentParser()
    command.setup_parser(parser)
    assert all(action.help for action in parser._actions)
