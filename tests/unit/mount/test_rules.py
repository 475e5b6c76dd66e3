# SPDX-License-Identifier: MIT
"""Rules: conditions about processes, and that no program claims another user's job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.mount.rules import FileOpener, Rule, application_of


def opener(pid: int = 0, proc: Path = Path("/proc")) -> FileOpener:
    return FileOpener(pid or os.getpid(), 7, "/sub/file", proc)


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
def test_paths_are_relative_to_the_mount_point(path: str, matches: bool) -> None:
    assert Rule("a", path=path).matches(opener()) is matches


def test_a_user_is_matched_by_number() -> None:
    assert Rule("a", user=7).matches(opener())
    assert not Rule("a", user=8).matches(opener())
    assert not Rule("a", user=0).matches(opener())


def test_a_program_is_matched_by_executable_and_by_pattern() -> None:
    file = Path(sys.executable).resolve().name
    assert Rule("a", program=file).matches(opener())
    assert Rule("a", program=f"{file[:3]}*").matches(opener())
    assert not Rule("a", program="no-such").matches(opener())


def test_a_control_group_is_matched_by_its_path(tmp_path: Path) -> None:
    process = tmp_path / "proc" / "12"
    process.mkdir(parents=True)
    (process / "cgroup").write_text("1:cpu:/\n0::/slurm/job_4711/step_0\n")
    opened_by = opener(12, proc=tmp_path / "proc")
    assert Rule("a", cgroup="*/job_4711/*").matches(opened_by)
    assert not Rule("a", cgroup="*/job_47/*").matches(opened_by)


def test_all_conditions_of_a_rule_must_hold_and_the_first_rule_decides() -> None:
    rules = [
        Rule("a", user=7, path="/other"),
        Rule("b", user=7, path="/sub"),
        Rule("c", user=7),
    ]
    assert application_of(opener(), rules, "other") == "b"
    assert application_of(opener(), rules[:1], "other") == "other"


def test_a_process_that_has_ended_matches_only_by_user() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    opened_by = opener(process.pid)
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
    return FileOpener(pid, uid, "/file", tmp_path / "proc")


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
