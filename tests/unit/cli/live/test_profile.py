# SPDX-License-Identifier: MIT
"""``penstock profile``: a table, a line for the settings, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.live.settings import load_settings
from penstock.live.staging import profile


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return two targets on which 100 and 150 MB/s are measured."""
    for name in "ab":
        (tmp_path / name).mkdir()
    monkeypatch.setattr(profile, "measure_profile", lambda *_: [1e8, 1.5e8])
    return f"directories:{tmp_path}:a,b"


def test_the_last_line_is_a_setting(
    targets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", targets]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["targets  bandwidth", "      1  100 MB/s", "      2  150 MB/s"]
    path = tmp_path / "penstock.toml"
    path.write_text(lines[-1])
    settings = load_settings({}, {"PENSTOCK_SETTINGS": str(path)})
    assert settings.target_bandwidths == (1e8, 1.5e8)


def test_the_rates_as_json(targets: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", targets, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "penstock": 1,
        "targets": ["a", "b"],
        "bandwidth": [1e8, 1.5e8],
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "names no targets"),
        (["directories:/tmp:a", "--volume", "much"], "--volume"),
    ],
)
def test_mistakes_are_answered_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
