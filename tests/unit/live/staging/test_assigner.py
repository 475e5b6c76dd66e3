# SPDX-License-Identifier: MIT
"""Folders are put on targets by their users, in processes of these users."""

from __future__ import annotations

import io
import json
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.errors import InputError
from penstock.live.staging import assigner as assigner_module
from penstock.live.staging.assigner import (
    AssignedFolder,
    FolderAssigner,
    FolderOrder,
    assign_as,
)
from penstock.live.staging.drivers.driver import SubFolderError
from support.users import NEEDS_ROOT, open_for_all, two_known_users

UNKNOWN = 4_000_000_000


@pytest.fixture
def assigner(tmp_path: Path) -> FolderAssigner:
    """Return one for two plain targets that all users can write to."""
    for name in "xy":
        (tmp_path / "targets" / name).mkdir(parents=True)
        (tmp_path / "targets" / name).chmod(0o1777)
    (tmp_path / "users").mkdir()
    (tmp_path / "users").chmod(0o1777)
    open_for_all(tmp_path)
    targets = f"directories:{tmp_path}/targets:x,y"
    return FolderAssigner(targets, f"{tmp_path}/users/{{user}}/{{job}}", all_users=True)


def _assign(assigner: FolderAssigner, user: int, *jobs: str) -> list[AssignedFolder]:
    orders = [FolderOrder(job, ("y", "x")) for job in jobs]
    return assign_as(user, assigner, orders, threading.Event())


def test_a_folder_of_this_user_is_assigned_here(
    tmp_path: Path, assigner: FolderAssigner
) -> None:
    answer = assigner.assign(os.geteuid(), FolderOrder("sim", ("y",)))
    assert answer.failure == ""
    name = Path(answer.folder).parent.name
    targets = (tmp_path / "targets").resolve()
    assert answer.roots == tuple(f"{targets}/{target}/{name}" for target in "xy")
    assert Path(answer.folder, "0").resolve() == targets / "y" / name
    assert not (targets / "x" / name).exists()


@NEEDS_ROOT
def test_all_that_is_made_belongs_to_the_user(
    tmp_path: Path, assigner: FolderAssigner
) -> None:
    user, _ = two_known_users()
    good, bad, again = _assign(assigner, user.pw_uid, "sim", "..", "sim")
    assert good == again
    assert good.folder == str(tmp_path / "users" / user.pw_name / "sim")
    assert "cannot be the name of a folder" in bad.failure
    made = [*(tmp_path / "users").rglob("*"), *(tmp_path / "targets").glob("*/*")]
    assert len(made) == 6
    owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in made}
    assert owners == {(user.pw_uid, user.pw_gid)}


