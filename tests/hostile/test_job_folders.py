# SPDX-License-Identifier: MIT
"""A user attacks the folders of jobs on storage targets, and who assigns them."""

from __future__ import annotations

import ctypes
import logging
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.live.staging import assigner
from penstock.live.staging import partitioner as partitions
from penstock.live.staging.partitioner import Partitioner
from support.users import (
    NEEDS_ROOT,
    NOBODY,
    as_user,
    open_for_all,
    two_known_users,
)
from support.waiting import until

pytestmark = NEEDS_ROOT


@pytest.fixture
def partitioner(tmp_path: Path) -> Iterator[Partitioner]:
    """Return one whose folders of jobs are where all users can make folders."""
    for name in ("targets/x", "targets/y", "scratch", "precious"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "scratch").chmod(0o1777)
    (tmp_path / "precious").chmod(0o700)
    (tmp_path / "precious" / "0").write_text("of root")
    open_for_all(tmp_path)
    targets, folder = f"directories:{tmp_path}/targets:x,y", "scratch/{job}/out"
    made = Partitioner(targets, f"{tmp_path}/{folder}", logging.getLogger("test"))
    yield made
    made.close()


@pytest.mark.parametrize("link", ["a", "a/out"])
def test_root_does_not_follow_the_links_of_a_user(
    tmp_path: Path, partitioner: Partitioner, link: str
) -> None:
    place = tmp_path / "scratch" / link

    def prepare() -> None:
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(tmp_path / "precious")

    as_user(NOBODY, prepare)
    key = f"{os.geteuid()}:a"
    partitioner.move({key: (0, 1)})
    until(lambda: key in partitioner.failures)
    assert "is not a folder that belongs to you" in partitioner.failures[key]
    precious = tmp_path / "precious"
    assert [path.name for path in precious.iterdir()] == ["0"]
    assert (precious / "0").read_text() == "of root"


def test_a_user_does_not_move_the_folder_of_another_one(
    tmp_path: Path, partitioner: Partitioner
) -> None:
    """Its job has the same name, on a node whose agent serves all users."""
    own, other = f"{os.geteuid()}:a", f"{NOBODY}:a"
    partitioner.move({own: (0,)})
    slot = tmp_path / "scratch" / "a" / "out" / "1"
    until(slot.is_symlink)
    partitioner.move({other: (1,), f"{NOBODY}:next": (1,)})
    partitioner.move({f"{os.geteuid()}:last": (0,)})
    until((tmp_path / "scratch" / "last" / "out" / "1").is_symlink)
    assert slot.resolve().name == "x"
    assert not (tmp_path / "scratch" / "next").exists()
    assert set(partitioner.failures) == {other, f"{NOBODY}:next"}


# --- Folders of all users -------------------------------------------------------------

#: A tool of a file system that tells its number, and waits until it is killed.
_WAITING_TOOL = """#!/bin/sh
for folder; do :; done
echo $$ > "$folder/pid"
exec sleep 600
"""
#: Replaces a folder of this process by a link, and back, until it is killed.
_SWAPS = """
import os, sys
user, group, folder, other = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
os.setgroups([])
os.setresgid(group, group, group)
os.setresuid(user, user, user)
os.symlink(other, folder + ".link")
print("ready", flush=True)
while True:
    os.rename(folder, folder + ".kept")
    os.rename(folder + ".link", folder)
    os.rename(folder, folder + ".link")
    os.rename(folder + ".kept", folder)
"""
_PTRACE_SEIZE = 0x4206


class Shared:
    """A file system of all users: A attacks, B has a folder with a job in it."""

    def __init__(self, tmp_path: Path, targets: str) -> None:
        self.attacker, self.victim = two_known_users()
        open_for_all(tmp_path)
        self.users = tmp_path / "users"
        for user in (self.attacker, self.victim):
            folder = self.users / user.pw_name
            folder.mkdir(parents=True)
            os.chown(folder, user.pw_uid, user.pw_gid)
        pattern = f"{self.users}/{{user}}/{{job}}"
        log = logging.getLogger("test")
        self.partitioner = Partitioner(targets, pattern, log, all_users=True)
        self.moved: list[str] = []
        self.partitioner.on_moved = lambda key, _: self.moved.append(key)

    def move(self, user: pwd.struct_passwd, job: str, *targets: int) -> str:
        """Assign a folder, and return the key of the job."""
        key = f"{user.pw_uid}:{job}"
        self.partitioner.move({key: targets})
        return key

    def folder(self, user: pwd.struct_passwd, job: str) -> Path:
        """Return the folder of a job."""
        return self.users / user.pw_name / job

    def tool_of(self, user: pwd.struct_passwd, job: str) -> int:
        """Return the number of the tool that assigns a folder, when it runs."""
        path = self.folder(user, job) / "pid"
        until(lambda: path.exists() and path.read_text())
        return int(path.read_text())


def _plain(tmp_path: Path) -> Shared:
    for name in "xy":
        (tmp_path / "targets" / name).mkdir(parents=True)
        (tmp_path / "targets" / name).chmod(0o1777)
    return Shared(tmp_path, f"directories:{tmp_path}/targets:x,y")


