# SPDX-License-Identifier: MIT
"""``penstock compare`` marks the recommended policy, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli import main
from penstock.policies import POLICIES, RECOMMENDED

THREE = str(Path(__file__).parents[4] / "examples" / "three.json")


def _lines(capsys: pytest.CaptureFixture[str], *policies: str) -> list[str]:
    options = [f"--policy={policy}" for policy in policies]
    assert main(["compare", THREE, "--no-bound", *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_recommended_policy_is_one_of_the_table() -> None:
    assert RECOMMENDED in POLICIES


def test_the_recommended_policy_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    head, *lines = _lines(capsys, "fcfs", RECOMMENDED)
    assert head.endswith(", > recommended")
    assert [line.split()[0] for line in lines if ">" in line] == [RECOMMENDED]


def test_the_mark_does_not_shift_the_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = _lines(capsys, "fcfs", RECOMMENDED)
    starts = {line.index(".") for line in lines[3:]}
    assert len(starts) == 1


def test_without_the_recommended_policy_there_is_no_legend(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not [line for line in _lines(capsys, "fcfs") if "recommended" in line]
