# SPDX-License-Identifier: MIT
"""Whose a file is: conditions about processes, and that nobody claims another's job."""

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
    """Return descriptors of a file ``/sub/file`` and of the folder above all."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").touch()
    fds = os.open(tmp_path / "sub" / "file", os.O_RDONLY), os.open(tmp_path, os.O_PATH)
    yield fds
    for fd in fds:
        os.close(fd)


def caller(
    opened: tuple[int, int], pid: int = 0, uid: int = 7, **kw: Path
) -> FileOpener:
    return FileOpener(pid or os.getpid(), uid, *opened, **kw)


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ("/", True),
        ("/sub", True),
        ("/sub/file", True),
        ("/su", False),
        ("/sub/fil", False),
        ("/other", False),
    ],
)
def test_paths_are_seen_from_the_mount_point(
    opened: tuple[int, int], path: str, fits: bool
) -> None:
    assert Rule("a", path=path).fits(caller(opened)) is fits


def test_users(opened: tuple[int, int]) -> None:
    assert Rule("a", user=7).fits(caller(opened))
    assert not Rule("a", user=8).fits(caller(opened))
    assert not Rule("a", user=0).fits(caller(opened))


def test_programs_by_file_and_by_name(opened: tuple[int, int]) -> None:
    file = Path(sys.executable).resolve().name
    assert Rule("a", program=file).fits(caller(opened))
    assert Rule("a", program=f"{file[:3]}*").fits(caller(opened))
    assert not Rule("a", program="no-such").fits(caller(opened))


def test_control_groups(opened: tuple[int, int], tmp_path: Path) -> None:
    process = tmp_path / "proc" / "12"
    process.mkdir(parents=True)
    (process / "cgroup").write_text("1:cpu:/\n0::/slurm/job_4711/step_0\n")
    who = caller(opened, 12, proc=tmp_path / "proc")
    assert Rule("a", cgroup="*/job_4711/*").fits(who)
    assert not Rule("a", cgroup="*/job_47/*").fits(who)


def test_all_conditions_of_a_rule_must_hold_and_the_first_rule_decides(
    opened: tuple[int, int],
) -> None:
    rules = [
        Rule("a", user=7, path="/other"),
        Rule("b", user=7, path="/sub"),
        Rule("c", user=7),
    ]
    assert application_of(caller(opened), rules, "rest") == "b"
    assert application_of(caller(opened), rules[:1], "rest") == "rest"


def test_a_process_that_is_gone_fits_only_what_the_kernel_said(
    opened: tuple[int, int],
) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    who = caller(opened, process.pid)
    assert not Rule("a", program="*rue").fits(who)
    assert not Rule("a", cgroup="*").fits(who)
    assert not Rule("a", job="*").fits(who)
    assert Rule("a", user=7).fits(who)


def in_job(tmp_path: Path, note: object, uid: int, pid: int = 5) -> FileOpener:
    process = tmp_path / "proc" / str(pid)
    process.mkdir(parents=True, exist_ok=True)
    page = tmp_path / "x.page"
    (process / "environ").write_bytes(b"A=b\0PENSTOCK_PAGE=%s\0" % bytes(page))
    page.with_suffix(".note").write_text(json.dumps(note))
    return FileOpener(pid, uid, 0, 0, tmp_path / "proc")


def test_jobs_of_live_control(tmp_path: Path) -> None:
    who = in_job(tmp_path, {"job": "7:sim-1", "user": 7, "more": []}, uid=7)
    assert Rule("a", job="sim-*").fits(who)
    assert not Rule("a", job="other").fits(who)


@pytest.mark.parametrize(
    "note", [{"job": "8:sim-1", "user": 8}, {"user": 7}, "nonsense", {}]
)
def test_nobody_claims_what_is_not_theirs(tmp_path: Path, note: object) -> None:
    assert not Rule("a", job="*").fits(in_job(tmp_path, note, uid=7))


def test_a_note_that_somebody_else_wrote_does_not_count(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root")
    who = in_job(tmp_path, {"job": "7:sim-1", "user": 7}, uid=7)
    os.chown(tmp_path / "x.note", 7, 7)
    assert not Rule("a", job="*").fits(who)
