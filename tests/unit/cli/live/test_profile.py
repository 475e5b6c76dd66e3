# SPDX-License-Identifier: MIT
"""``penstock profile``: a table, a file that is kept, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.live.settings import load_settings
from penstock.live.staging import profile
from penstock.live.staging.kept_profiles import kept_profile


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return two targets on which 100 and 150 MB/s are measured."""
    for name in "ab":
        (tmp_path / name).mkdir()
    monkeypatch.setattr(profile, "measure_profile", lambda *_: [1e8, 1.5e8])
    return f"directories:{tmp_path}:a,b"


def test_what_is_measured_is_kept(
    targets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    assert main(["profile", targets, f"--folder={home}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["targets  bandwidth", "      1  100 MB/s", "      2  150 MB/s"]
    path = load_settings({"folder": str(home)}, {}, "/dev/null").profiles_file
    assert lines[-1] == f"kept in {path}"
    assert kept_profile(path, targets) == (1e8, 1.5e8)
    assert main(["profile", targets, f"--state={tmp_path}/s.sqlite"]) == 0
    assert kept_profile(tmp_path / "s-targets.json", targets) == (1e8, 1.5e8)


def test_a_damaged_file_is_refused_before_anything_is_measured(
    targets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s-targets.json").write_text("{")
    assert main(["profile", targets, f"--state={tmp_path}/s.sqlite"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "delete the file, and measure again" in line


def test_the_rates_as_json(
    targets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"--state={tmp_path}/s.sqlite", "--json", "-"]
    assert main(["profile", targets, *words]) == 0
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
        (["directories:/tmp:a", "--volume", "0"], "--volume: '0' is nothing to write"),
        (["directories:/:nothing-of-this-name"], "unknown target"),
        (["moosefs:/mnt:AB"], "is not the label of a chunkserver"),
    ],
)
def test_mistakes_are_answered_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
