# SPDX-License-Identifier: MIT
# ruff: noqa: PTH115, PTH208, PTH211 - the calls themselves are tested
"""POSIX behaviour of a real mount, as programs expect of a file system."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.mounts import Mounted

NOREPLACE, EXCHANGE = 1, 2


@pytest.fixture
def folder(unlimited: Mounted, request: pytest.FixtureRequest) -> Path:
    """Return a new folder in the mount, named after the test."""
    path: Path = unlimited.point / request.node.name.replace("/", "_")
    path.mkdir()
    return path


def below(unlimited: Mounted, path: Path) -> Path:
    """Return the backing file of a file in the mount."""
    return unlimited.backing / path.relative_to(unlimited.point)


def refused(code: int, function: Callable[..., object], *arguments: object) -> None:
    with pytest.raises(OSError) as caught:
        function(*arguments)
    assert caught.value.errno == code


def test_written_data_is_in_the_backing_file(unlimited: Mounted, folder: Path) -> None:
    data = os.urandom(3_000_001)
    (folder / "a").write_bytes(data)
    assert below(unlimited, folder / "a").read_bytes() == data
    assert (folder / "a").read_bytes() == data


def test_changes_in_the_backing_folder_are_seen_at_the_next_open(
    unlimited: Mounted, folder: Path
) -> None:
    (folder / "a").write_bytes(b"old")
    below(unlimited, folder / "a").write_bytes(b"new")
    with (folder / "a").open("rb") as stream:
        assert stream.read(3) == b"new"


def test_the_flags_of_open_work(folder: Path) -> None:
    path = folder / "a"
    path.write_bytes(b"12345")
    refused(errno.EEXIST, os.open, path, os.O_CREAT | os.O_EXCL)
    refused(errno.ENOENT, os.open, folder / "b", os.O_RDONLY)
    os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
    assert path.stat().st_size == 0
    first, second = (os.open(path, os.O_WRONLY | os.O_APPEND) for _ in range(2))
    for fd, text in ((first, b"one"), (second, b"two"), (first, b"three")):
        os.write(fd, text)
    os.close(first)
    os.close(second)
    assert path.read_bytes() == b"onetwothree"


def test_shared_mappings_of_a_file_that_is_also_appended_to(folder: Path) -> None:
    path = folder / "a"
    path.write_bytes(bytes(8192))
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    with mmap.mmap(fd, 8192) as view:
        view[5000:5003] = b"abc"
        view.flush()
    os.write(fd, b"end")
    os.close(fd)
    data = path.read_bytes()
    assert (len(data), data[5000:5003], data[-3:]) == (8195, b"abc", b"end")


def test_a_deleted_file_stays_until_it_is_closed(folder: Path) -> None:
    path = folder / "a"
    with path.open("wb+") as stream:
        stream.write(b"hello")
        stream.flush()
        path.unlink()
        assert os.fstat(stream.fileno()).st_nlink == 0
        stream.truncate(3)
        os.fchmod(stream.fileno(), 0o600)
        stream.seek(0)
        assert stream.read() == b"hel"
    assert not path.exists()


def test_a_renamed_open_file_is_the_same_file(folder: Path) -> None:
    (folder / "sub").mkdir()
    with (folder / "a").open("wb") as stream:
        (folder / "a").rename(folder / "sub" / "b")
        stream.write(b"still here")
    assert (folder / "sub" / "b").read_bytes() == b"still here"
    assert os.listdir(folder) == ["sub"]


def test_the_flags_of_rename_work(folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def rename(old: Path, new: Path, flags: int) -> None:
        if libc.renameat2(-100, bytes(old), -100, bytes(new), flags):
            raise OSError(ctypes.get_errno(), "renameat2")

    a, b = folder / "a", folder / "b"
    a.write_text("a")
    b.write_text("b")
    refused(errno.EEXIST, rename, a, b, NOREPLACE)
    rename(a, b, EXCHANGE)
    assert (a.read_text(), b.read_text()) == ("b", "a")
    a.rename(b)
    assert b.read_text() == "b"
    refused(errno.ENOENT, a.rename, b)


def test_hard_links_are_one_file(folder: Path) -> None:
    (folder / "a").write_text("x")
    (folder / "b").hardlink_to(folder / "a")
    first, second = (folder / "a").stat(), (folder / "b").stat()
    assert (first.st_ino, first.st_nlink) == (second.st_ino, 2)
    (folder / "b").write_text("longer")
    assert (folder / "a").read_text() == "longer"
    os.symlink("a", folder / "s")
    os.link(folder / "s", folder / "t", follow_symlinks=False)
    assert os.readlink(folder / "t") == "a"


def test_symbolic_links_are_created_and_followed(folder: Path) -> None:
    link = folder / "s"
    link.symlink_to("no/such/file")
    assert os.readlink(link) == "no/such/file"
    os.chown(link, 12, 34, follow_symlinks=False)
    os.utime(link, ns=(1_000_000_001, 2_000_000_002), follow_symlinks=False)
    status = link.lstat()
    assert (status.st_uid, status.st_gid) == (12, 34)
    assert status.st_mtime_ns == 2_000_000_002
    refused(errno.ELOOP, os.open, link, os.O_RDONLY | os.O_NOFOLLOW)


def test_attributes_are_set_and_read(unlimited: Mounted, folder: Path) -> None:
    path = folder / "a"
    path.write_bytes(b"12345")
    path.chmod(0o4751)
    os.chown(path, 1234, 5678)
    os.utime(path, ns=(11_000_000_007, 22_000_000_009))
    os.truncate(path, 3)
    os.utime(path, ns=(11_000_000_007, 22_000_000_009))
    here, there = path.stat(), below(unlimited, path).stat()
    for name in ("mode", "nlink", "uid", "gid", "size", "ino", "atime_ns", "mtime_ns"):
        assert getattr(here, f"st_{name}") == getattr(there, f"st_{name}"), name
    assert (here.st_size, here.st_uid, here.st_gid) == (3, 1234, 5678)
    assert (here.st_atime_ns, here.st_mtime_ns) == (11_000_000_007, 22_000_000_009)


def test_special_files_can_be_created(folder: Path) -> None:
    os.mkfifo(folder / "pipe", 0o640)
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)
    os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    assert (folder / "null").stat().st_rdev == os.makedev(1, 3)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{os.open(folder, os.O_PATH)}/sock")
    assert stat.S_ISSOCK((folder / "sock").stat().st_mode)


def test_folders_are_created_listed_and_removed(folder: Path) -> None:
    names = [f"file-{index:04}-{'x' * (index % 90)}" for index in range(500)]
    for name in names:
        (folder / name).touch()
    assert sorted(os.listdir(folder)) == names
    done = subprocess.run(
        ["ls", "-a", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split()[:2] == [".", ".."]
    refused(errno.ENOTEMPTY, os.rmdir, folder)
    refused(errno.EISDIR, os.unlink, folder)
    refused(errno.ENOTDIR, os.listdir, folder / names[0])
    for name in names:
        (folder / name).unlink()
    folder.rmdir()


def test_names_that_are_not_utf_8(folder: Path) -> None:
    name = b"\xff\xfe, \\ \n\xc3\xa4"
    Path(os.fsdecode(bytes(folder) + b"/" + name)).touch()
    assert os.listdir(bytes(folder)) == [name]
    refused(errno.ENAMETOOLONG, (folder / ("x" * 300)).touch)


def test_extended_attributes_are_set_and_read(folder: Path) -> None:
    path = folder / "a"
    path.touch()
    os.setxattr(path, "user.one", b"1", os.XATTR_CREATE)
    os.setxattr(path, "user.two", bytes(1000))
    refused(errno.EEXIST, os.setxattr, path, "user.one", b"", os.XATTR_CREATE)
    refused(errno.ENODATA, os.setxattr, path, "user.no", b"", os.XATTR_REPLACE)
    assert os.getxattr(path, "user.two") == bytes(1000)
    assert {"user.one", "user.two"} <= set(os.listxattr(path))
    os.removexattr(path, "user.one")
    refused(errno.ENODATA, os.getxattr, path, "user.one")


def test_locks_hold_between_processes(folder: Path) -> None:
    path = folder / "a"
    path.touch()
    text = (
        "import fcntl, sys\n"
        f"stream = open({str(path)!r}, 'r+')\n"
        "for lock in (fcntl.flock, fcntl.lockf):\n"
        "    try: lock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB); print('got')\n"
        "    except OSError: print('held')\n"
    )
    with path.open("r+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        fcntl.lockf(stream, fcntl.LOCK_EX)
        other = [sys.executable, "-c", text]
        done = subprocess.run(
            other, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.stdout.split() == ["held", "held"]
    done = subprocess.run(
        other, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["got", "got"]


def test_holes_sync_and_free_space_are_those_of_the_backing_folder(
    unlimited: Mounted, folder: Path
) -> None:
    fd = os.open(folder / "a", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"end", 1 << 30)
    os.fsync(fd)
    os.fdatasync(fd)
    assert os.pread(fd, 4, (1 << 30) - 1) == b"\0end"
    os.close(fd)
    assert (folder / "a").stat().st_blocks * 512 < 1 << 20
    assert os.statvfs(folder).f_blocks == os.statvfs(unlimited.backing).f_blocks
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def test_holes_are_found_and_made(folder: Path) -> None:
    fd = os.open(folder / "a", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 8 << 20)
    os.pwrite(fd, b"x" * 65536, 4 << 20)
    assert os.lseek(fd, 0, os.SEEK_DATA) == 4 << 20
    assert os.lseek(fd, 4 << 20, os.SEEK_HOLE) == (4 << 20) + 65536
    refused(errno.ENXIO, os.lseek, fd, 5 << 20, os.SEEK_DATA)
    os.posix_fallocate(fd, 0, 1 << 20)
    assert os.fstat(fd).st_blocks * 512 >= 1 << 20
    libc = ctypes.CDLL(None, use_errno=True)
    punch = [ctypes.c_long(value) for value in (4 << 20, 65536)]
    assert libc.fallocate(fd, 3, *punch) == 0
    assert os.pread(fd, 4, 4 << 20) == bytes(4)
    os.close(fd)


def test_files_without_a_name_are_refused_as_unsupported(folder: Path) -> None:
    refused(errno.EOPNOTSUPP, os.open, folder, os.O_TMPFILE | os.O_RDWR)
    # Programs then create a file and remove its name.
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")


def test_large_offsets_and_copies_between_files(folder: Path) -> None:
    source, target = (os.open(folder / n, os.O_RDWR | os.O_CREAT) for n in "ab")
    os.pwrite(source, b"far", 5 << 30)
    assert os.fstat(source).st_size == (5 << 30) + 3
    assert os.copy_file_range(source, target, 3, 5 << 30, 1) == 3
    assert os.pread(target, 9, 0) == b"\0far"
    os.close(source)
    os.close(target)


def test_many_more_files_than_descriptors(
    unlimited: Mounted, folder: Path, tmp_path: Path
) -> None:
    """A mount that may have 400 descriptors, and 3,000 files that programs look up."""
    home = Mounted(tmp_path)
    for number in range(3000):
        (home.backing / f"f{number}").write_bytes(b"%d" % number)
    command = [
        *(sys.executable, "-m", "penstock", "mount", "--folder", str(tmp_path / "run")),
        *("--background", str(home.backing), str(home.point)),
    ]
    script = ["sh", "-c", 'ulimit -n 400; exec "$@"', "sh", *command]
    subprocess.run(script, check=True, timeout=120)
    home.pid = home.status()["pid"]
    try:
        for _ in range(2):
            for number in range(3000):
                # An extended attribute makes the mount open the file.
                path = home.point / f"f{number}"
                assert path.stat().st_size == len(str(number))
                assert os.listxattr(path) == []
        assert (home.point / "f2999").read_bytes() == b"2999"
        assert len(os.listdir(f"/proc/{home.pid}/fd")) < 400
    finally:
        home.end()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder in a mount that every user can reach and write."""
    home = Path(tempfile.mkdtemp())
    mounted = Mounted(home)
    home.chmod(0o755)
    try:
        mounted.start()
        mounted.point.chmod(0o777)
        yield mounted.point
    finally:
        mounted.end()
        shutil.rmtree(home)


