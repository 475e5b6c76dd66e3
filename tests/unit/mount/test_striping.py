# SPDX-License-Identifier: MIT
"""Striping, from outputs of the commands of parallel file systems.

The output of MooseFS was recorded here; those of Lustre and BeeGFS are as their manuals
show them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.mount import striping
from penstock.mount.slo_settings import slo_settings_from
from penstock.mount.striping import (
    parse_beegfs,
    parse_lustre,
    parse_moosefs,
    targets_of,
)

LUSTRE = """/scratch/run
stripe_count:  4 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1
"""
LUSTRE_PROGRESSIVE = """/scratch/run
  lcm_layout_gen:    0
  lcm_entry_count:   2
    lcme_extent.e_end:   4194304
      stripe_count:  1       stripe_size:   1048576       pattern:       raid0
    lcme_extent.e_end:   EOF
      stripe_count:  8       stripe_size:   4194304       pattern:       raid0
"""
BEEGFS = """Entry type: directory
EntryID: 0-5D285750-1
Metadata node: node1 [ID: 1]
Stripe pattern details:
+ Type: RAID0
+ Chunksize: 512K
+ Number of storage targets: desired: 4
+ Storage Pool: 1 (Default)
"""
BEEGFS_FILE = """Entry type: file
Stripe pattern details:
+ Number of storage targets: desired: 4; actual: 2
+ Storage targets:
  + 1 @ node1 [ID: 1]
  + 2 @ node2 [ID: 2]
"""
MOOSEFS = """/mnt/a:
\tchunk 0: 0000000000000001_00000001 / (id:1 ver:1)
\t\tcopy 1: 192.0.2.11:9422 (status:VALID)
\t\tcopy 2: 192.0.2.12:9422 (status:VALID)
/mnt/b:
\tchunk 0: 0000000000000002_00000001 / (id:2 ver:1)
\t\tcopy 1: 192.0.2.12:9422 (status:VALID)
\t\tcopy 2: 192.0.2.14:9422 (status:VALID)
"""


@pytest.mark.parametrize(
    ("output", "count"),
    [
        (LUSTRE, 4),
        (LUSTRE_PROGRESSIVE, 8),
        (LUSTRE.replace(" 4 ", " -1 "), 0),
        ("", 0),
    ],
)
def test_lustre(output: str, count: int) -> None:
    assert parse_lustre(output) == count


@pytest.mark.parametrize(
    ("output", "count"), [(BEEGFS, 4), (BEEGFS_FILE, 2), ("unknown", 0)]
)
def test_beegfs(output: str, count: int) -> None:
    assert parse_beegfs(output) == count


@pytest.mark.parametrize(("output", "count"), [(MOOSEFS, 3), ("/mnt/a:\n", 0)])
def test_moosefs(output: str, count: int) -> None:
    assert parse_moosefs(output) == count


def with_file_system(
    monkeypatch: pytest.MonkeyPatch, kind: str, source: str, tools: Path
) -> None:
    """Pretend a file system, whose tools are in a folder."""
    monkeypatch.setattr(striping, "_file_system", lambda _: (kind, source))
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")


def add_tool(folder: Path, name: str, output: str, status: int = 0) -> None:
    (folder / "output").write_text(output)
    tool = folder / name
    tool.write_text(f"#!/bin/sh\ncat {folder}/output\nexit {status}\n")
    tool.chmod(0o755)


@pytest.mark.parametrize(
    ("kind", "source", "tool", "output", "count"),
    [
        ("lustre", "mds@tcp:/scratch", "lfs", LUSTRE, 4),
        ("beegfs", "beegfs_nodev", "beegfs-ctl", BEEGFS, 4),
        ("fuse.mfs", "mfsmaster:9421", "mfsfileinfo", MOOSEFS, 3),
        ("fuse", "mfs#mfsmaster:9421", "mfsfileinfo", MOOSEFS, 3),
    ],
)
def test_the_tool_of_the_file_system_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kind: str,
    source: str,
    tool: str,
    output: str,
    count: int,
) -> None:
    with_file_system(monkeypatch, kind, source, tmp_path)
    add_tool(tmp_path, tool, output)
    assert targets_of(tmp_path) == count


def test_a_tool_that_fails_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_file_system(monkeypatch, "lustre", "x", tmp_path)
    add_tool(tmp_path, "lfs", "", status=1)
    with pytest.raises(InputError, match="lfs: it failed"):
        targets_of(tmp_path)
    (tmp_path / "lfs").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="lfs: No such file"):
        targets_of(tmp_path)


def test_an_empty_folder_of_moosefs_does_not_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_file_system(monkeypatch, "fuse.mfs", "x", tmp_path)
    with pytest.raises(InputError, match="does not say"):
        targets_of(tmp_path)


def test_names_of_files_are_no_servers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The tool prints the names, and files of users are looked at."""
    with_file_system(monkeypatch, "fuse.mfs", "x", tmp_path / "bin")
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "mfsfileinfo"
    tool.write_text('#!/bin/sh\nprintf "%s:\\n copy 1: a:9422 (VALID) \\377\\n" "$@"\n')
    tool.chmod(0o755)
    (folder := tmp_path / "files").mkdir()
    for name in (b"a", b"b\n copy 1: b:9422 ", b"c\r copy 1: c:9422 ", b"\xff"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("x")
    assert targets_of(folder) == 1


def test_an_ordinary_file_system_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be asked"):
        targets_of(tmp_path)


def test_the_source_of_moosefs_is_read_from_the_mount_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 0:3 / /proc rw - proc proc rw\n"
        f"121 116 {number} / /mnt rw - fuse mfs\\043192.0.2.10:9421 rw\n"
    )
    monkeypatch.setattr(striping, "_MOUNTS", table)
    assert striping._file_system(tmp_path) == ("fuse", "mfs#192.0.2.10:9421")


def document(**rule: str) -> dict[str, Any]:
    application = {"throughput": "1 MB/s", "latency": "1 s", "mounts": "auto"}
    return {
        "applications": {"a": application},
        "rules": [{"application": "a", **rule}],
    }


def test_auto_asks_for_the_folder_of_the_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_file_system(monkeypatch, "lustre", "x", tmp_path)
    add_tool(tmp_path, "lfs", LUSTRE)
    settings = slo_settings_from(document(path="/run"), str(tmp_path))
    assert settings.layout == {"a": 4}


def test_auto_without_a_folder_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no rule says which folder"):
        slo_settings_from(document(program="x"), str(tmp_path))
    with pytest.raises(InputError, match=r"applications\.a\.mounts"):
        slo_settings_from(document(path="none"), str(tmp_path))
