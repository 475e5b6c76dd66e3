# SPDX-License-Identifier: MIT
"""Logs are found in folders, and their format in their content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.advice.importing.sources import LogFile, find_logs
from penstock.advice.logs.record import Skipped
from penstock.errors import InputError, UnknownNameError
from support.darshan_logs import LOGS


def _found(path: Path, chosen: str = "auto") -> list[LogFile | Skipped]:
    return list(find_logs([str(path)], chosen))


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.darshan", "", "darshan"),
        ("a", "JobID|Start|End\n", "slurm"),
        ("a.json", '{"jobs": []}', "slurm"),
        ("a.txt", "; Version: 2\n" + "1 " * 18 + "\n", "swf"),
        ("a.jsonl", '{"read_sync": {}}\n', "tmio"),
        ("a.csv", "begin,end,job,bytes,nodes\n", "csv"),
        ("a.db", "SQLite format 3\0rest", "history"),
    ],
)
def test_the_content_tells_the_format(
    name: str, content: str, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert _found(path) == [LogFile(path, kind)]


def test_a_darshan_log_is_known_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes((LOGS / "dlio-worker.darshan").read_bytes())
    assert _found(path) == [LogFile(path, "darshan")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "the file is empty"),
        ("hello\n", "not a log of a known format"),
        ('{"a": 1}', "not a log of a known format"),
        ("hello\n", "known: Darshan, sacct"),
        ("4711|a|2026-01-01T00:00:00|\n", "without a header"),
        ("job;begin;end;bytes\na;0;1;5\n", "CSV with semicolons"),
        ("job\tbegin\tend\tbytes\n", "CSV with tabs"),
        ('{"penstock": 1, "platform": {}}', "a file of penstock"),
    ],
)
def test_other_files_are_skipped(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(content)
    (item,) = _found(path)
    assert isinstance(item, Skipped)
    assert reason in item.reason


def test_a_folder_stands_for_the_files_below_it(tmp_path: Path) -> None:
    for name in ("b/2.darshan", "a/1.darshan", "c.darshan", ".hidden.darshan"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b" / "trace" / "_text").mkdir(parents=True)
    found = [item for item in _found(tmp_path) if isinstance(item, LogFile)]
    names = [str(item.path.relative_to(tmp_path)) for item in found]
    assert names == ["a/1.darshan", "b/2.darshan", "b/trace", "c.darshan"]
    assert found[2].format == "recorder"


def test_a_given_format_is_not_questioned(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("hello")
    assert _found(path, "swf") == [LogFile(path, "swf")]


def test_unknown_names_and_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        _found(tmp_path / "nowhere")
    with pytest.raises(UnknownNameError, match="darshan"):
        _found(tmp_path, "pbs")


def test_a_file_that_is_reached_twice_counts_once(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.darshan").touch()
    (folder / "link.darshan").symlink_to("a.darshan")
    (folder / "loop").symlink_to(folder)
    names = [str(folder), str(folder / "a.darshan")]
    assert list(find_logs(names, "auto")) == [
        LogFile(folder / "a.darshan", "darshan"),
    ]


def test_a_folder_that_cannot_be_read_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "a.darshan").touch()
    scan = os.scandir

    def refuse(path: Path) -> object:
        if path.name == "secret":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    log, skipped = _found(tmp_path)
    assert isinstance(log, LogFile)
    assert isinstance(skipped, Skipped)
    assert skipped.reason == "cannot read the folder: Permission denied"