def as_user(uid: int, folder: Path, script: str) -> str:
    """Return the output of a shell that runs as another user."""
    done = subprocess.run(
        ["sh", "-c", f"umask 027; cd {folder}; {script}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        user=uid,
        group=uid,
        extra_groups=[],
        cwd="/",
    )
    return done.stdout + done.stderr


def test_new_files_belong_to_the_user_who_creates_them(open_folder: Path) -> None:
    assert as_user(4321, open_folder, "touch mine; mkdir own; ln -s x l") == ""
    for name, mode in (("mine", 0o640), ("own", 0o750), ("l", 0o777)):
        status = (open_folder / name).lstat()
        assert (status.st_uid, status.st_gid) == (4321, 4321)
        assert stat.S_IMODE(status.st_mode) == mode


def test_a_set_group_id_folder_decides_the_group(open_folder: Path) -> None:
    os.chown(open_folder, 0, 77)
    open_folder.chmod(0o2777)
    assert as_user(4321, open_folder, "mkdir own; touch mine") == ""
    assert (open_folder / "own").stat().st_gid == 77
    assert (open_folder / "own").stat().st_mode & stat.S_ISGID
    assert (open_folder / "mine").stat().st_gid == 77


def test_a_supplementary_group_may_create_files(open_folder: Path) -> None:
    (open_folder / "shared").mkdir()
    os.chown(open_folder / "shared", 0, 77)
    (open_folder / "shared").chmod(0o770)
    script = f"cd {open_folder}/shared && touch mine && mkdir own && rm mine"
    for groups, allowed in ([77], True), ([78], False):
        done = subprocess.run(
            ["sh", "-c", script],
            user=4321,
            group=4321,
            extra_groups=groups,
            cwd="/",
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert (done.returncode == 0) is allowed
    status = (open_folder / "shared" / "own").stat()
    assert (status.st_uid, status.st_gid) == (4321, 4321)


def test_a_default_access_control_list_decides_instead_of_the_umask(
    open_folder: Path,
) -> None:
    entries = [(1, 7), (4, 7), (16, 7), (32, 0)]
    value = struct.pack("<I", 2)
    value += b"".join(struct.pack("<HHI", *entry, 0xFFFFFFFF) for entry in entries)
    os.setxattr(open_folder, "system.posix_acl_default", value)
    assert as_user(4321, open_folder, "touch mine") == ""
    assert stat.S_IMODE((open_folder / "mine").stat().st_mode) == 0o660


def test_modes_are_enforced_for_other_users(open_folder: Path) -> None:
    (open_folder / "secret").write_text("s")
    (open_folder / "secret").chmod(0o600)
    assert "denied" in as_user(4321, open_folder, "cat secret")
    assert as_user(4321, open_folder, "echo mine > mine") == ""
    assert "denied" in as_user(4322, open_folder, "cat mine")
    assert "not permitted" in as_user(4322, open_folder, "chmod 777 mine")
    (open_folder / "mine").chmod(0o4755)
    assert as_user(4321, open_folder, "echo more >> mine") == ""
    assert not (open_folder / "mine").stat().st_mode & stat.S_ISUID


def test_access_control_lists_are_obeyed(open_folder: Path) -> None:
    (open_folder / "a").write_text("a\n")
    os.chown(open_folder / "a", 0, 4321)
    # user::rw-, group::---, mask::rw-, other::---: the mode shows the mask.
    entries = [(1, 6), (4, 0), (16, 6), (32, 0)]
    value = struct.pack("<I", 2)
    value += b"".join(struct.pack("<HHI", *entry, 0xFFFFFFFF) for entry in entries)
    os.setxattr(open_folder / "a", "system.posix_acl_access", value)
    assert stat.S_IMODE((open_folder / "a").stat().st_mode) == 0o660
    assert "denied" in as_user(4321, open_folder, "cat a")


def test_common_programs_work(unlimited: Mounted, folder: Path) -> None:
    script = """
    set -e
    git init -q . && git config user.email a@example.org && git config user.name a
    for i in 1 2 3; do echo $i > f$i; git add .; git commit -q -m $i; done
    git fsck --strict >/dev/null 2>&1
    tar cf all.tar f1 f2 f3 && mkdir out && tar xf all.tar -C out && cp -a out out2
    sort -r f1 f2 f3 > sorted && cat sorted && diff -r out out2
    """
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.stdout, done.stderr) == ("3\n2\n1\n", "")


def test_a_sqlite_database_works(folder: Path) -> None:
    sqlite3 = pytest.importorskip("sqlite3")
    with sqlite3.connect(folder / "base") as base:
        base.execute("create table t (x)")
        base.executemany("insert into t values (?)", ((i,) for i in range(1000)))
    assert base.execute("select sum(x) from t").fetchone() == (499500,)
    assert base.execute("pragma integrity_check").fetchone() == ("ok",)
    base.close()
