# SPDX-License-Identifier: MIT
"""``penstock bound``: the pressure above its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli import main
from penstock.model import write_instance
from unit.samples import pair

SMALL = ("--set", "horizon=2000", "--set", "pressure=1")


def _first_line(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["bound", *words]) == 0
    return capsys.readouterr().out.splitlines()[0]


def test_a_workload_shows_the_aimed_pressure_beside_the_measured_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _first_line(capsys, *SMALL).endswith(" (aimed at 1: not reached)")


def test_a_file_shows_the_measured_pressure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_instance(pair(), tmp_path / "pair.json")
    line = _first_line(capsys, str(tmp_path / "pair.json"))
    assert line.endswith("I/O pressure 0.600")
