# SPDX-License-Identifier: MIT
"""``penstock drain``: what it prints, its exit status, and its JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.live.staging.drainers import Leftover
from support.journals import HandMadeJournal


@pytest.fixture
def made(tmp_path: Path) -> HandMadeJournal:
    journal = HandMadeJournal(tmp_path)
    journal.append(0, b"data")
    return journal


def test_a_drain_is_reported_and_can_be_repeated(
    made: HandMadeJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drain", str(made.folder)]) == 0
    assert capsys.readouterr().out == f"drained: {made.file}, 4 bytes written\n"
    assert main(["drain", str(made.folder)]) == 0
    assert capsys.readouterr().out == f"no journals in {made.folder}\n"
    assert made.file.read_bytes() == b"data"


def test_show_drains_nothing(
    made: HandMadeJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drain", "--show", str(made.folder)]) == 0
    line = f"orphan: {made.file}, 4 bytes not in the file yet\n"
    assert capsys.readouterr().out == line
    assert made.file.read_bytes() == b""


def test_a_file_is_not_a_folder_of_journals(
    made: HandMadeJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drain", "--show", str(made.file)]) == 2
    said = capsys.readouterr().err
    assert f"{made.file}: is a file, not a folder of journals" in said


def test_show_names_the_part_of_a_redirected_file(
    made: HandMadeJournal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.move_to_part(part := tmp_path / "part")
    assert main(["drain", "--show", str(made.folder)]) == 0
    assert capsys.readouterr().out == (
        f"orphan: {made.file}, 4 bytes not in the file yet but in its part {part}\n"
    )


def test_a_journal_that_is_kept_makes_the_status_1(
    made: HandMadeJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    made.file.unlink()
    assert main(["drain", str(made.folder)]) == 1
    assert "kept: " in (text := capsys.readouterr().out)
    assert "the file is not there any more" in text


def test_journals_that_were_put_aside_are_counted(
    made: HandMadeJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    made.path.rename(made.path.with_suffix(".failed"))
    assert main(["drain", str(made.folder)]) == 0
    expected = f"1 put aside: penstock drain --failed {made.folder}\n"
    assert capsys.readouterr().out == expected
    assert main(["drain", "--failed", str(made.folder)]) == 0
    assert made.file.read_bytes() == b"data"


def test_json_has_every_field_of_a_journal(
    made: HandMadeJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drain", "--json", "-", str(made.folder)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "penstock": 1,
        "folders": [str(made.folder)],
        "journals": [
            {
                "journal": str(made.path),
                "file": str(made.file),
                "state": "drained",
                "pending_bytes": 0,
                "drained_bytes": 4,
                "process": 4242,
                "reason": "",
                "part": "",
            }
        ],
    }


def test_the_default_folder_need_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_STAGING", str(tmp_path / "none"))
    assert main(["drain"]) == 0
    assert capsys.readouterr().out == f"no journals in {tmp_path / 'none'}\n"
    assert main(["drain", str(tmp_path / "none")]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["option", "file"])
def test_folders_of_the_setting_are_looked_at_too(
    made: HandMadeJournal,
    how: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PENSTOCK_STAGING", str(tmp_path / "none"))
    pattern = f"{made.folder.parent}/{made.folder.name[:-1]}*"
    words = ["--journals", pattern]
    if how == "file":
        (tmp_path / "site.toml").write_text(f'journals = "{pattern}"\n')
        words = ["--settings", str(tmp_path / "site.toml")]
    assert main(["drain", "--show", *words]) == 0
    line = f"orphan: {made.file}, 4 bytes not in the file yet\n"
    assert capsys.readouterr().out == line
    assert main(["drain", *words, "--json", "-"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["folders"] == [str(tmp_path / "none"), str(made.folder)]
    assert made.file.read_bytes() == b"data"


def test_folders_of_others_are_not_drained_unasked(
    made: HandMadeJournal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_STAGING", str(tmp_path / "none"))
    monkeypatch.setattr(
        "penstock.live.staging.drain.left_behind",
        lambda _: [Leftover(made.folder, os.geteuid() + 1)],
    )
    assert main(["drain", "--journals", str(made.folder)]) == 0
    assert made.file.read_bytes() == b""
