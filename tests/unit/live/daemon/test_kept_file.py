# SPDX-License-Identifier: MIT
"""What a daemon keeps for its next start; a useless file does not disturb."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.live.daemon.kept_file import KeptContent, KeptFile

LOG = logging.getLogger("penstock.test")


class Words(KeptContent, frozen=True):
    words: list[str]


def _file(path: Path) -> KeptFile[Words]:
    return KeptFile(path, Words, 1, LOG, consequence="nothing is lost")


def test_what_was_written_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "words.json"
    assert _file(path).read() is None
    _file(path).write(Words(1, ["a", "b"]))
    assert _file(path).read() == Words(1, ["a", "b"])
    assert path.read_bytes() == b'{"version":1,"words":["a","b"]}'
    assert [each.name for each in tmp_path.iterdir()] == ["words.json"]
    assert caplog.text == ""


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b'{"words": []}',
        b'{"version": 1, "words": [1]}',
        b'{"version": 1, "words": ["\xff"]}',
        b'{"version": 99, "words": []}',
    ],
)
def test_a_file_that_cannot_be_used_is_ignored(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "words.json"
    path.write_bytes(content)
    assert _file(path).read() is None
    assert f"{path} is ignored" in caplog.text


def test_a_folder_in_its_place_is_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert _file(tmp_path).read() is None
    assert f"{tmp_path} is ignored" in caplog.text


def test_a_problem_is_logged_once_until_a_write_succeeds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.write_text("not a folder")
    file = _file(folder / "words.json")
    for _ in range(3):
        file.write(Words(1, []))
    assert caplog.text.count("nothing is lost") == 1
    folder.unlink()
    file.write(Words(1, ["a"]))
    assert file.read() == Words(1, ["a"])
    (folder / "words.json").unlink()
    folder.rmdir()
    folder.write_text("not a folder")
    file.write(Words(1, []))
    assert caplog.text.count("nothing is lost") == 2