def test_sub_folders_that_are_left_out_are_no_failure(
    assigner: FolderAssigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assign(*_: object) -> None:
        raise SubFolderError("1 sub-folders keep their targets")

    monkeypatch.setattr(type(assigner.driver), "assign", assign)
    answer = assigner.assign(os.geteuid(), FolderOrder("sim", ("y",)))
    assert (answer.failure, Path(answer.folder).name) == ("", "sim")
    assert "keep their targets" in answer.left_out


@NEEDS_ROOT
def test_the_kernel_refuses_what_the_user_may_not_do(
    tmp_path: Path, assigner: FolderAssigner
) -> None:
    (tmp_path / "targets" / "x").chmod(0o755)
    user, other = two_known_users()
    (answer,) = _assign(assigner, user.pw_uid, "sim")
    assert f"targets/x/{user.pw_name}: Permission denied" in answer.failure
    (tmp_path / "users").chmod(0o755)
    (answer,) = _assign(assigner, other.pw_uid, "sim")
    assert "cannot make the folder: Permission denied" in answer.failure
    assert [path.name for path in (tmp_path / "users").iterdir()] == [user.pw_name]


@NEEDS_ROOT
def test_a_target_that_has_vanished_is_named(
    tmp_path: Path, assigner: FolderAssigner
) -> None:
    (tmp_path / "targets" / "x").rmdir()
    answers = _assign(assigner, two_known_users()[0].pw_uid, "a", "b")
    assert len(answers) == 2
    assert all("unknown target 'x'" in answer.failure for answer in answers)


@pytest.mark.parametrize("user", [0, UNKNOWN])
def test_nothing_is_done_for_users_without_a_name(
    assigner: FolderAssigner, user: int
) -> None:
    """Root's own folders need no other process."""
    with pytest.raises(InputError, match=f"user {user} "):
        _assign(assigner, user, "sim")


@NEEDS_ROOT
def test_targets_that_cannot_be_prepared_cost_no_other_folder(
    assigner: FolderAssigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(targets: Sequence[str]) -> None:
        if "x" in targets:
            raise InputError(f"no class for {len(targets)}")

    monkeypatch.setattr(assigner.driver, "prepare", prepare)
    sets = (("x",), ("y",), ("y", "x"), ("y",))
    orders = [FolderOrder(f"job{n}", targets) for n, targets in enumerate(sets)]
    user = two_known_users()[0].pw_uid
    answers = assign_as(user, assigner, orders, threading.Event())
    failures = [answer.failure for answer in answers]
    assert failures == ["no class for 1", "", "no class for 2", ""]
    assert [Path(answer.folder).name for answer in answers[1::2]] == ["job1", "job3"]


class Process:
    """A process of a user that prints an answer at each of some times (s).

    Parameters
    ----------
    is_stuck
        True: it cannot be killed.
    """

    pid = 0
    stdin = stderr = None

    def __init__(self, *answers_s: float, is_stuck: bool = False) -> None:
        self.now_s = 0.0
        self.is_killed = False
        self._is_stuck, self._answers_s = is_stuck, answers_s
        self.stdout = io.BytesIO()

    def kill(self, *_: object) -> None:
        """Take the place of `os.killpg`."""
        self.is_killed = True

    def poll(self) -> int | None:
        """Return None while the process is running."""
        return -9 if self.is_killed and not self._is_stuck else None

    def communicate(
        self, given: bytes | None = None, *, timeout: float
    ) -> tuple[bytes, None]:
        """Take the place of the method of `subprocess.Popen`."""
        del given
        assert self.now_s < 1000.0
        self.now_s += timeout
        line = json.dumps(AssignedFolder("/f")).encode() + b"\n"
        done = sum(answer_s <= self.now_s for answer_s in self._answers_s)
        is_at_end = not self._is_stuck and done == len(self._answers_s)
        if is_at_end or (self.is_killed and not self._is_stuck):
            return done * line, None
        raise subprocess.TimeoutExpired([], timeout, output=done * line or None)

    def answers(
        self, assigner: FolderAssigner, monkeypatch: pytest.MonkeyPatch
    ) -> list[str]:
        """Return which of three folders have failed, and why."""
        monkeypatch.setattr(assigner_module, "_LOOK_S", 5.0)
        clock = SimpleNamespace(monotonic=lambda: self.now_s)
        monkeypatch.setattr(assigner_module, "time", clock)
        known = SimpleNamespace(group=1, groups=[])
        monkeypatch.setattr(assigner_module, "known_user", lambda _: known)
        monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: self)
        monkeypatch.setattr(os, "killpg", self.kill)
        return [answer.failure for answer in _assign(assigner, 1, *"abc")]


def test_each_folder_has_time_of_its_own(
    assigner: FolderAssigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Process(30.0, 60.0, 90.0)
    assert slow.answers(assigner, monkeypatch) == [""] * 3
    assert not slow.is_killed


def test_a_process_that_does_not_go_on_is_killed(
    assigner: FolderAssigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Process(30.0, 500.0, 600.0)
    first, second, third = stopped.answers(assigner, monkeypatch)
    assert first == ""
    assert "gave no answer" in second
    assert third == second
    assert 70.0 < stopped.now_s < 90.0


def test_a_tool_that_cannot_be_killed_is_left_alone(
    assigner: FolderAssigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits in the kernel for a file system. The daemon must be able to end."""
    stuck = Process(30.0, 500.0, 600.0, is_stuck=True)
    first, second, third = stuck.answers(assigner, monkeypatch)
    assert stuck.is_killed
    assert stuck.stdout.closed
    assert first == ""
    assert "gave no answer" in second
    assert third == second
