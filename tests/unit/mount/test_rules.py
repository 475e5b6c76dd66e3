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


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", True),
        ("/system.slice/n1_slurmstepd.scope/job_4711", True),
        ("/slurm/uid_1000/job_4711/step_batch", True),
        ("/slurm_n1/uid_1000/job_4711/step_0", True),
        ("/system.slice/slurmstepd.scope/job_47110/step_0", False),
        # A user can make these below a control group of its own.
        ("/user.slice/user-7.slice/user@7.service/job_4711/step_0", False),
        ("/user.slice/user-7.slice/slurm/uid_7/job_4711", False),
        ("/system.slice/slurmstepd.scope/job_1/step_0/user/x/job_4711/step_0", False),
    ],
)
def test_a_job_of_slurm_is_known_by_the_control_group_that_slurm_has_made(
    tmp_path: Path, path: str, matches: bool
) -> None:
    process = tmp_path / "12"
    process.mkdir()
    (process / "cgroup").write_text(f"1:cpu:/\n0::{path}\n")
    assert Rule("a", slurm_job="4711").matches(opener(12, tmp_path)) is matches
    assert Rule("a", slurm_job="4711", user=8).matches(opener(12, tmp_path)) is False


def test_a_group_is_the_own_one_or_a_supplementary_one(tmp_path: Path) -> None:
    process = tmp_path / "12"
    process.mkdir()
    status = "Name:\tx\nGid:\t5\t6\t5\t6\nGroups:\t20 30 \n"
    (process / "status").write_text(status)
    groups = [n for n in range(40) if Rule("a", group=n).matches(opener(12, tmp_path))]
    assert groups == [6, 20, 30]


@pytest.mark.parametrize("end", ["\r", "\v", "\x1c", "\x85", "\u2028"])
def test_names_that_a_user_chooses_add_no_lines(tmp_path: Path, end: str) -> None:
    """Neither the name of a process nor that of a control group forges a rule."""
    (process := tmp_path / "12").mkdir()
    forged = "0::/system.slice/slurmstepd.scope/job_4711"
    (process / "cgroup").write_bytes(f"0::/user/x{end}{forged}\n".encode())
    status = f"Name:\tx{end}Groups:\t40\nGid:\t5\t5\t5\t5\nGroups:\t20 \n"
    (process / "status").write_bytes(status.encode())
    opened_by = opener(12, tmp_path)
    assert opened_by.cgroups == [f"/user/x{end}{forged}"]
    assert not Rule("a", slurm_job="*").matches(opened_by)
    assert opened_by.groups == [5, 20]


def test_a_process_whose_name_is_not_text_has_one_name(tmp_path: Path) -> None:
    (process := tmp_path / "12").mkdir()
    (process / "comm").write_bytes(b"\xff\r\n\n")
    assert opener(12, tmp_path).programs == ["\udcff\r\n"]


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
    assert not Rule("a", slurm_job="*").matches(opened_by)
    assert not Rule("a", group=os.getegid()).matches(opened_by)
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


def test_a_link_to_a_trusted_note_is_ignored(tmp_path: Path) -> None:
    """Between a look at the link and the reading it could lead to another file."""
    opened_by = in_job(tmp_path, {"job": "7:sim-1", "user": 7}, uid=7)
    (tmp_path / "x.note").rename(tmp_path / "real")
    (tmp_path / "x.note").symlink_to("real")
    assert not Rule("a", job="*").matches(opened_by)


def test_a_pipe_instead_of_a_note_blocks_nobody(tmp_path: Path) -> None:
    opened_by = in_job(tmp_path, {"job": "7:sim-1", "user": 7}, uid=7)
    (tmp_path / "x.note").unlink()
    os.mkfifo(tmp_path / "x.note")
    assert not Rule("a", job="*").matches(opened_by)
