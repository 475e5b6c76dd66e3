# SPDX-License-Identifier: MIT
"""``penstock policies``: the table, and the description of one plug-in."""

from __future__ import annotations

import pytest

from penstock.cli import main


def test_a_name_shows_the_rule_and_the_parameters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["policies", "set-10"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("policy set-10\n")
    assert "10^-n" in shown
    for parameter in ("initial", "initial_weight", "update", "period"):
        assert f"\n  {parameter} " in shown
    assert "completion, post, strict" in shown


def test_a_name_of_two_kinds_shows_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "random"]) == 0
    shown = capsys.readouterr().out
    assert "allocation random\n" in shown
    assert "placement random\n" in shown


def test_a_plug_in_without_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "fcfs"]) == 0
    assert capsys.readouterr().out.endswith("no parameters\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["set-11"], "unknown name 'set-11'"),
        (["set-10", "--json", "-"], "--json takes no NAME"),
    ],
)
def test_mistakes(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policies", *arguments]) == 2
    assert message in capsys.readouterr().err