def _with_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shared:
    """Return a file system whose tool waits."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "lfs").write_text(_WAITING_TOOL)
    (tmp_path / "bin" / "lfs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return Shared(tmp_path, f"lustre:{tmp_path}:0,1")


def _tree(folder: Path) -> list[tuple[str, int, int, int]]:
    """Return all that is in a folder, with what changes if something is changed."""
    paths = sorted([folder, *folder.rglob("*")])
    states = [path.lstat() for path in paths]
    return [
        (str(path), state.st_ino, state.st_uid, state.st_ctime_ns)
        for path, state in zip(paths, states, strict=True)
    ]


def _take_over(pid: int) -> list[str]:
    """Try to take hold of a process; return what succeeded."""
    taken = []
    if ctypes.CDLL(None).ptrace(_PTRACE_SEIZE, pid, None, None) == 0:
        taken.append("ptrace")
    for name in ("environ", "mem", "fd/1"):
        with suppress(OSError):
            os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_NONBLOCK))
            taken.append(name)
    return taken


def _fields(pid: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: rest.split() for name, _, rest in (x.partition(":") for x in lines)}


def test_the_process_of_a_user_and_its_tools_cannot_be_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are outside of the job, and would be a way out of it."""
    shared = _with_tool(tmp_path, monkeypatch)
    user = shared.attacker
    key = shared.move(user, "a", 0)
    tool = shared.tool_of(user, "a")
    process = int(_fields(tool)["PPid"][0])
    for pid in (process, tool):
        fields = _fields(pid)
        assert set(fields["Uid"]) == {str(user.pw_uid)}
        assert "0" not in fields["Gid"] + fields["Groups"]
        assert str(user.pw_gid) in fields["Groups"]
        assert fields["NoNewPrivs"] == ["1"]
        assert {int(fields[f"Cap{kind}"][0], 16) for kind in ("Prm", "Eff")} == {0}
        assert as_user(user.pw_uid, lambda: _take_over(pid)) == []  # noqa: B023
    # The end of the daemon is their end.
    shared.partitioner.close()
    until(lambda: key in shared.partitioner.failures)
    assert "gave no answer" in shared.partitioner.failures[key]
    until(lambda: not Path(f"/proc/{tool}").exists())


def test_a_user_who_stops_its_process_holds_up_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = _with_tool(tmp_path, monkeypatch)
    stopped = shared.move(shared.attacker, "a", 0)
    tool = shared.tool_of(shared.attacker, "a")
    as_user(shared.attacker.pw_uid, lambda: os.kill(tool, signal.SIGSTOP))
    shared.move(shared.attacker, "next", 0)
    # B is served before A's process is given up.
    other = shared.move(shared.victim, "b", 0)
    served = shared.tool_of(shared.victim, "b")
    assert stopped not in shared.partitioner.failures
    as_user(shared.victim.pw_uid, lambda: os.kill(served, signal.SIGKILL))
    until(lambda: other in shared.partitioner.failures)
    monkeypatch.setattr(assigner, "_LIMIT_S", 0.0)
    until(lambda: stopped in shared.partitioner.failures)
    until(lambda: not Path(f"/proc/{tool}").exists())
    until(lambda: f"{shared.attacker.pw_uid}:next" in shared.partitioner.failures)
    shared.partitioner.close()


def test_a_folder_that_becomes_a_link_leads_to_nothing_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "_PAUSE", 0.0)
    shared = _plain(tmp_path)
    for user, job in ((shared.victim, "sim"), (shared.attacker, "race")):
        shared.move(user, job, 0)
    until(lambda: len(shared.moved) == 2)
    other = shared.folder(shared.victim, "sim")
    before = _tree(other)
    ids = (str(shared.attacker.pw_uid), str(shared.attacker.pw_gid))
    paths = (str(shared.folder(shared.attacker, "race")), str(other))
    with subprocess.Popen(
        [sys.executable, "-c", _SWAPS, *ids, *paths], stdout=subprocess.PIPE
    ) as swaps:
        assert swaps.stdout is not None
        assert swaps.stdout.readline() == b"ready\n"
        try:
            for number in range(12):
                count = len(shared.moved)
                shared.partitioner.failures.clear()
                key = shared.move(shared.attacker, "race", number % 2)
                until(
                    lambda: (
                        len(shared.moved) > count  # noqa: B023
                        or key in shared.partitioner.failures  # noqa: B023
                    )
                )
        finally:
            swaps.kill()
    assert _tree(other) == before
    shared.partitioner.close()


def test_a_folder_on_a_target_that_another_user_made_first_is_refused(
    tmp_path: Path,
) -> None:
    shared = _plain(tmp_path)
    place = tmp_path / "targets" / "x" / shared.victim.pw_name
    as_user(shared.attacker.pw_uid, place.mkdir)
    key = shared.move(shared.victim, "sim", 0)
    until(lambda: key in shared.partitioner.failures)
    assert "is not a folder that belongs to you" in shared.partitioner.failures[key]
    assert list(shared.folder(shared.victim, "sim").iterdir()) == []
    shared.partitioner.close()
