# SPDX-License-Identifier: MIT
"""``penstock reproduce``: outcomes in words, counts, and the text after them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.simulation import reproduce


@pytest.mark.parametrize(
    ("scale", "holds", "hinted"),
    [("smoke", False, True), ("smoke", True, False), ("paper", False, False)],
)
def test_verdicts_at_a_small_scale_are_marked_as_indicative(
    scale: str,
    *,
    holds: bool,
    hinted: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    claims = [{"holds": True, "says": "x"}, {"holds": holds, "says": "y"}]
    _run([_record(claims)], monkeypatch, "--scale", scale, "-o", str(tmp_path))
    assert ("indicative: --scale paper" in capsys.readouterr().out) == hinted


def test_outcomes_in_words_and_counts_by_paper(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = "contradicted by the paper's own figure"
    first = [
        {"holds": True, "outcome": "holds", "says": "One."},
        {"holds": False, "outcome": "does not hold", "says": "Two."},
        {"holds": False, "outcome": "depends on", "depends_on": "K", "says": "Three."},
        {"holds": False, "outcome": own, "says": "Four."},
    ]
    records = [_record(first, "paper a"), _record(first[:1], "paper b")]
    _run(records, monkeypatch, "-o", str(tmp_path))
    output = capsys.readouterr().out
    for line in (
        "  holds                      One.",
        "  DOES NOT HOLD              Two.",
        "  DEPENDS on K               Three.",
        "  CONTRADICTED by the paper  Four.",
    ):
        assert f"{line}\n" in output
    counts = [line.split() for line in output.splitlines()]
    assert ["paper", "a", "4", "1", "1", "1", "1"] in counts
    assert ["paper", "b", "1", "1", "0", "0", "0"] in counts
    assert ["all", "papers", "5", "2", "1", "1", "1"] in counts
    page = tmp_path / "what-holds.html"
    assert output.endswith(f"\npages: {tmp_path / 'index.html'}, {page}\n")


def _record(claims: list[dict[str, Any]], paper: str = "") -> dict[str, Any]:
    return {"name": "p1-fig1", "title": "t", "paper": paper, "claims": claims}


def _run(
    records: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, *words: str
) -> None:
    """Run the command; it computes nothing and has these results."""
    monkeypatch.setattr(
        "penstock.experiments.reproduction.reproduce_all", lambda *_: records
    )
    parser = argparse.ArgumentParser()
    reproduce.setup_parser(parser)
    assert reproduce.main(parser.parse_args(["p1-fig4", "--jobs", "1", *words])) == 0
