# SPDX-License-Identifier: MIT
"""``penstock reproduce``: the text after the verdicts."""

from __future__ import annotations

import argparse
from pathlib import Path

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
    record = {"name": "p1-fig1", "title": "t", "claims": claims}
    monkeypatch.setattr(
        "penstock.experiments.reproduction.reproduce_all", lambda *_: [record]
    )
    words = ("p1-fig4", "--scale", scale, "--jobs", "1", "-o", str(tmp_path))
    parser = argparse.ArgumentParser()
    reproduce.setup_parser(parser)
    assert reproduce.main(parser.parse_args(words)) == 0
    assert ("indicative: --scale paper" in capsys.readouterr().out) == hinted
