# SPDX-License-Identifier: MIT
"""Rules: conditions about processes, and that no program claims another user's job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.mount.rules import FileOpener, Rule, application_of


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Return descriptors of a file ``/sub/file`` and of the mounted folder."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").touch()
    fds = os.open(tmp_path / "sub" / "file", os.O_RDONLY), os.open(tmp_path, os.O_PATH)
    yield fds
    for fd in fds:
        os.close(fd)


def opener(
    opened: tuple[int, int], pid: int = 0, proc: Path = Path("/proc")
) -> FileOpener:
    fd, root = opened
    return FileOpener(pid or os.getpid(), 7, fd, root, proc)


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("/", True),
        ("/sub", True),
        ("/sub/file", True),
        ("/su", False),
        ("/sub/fil", False),
        ("/other", False),
    ],
)
def test_paths_are_relative_to_the_mount_point(
    opened: tuple[int, int], path: str, matches: bool
) -> None:
    assert Rule("a", path=path).matches(opener(opened)) is matches


def test_a_user_is_matched_by_number(opened: tuple[int, int]) -> None:
    assert Rule("a", user=7).matches(opener(opened))
    assert not Rule("a", user=8).matches(opener(opened))
    assert not Rule("a", user=0).matches(opener(opened))


def test_a_program_is_matched_by_executable_and_by_pattern(
    opened: tuple[int, int],
) -> None:
    file = Path(sys.executable).resolve().name
    assert Rule("a", program=file).matches(opener(opened))
    assert Rule("a", program=f"{file[:3]}*").matches(opener(opened))
    assert not Rule("a", program="no-such").matches(opener(opened))


def test_a_control_group_is_matched_by_its_path(
    opened: tuple[int, int], tmp_path: Path
) -> None:
    process = tmp_path / "proc" / "12"
    process.mkdir(parents=True)
    (process / "cgroup").write_text("1:cpu:/\n0::/slurm/job_4711/step_0\n")
    opened_by = opener(opened, 12, proc=tmp_path / "proc")
    assert Rule("a", cgroup="*/job_4711/*").matches(opened_by)
    assert not Rule("a", cgroup="*/job_47/*").matches(opened_by)


def test_all_conditions_of_a_rule_must_hold_and_the_first_rule_decides(
    opened: tuple[int, int],
) -> None:
    rules = [
        Rule("a", user=7, path="/other"),
        Rule("b", user=7, path="/sub"),
        Rule("c", user=7),
    ]
    assert application_of(opener(opened), rules, "other") == "b"
    assert application_of(opener(opened), rules[:1], "other") == "other"


def test_a_process_that_has_ended_matches_only_by_user(
    opened: tuple[int, int],
) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    opened_by = opener(opened, process.pid)
    assert not Rule("a", program="*rue").matches(opened_by)
    assert not Rule("a", cgroup="*").matches(opened_by)
    assert not Rule("a", job="*").matches(opened_by)
    assert Rule("a", user=7).matches(opened_by)


def in_job(tmp_path: Path, note: object, uid: int, pid: int = 5) -> FileOpener:
    process = tmp_path / "proc" / str(pid)
    process.mkdir(parents=True, exist_ok=True)
    page = tmp_path / "x.page"
    (process / "environ").write_bytes(b"A=b\0PENSTOCK_PAGE=%s\0" % bytes(page))
    page.with_suffix(".note").write_text(json.dumps(note))
    return FileOpener(pid, uid, 0, 0, tmp_path / "proc")


def test_a_job_of_live_control_is_matched_by_name(tmp_path: Path) -> None:
    opened_by = in_job(tmp_path, {"job": "7:sim-1", "user": 7, "more": []}, uid=7)
    assert Rule("a", job="sim-*").matches(opened_by)
    assert not Rule("a", job="other").matches(opened_by)


@pytest.mark.parametrize(
    "note", [{"job": "8:sim-1", "user": 8}, {"user": 7}, "nonsense", {}]
)
def test_a_note_of_another_user_or_garbage_is_ignored(
    tmp_path: Path, note: object
) -> None:
    assert not Rule("a", job="*").matches(in_job(tmp_path, note, uid=7))


def test_a_note_that_another_user_owns_is_ignored(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root")
    opened_by = in_job(tmp_path, {"job": "7:sim-1", "user": 7}, uid=7)
    os.chown(tmp_path / "x.note", 7, 7)
    assert not Rule("a", job="*").matches(opened_by)
