# SPDX-License-Identifier: MIT
"""The cgroups of a job: where they are mounted, and of which process they are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.errors import UnavailableError
from penstock.live.staging import cgroups
from penstock.live.staging.cgroups import cgroup_files, open_cgroups
from penstock.live.wire.identity import process_start_ticks

#: A line of /proc/self/mountinfo, without what differs.
_MOUNT = "32 31 0:29 {root} {point} rw,relatime shared:9 - {kind} cgroup rw{options}"
_VERSION_2 = _MOUNT.format(root="/", point="/sys/fs/cgroup", kind="cgroup2", options="")


def version_1(controllers: str, root: str = "/") -> str:
    """Return the line of a mounted hierarchy of version 1."""
    point = f"/cg/{controllers.removeprefix('name=')}"
    options = f",xattr,{controllers}"
    return _MOUNT.format(root=root, point=point, kind="cgroup", options=options)


def files_of(target: str, own: str, mounts: str, tmp_path: Path) -> list[Path]:
    """Return the files for a process in `target`, with this table of mounts."""
    (table := tmp_path / "mountinfo").write_text(mounts)
    return cgroup_files(target.encode(), own.encode(), table)


def own_start() -> int:
    """Return the start of this process (clock ticks after boot)."""
    ticks = process_start_ticks(os.getpid())
    assert ticks is not None
    return ticks


# --- Where they are -------------------------------------------------------------------


def test_version_2_has_one_file(tmp_path: Path) -> None:
    step = "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"
    own = "0::/system.slice/penstock\n"
    files = files_of(f"0::{step}\n", own, _VERSION_2, tmp_path)
    assert files == [Path(f"/sys/fs/cgroup{step}/cgroup.procs")]


def test_version_1_has_a_file_for_every_hierarchy_that_differs(tmp_path: Path) -> None:
    target = "3:cpu,cpuacct:/slurm/job_7\n2:memory:/\n1:name=systemd:/a:b\n0::/\n"
    own = "3:cpu,cpuacct:/\n2:memory:/\n1:name=systemd:/\n0::/\n"
    mounts = "\n".join(map(version_1, ("memory", "cpu,cpuacct", "name=systemd")))
    assert files_of(target, own, mounts, tmp_path) == [
        Path("/cg/cpu,cpuacct/slurm/job_7/cgroup.procs"),
        Path("/cg/systemd/a:b/cgroup.procs"),
    ]


def test_a_process_in_the_same_cgroups_joins_nothing(tmp_path: Path) -> None:
    own = "0::/b\n1:cpu:/a\n"
    assert files_of("1:cpu:/a\n0::/b\n", own, "", tmp_path) == []


def test_a_mount_may_show_a_part_of_the_hierarchy(tmp_path: Path) -> None:
    mounts = version_1("cpu", root="/container")
    files = files_of("1:cpu:/container/job\n", "", mounts, tmp_path)
    assert files == [Path("/cg/cpu/job/cgroup.procs")]


@pytest.mark.parametrize("line", ["1:cpu:/job", "0::/job", "1:memory:/../job"])
def test_a_cgroup_that_is_not_mounted_cannot_be_joined(
    tmp_path: Path, line: str
) -> None:
    mounts = "\n".join((version_1("cpu", root="/container"), version_1("memory")))
    with pytest.raises(UnavailableError, match="is not mounted here"):
        files_of(line, "", mounts, tmp_path)


@pytest.mark.parametrize("end", ["\r", "\v", "\x1c", "\x85", "\u2028"])
def test_the_name_of_a_cgroup_adds_no_line(tmp_path: Path, end: str) -> None:
    """A user who owns a cgroup can make others of any name below it."""
    target = f"0::/user/x{end}0::/system.slice/slurmstepd.scope/job_7\n"
    (file,) = files_of(target, "0::/\n", _VERSION_2, tmp_path)
    assert str(file) == f"/sys/fs/cgroup{target[3:-1]}/cgroup.procs"


def test_the_place_of_a_hierarchy_may_have_blanks(tmp_path: Path) -> None:
    mounts = _VERSION_2.replace("/sys/fs/cgroup", r"/a\040b\134")
    (file,) = files_of("0::/job\n", "", mounts, tmp_path)
    assert file == Path("/a b\\/job/cgroup.procs")


# --- Of which process -----------------------------------------------------------------


def test_the_first_process_of_the_user_that_lives_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "cgroup.procs").touch()
    seen: list[bytes] = []

    def files(target: bytes, own: bytes) -> list[Path]:
        seen.append(target)
        return [file]

    monkeypatch.setattr(cgroups, "cgroup_files", files)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
        processes = {ended.pid: 1, 1: -1, os.getpid(): own_start()}
        (descriptor,) = open_cgroups(processes, os.geteuid())
    os.write(descriptor, b"0")
    os.close(descriptor)
    assert file.read_text() == "0"
    assert seen == [Path("/proc/self/cgroup").read_bytes()]


def test_a_process_of_another_user_or_another_start_does_not_count() -> None:
    start, user = own_start(), os.geteuid()
    for processes, owner in (
        ({}, user),
        ({os.getpid(): start + 1}, user),
        ({os.getpid(): start}, user + 1),
    ):
        with pytest.raises(UnavailableError, match="no process of the job is left"):
            open_cgroups(processes, owner)


@pytest.mark.parametrize("end", [b"\r", b"\x0b", b"\x1c", b"\xc2\x85"])
def test_the_name_of_a_process_is_no_user(
    monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    """A program of root may have a link with such a name, made by any user."""
    read = cgroups._read

    def named(folder: int, name: str) -> bytes:
        forged = b"Name:\ta" + end + b"Uid: 7 7 7 7\n" if name == "status" else b""
        return forged + read(folder, name)

    monkeypatch.setattr(cgroups, "_read", named)
    with pytest.raises(UnavailableError, match="no process of the job is left"):
        open_cgroups({os.getpid(): own_start()}, 7)


def test_a_process_that_becomes_root_meanwhile_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program with the setuid bit: root may move it to any cgroup."""
    read, names = cgroups._read, list[str]()

    def changing(folder: int, name: str) -> bytes:
        names.append(name)
        later = name == "status" and "cgroup" in names
        return b"Uid: 1 0 0 0\n" if later else read(folder, name)

    monkeypatch.setattr(cgroups, "_read", changing)
    with pytest.raises(UnavailableError, match="no process of the job is left"):
        open_cgroups({os.getpid(): own_start()}, os.geteuid())
    assert "cgroup" in names


def test_a_cgroup_that_is_gone_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").touch()
    paths = [tmp_path / "a", tmp_path / "gone"]
    monkeypatch.setattr(cgroups, "cgroup_files", lambda *_: paths)
    before = sorted(Path("/proc/self/fd").iterdir())
    with pytest.raises(UnavailableError, match="No such file or directory"):
        open_cgroups({os.getpid(): own_start()}, os.geteuid())
    assert sorted(Path("/proc/self/fd").iterdir()) == before
