# SPDX-License-Identifier: MIT
"""The name of the file system of a folder, from a table of mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.live.node.file_system import file_system_type, storage_name

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:5 / /proc rw,nosuid - proc proc rw
30 22 0:40 / /home rw - nfs4 server:/export/home rw,vers=4.2
31 22 0:41 / /scratch rw - lustre 10.0.0.1@tcp:/scratch rw
32 22 0:42 / /mnt/with\040space rw - fuse.penstock /data rw
33 22 0:43 / /run rw - tmpfs tmpfs rw
34 22 0:44 / /mfs rw - fuse.mfs mfs#master:9421 rw
35 22 8:2 / /home rw - ext4 /dev/sdb1 rw
36 30 8:3 / /home/local rw master:1 propagate_from:2 - xfs /dev/sdc1 rw
this is no mount
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    """Return a table of mounts."""
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/", ":/dev/sda1"),
        ("/var/lib", ":/dev/sda1"),
        ("/scratch/job", "lustre 10.0.0.1@tcp:/scratch"),
        ("/scratchy", ":/dev/sda1"),
        ("/mnt/with space/x", ":/mnt/with space (fuse.penstock)"),
        ("/run/x", ":/run (tmpfs)"),
        ("/mfs/a/b", "fuse.mfs mfs#master:9421"),
        ("/home/u", ":/dev/sdb1"),
        ("/home/local/u", ":/dev/sdc1"),
        ("relative", ""),
        ("", ""),
    ],
)
def test_a_folder(mounts: Path, folder: str, name: str) -> None:
    assert storage_name(folder, mounts) == name


def test_a_network_file_system_has_the_same_name_everywhere(mounts: Path) -> None:
    mounts.write_text("30 22 0:77 / /other/place rw - nfs4 server:/export/home rw\n")
    assert storage_name("/other/place", mounts) == "nfs4 server:/export/home"


@pytest.mark.parametrize(
    ("kind", "source", "name"),
    [
        ("fuse.ceph-fuse", "ceph-fuse", "fuse.ceph-fuse ceph-fuse /place"),
        ("wekafs", "backend/scratch", "wekafs backend/scratch"),
        ("panfs", "panfs://realm/volume", "panfs panfs://realm/volume"),
        ("fuse.dfuse", "dfuse", "fuse.dfuse dfuse /place"),
        ("fuse.daos", "dfuse", "fuse.daos dfuse /place"),
        ("fuse.gcsfuse", "bucket", "fuse.gcsfuse bucket"),
        ("beegfs", "beegfs_nodev", "beegfs beegfs_nodev /place"),
        ("fuse.s3fs", "s3fs", "fuse.s3fs s3fs /place"),
        ("fuse.unheard", "server:/export", "fuse.unheard server:/export"),
        ("unheard", "10.0.0.1:6789,10.0.0.2:6789:/", None),
        ("fuse.unheard", "/data:old", ":/place (fuse.unheard)"),
        ("zfs", "pool/home", ":/place (zfs)"),
    ],
)
def test_a_network_file_system_is_known_by_its_type_or_its_source(
    mounts: Path, kind: str, source: str, name: str | None
) -> None:
    mounts.write_text(f"30 22 0:77 / /place rw - {kind} {source} rw\n")
    assert storage_name("/place/x", mounts) == (name or f"{kind} {source}")


def test_two_beegfs_are_two_storages(mounts: Path) -> None:
    line = "{0} 22 0:7{0} / /{1} rw - beegfs beegfs_nodev rw\n"
    mounts.write_text(line.format(1, "home") + line.format(2, "scratch"))
    assert storage_name("/home/u", mounts) != storage_name("/scratch/u", mounts)


def test_without_a_table_nothing_is_known(tmp_path: Path) -> None:
    assert storage_name("/", tmp_path / "none") == ""
    assert file_system_type("/", tmp_path / "none") == "unknown"


def test_the_table_of_this_machine() -> None:
    assert storage_name("/")


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/var", "ext4"), ("/run/x", "tmpfs"), ("/mfs/a", "fuse.mfs"), ("a", "unknown")],
)
def test_the_type_of_a_folder(mounts: Path, folder: str, kind: str) -> None:
    assert file_system_type(folder, mounts) == kind
