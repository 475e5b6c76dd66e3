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


def own_start() -> int:
    """Return the start of this process (clock ticks after boot)."""
    ticks = process_start_ticks(os.getpid())
    assert ticks is not None
    return ticks


# --- Where they are -------------------------------------------------------------------


def test_version_2_has_one_file() -> None:
    step = "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"
    files = cgroup_files(f"0::{step}\n", "0::/system.slice/penstock\n", _VERSION_2)
    assert files == [Path(f"/sys/fs/cgroup{step}/cgroup.procs")]


def test_version_1_has_a_file_for_every_hierarchy_that_differs() -> None:
    target = "3:cpu,cpuacct:/slurm/job_7\n2:memory:/\n1:name=systemd:/a:b\n0::/\n"
    own = "3:cpu,cpuacct:/\n2:memory:/\n1:name=systemd:/\n0::/\n"
    mounts = "\n".join(map(version_1, ("memory", "cpu,cpuacct", "name=systemd")))
    assert cgroup_files(target, own, mounts) == [
        Path("/cg/cpu,cpuacct/slurm/job_7/cgroup.procs"),
        Path("/cg/systemd/a:b/cgroup.procs"),
    ]


def test_a_process_in_the_same_cgroups_joins_nothing() -> None:
    assert cgroup_files("1:cpu:/a\n0::/b\n", "0::/b\n1:cpu:/a\n", "") == []


def test_a_mount_may_show_a_part_of_the_hierarchy() -> None:
    mounts = version_1("cpu", root="/container")
    files = cgroup_files("1:cpu:/container/job\n", "", mounts)
    assert files == [Path("/cg/cpu/job/cgroup.procs")]


@pytest.mark.parametrize("line", ["1:cpu:/job", "0::/job", "1:memory:/../job"])
def test_a_cgroup_that_is_not_mounted_cannot_be_joined(line: str) -> None:
    mounts = "\n".join((version_1("cpu", root="/container"), version_1("memory")))
    with pytest.raises(UnavailableError, match="is not mounted here"):
        cgroup_files(line, "", mounts)


# --- Of which process -----------------------------------------------------------------


def test_the_first_process_of_the_user_that_lives_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "cgroup.procs").touch()
    seen: list[str] = []

    def files(target: str, own: str, mounts: str) -> list[Path]:
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
    assert seen == [Path("/proc/self/cgroup").read_text()]


def test_a_process_of_another_user_or_another_start_does_not_count() -> None:
    start, user = own_start(), os.geteuid()
    for processes, owner in (
        ({}, user),
        ({os.getpid(): start + 1}, user),
        ({os.getpid(): start}, user + 1),
    ):
        with pytest.raises(UnavailableError, match="no process of the job is left"):
            open_cgroups(processes, owner)


def test_a_process_that_becomes_root_meanwhile_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program with the setuid bit: root may move it to any cgroup."""
    read, names = cgroups._read, list[str]()

    def changing(folder: int, name: str) -> str:
        names.append(name)
        later = name == "status" and "cgroup" in names
        return "Uid: 1 0 0 0\n" if later else read(folder, name)

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
