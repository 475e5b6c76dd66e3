# SPDX-License-Identifier: MIT
# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH115, PTH208, PTH211 - tests calls
"""Random operations on a mount and on a plain folder: same results, same files.

Operations are made by root and by another user, so that permissions are compared too.
Holes are not compared: a copy may or may not have those of its source.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mounts import Mounted
from support.sanitizers import CheckedMount
from support.waiting import until

#: Operations in all.
OPERATIONS = 100_000
ROUNDS = 20
NAMES = ("a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/b")
FLAGS = (
    *(os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT),
    os.O_RDWR | os.O_CREAT | os.O_EXCL,
    os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    os.O_RDWR | os.O_CREAT | os.O_APPEND,
    os.O_WRONLY | os.O_APPEND,
    os.O_RDONLY | os.O_DIRECTORY,
)
MODES = (0o600, 0o644, 0o666, 0o000, 0o755, 0o4755, 0o2755, 0o777, 0o1777)
USER = 4321
OWNERS = ((0, 0), (-1, USER), (USER, -1), (USER, USER), (0, -1), (-1, 0))
NOREPLACE, EXCHANGE = 1, 2
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
#: Offset of the holes and data of sparse files.
BLOCK = 65536

#: One metadata request at a time: all others wait.
ONE_AT_A_TIME = """
metadata_depth = 1
[applications.some]
throughput = "1 GB/s"
latency = "10 ms"
"""
#: Rules, limits and two levels of the scheduler: most of the data path.
ALL_PARTS = """
metadata_depth = 2
default = "rest"
[applications.some]
throughput = "20 MB/s"
latency = "10 ms"
operations = "2000/s"
bandwidth = "40 MB/s"
[applications.rest]
throughput = "1 MB/s"
latency = "100 ms"
operations = "200/s"
[[rules]]
application = "some"
path = "/run-1"
program = "py*"
"""
#: Makes metadata requests all the time, in folders of its own.
NEIGHBOUR = """
import os, sys
from threading import Thread

def work(folder):
    os.mkdir(folder)
    while True:
        os.mkdir(f"{folder}/x")
        os.rmdir(f"{folder}/x")

for n in range(3):
    Thread(target=work, args=[f"{sys.argv[1]}/{n}"]).start()
"""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


def checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), "from the C library")


class Player:
    """Performs operations in a folder and returns comparable results."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[int, int] = {}

    def play(self, uid: int, name: str, *arguments: Any) -> Any:
        operation: Callable[..., Any] = getattr(self, name)
        # The user of this thread; the kernel takes away the rights of root, too.
        _libc.setfsgid(uid)
        _libc.setfsuid(uid)
        try:
            return operation(*arguments)
        except OSError as error:
            return "error", error.errno
        except KeyError:
            return "not open"
        finally:
            _libc.setfsuid(0)
            _libc.setfsgid(0)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    # --- Open files ---------------------------------------------------------------

    def open(self, slot: int, name: str, flags: int, mode: int) -> None:
        # Without O_NONBLOCK a pipe would wait for its other end.
        fd = os.open(self.path(name), flags | os.O_NONBLOCK, mode)
        if slot in self.files:
            os.close(self.files.pop(slot))
        self.files[slot] = fd

    def close(self, slot: int) -> None:
        os.close(self.files.pop(slot))

    def pwrite(self, slot: int, size: int, position: int, byte: int) -> int:
        # On Linux pwrite() ignores the position with O_APPEND; also through FUSE.
        return os.pwrite(self.files[slot], bytes([byte]) * size, position)

    def write(self, slot: int, size: int, byte: int) -> tuple[int, int]:
        fd = self.files[slot]
        return os.write(fd, bytes([byte]) * size), os.lseek(fd, 0, os.SEEK_CUR)

    def pread(self, slot: int, size: int, position: int) -> bytes:
        return os.pread(self.files[slot], size, position)

    def ftruncate(self, slot: int, size: int) -> None:
        os.ftruncate(self.files[slot], size)

    def fstat(self, slot: int) -> tuple[int, ...]:
        return facts(os.fstat(self.files[slot]))

    def fchmod(self, slot: int, mode: int) -> None:
        os.fchmod(self.files[slot], mode)

    def fsync(self, slot: int) -> None:
        os.fsync(self.files[slot])

    def allocate(self, slot: int, mode: int, position: int, size: int) -> None:
        checked(_libc.fallocate(self.files[slot], mode, position, size))

    def copy(self, slot: int, to: int, size: int, at: int, to_at: int) -> int:
        return os.copy_file_range(self.files[slot], self.files[to], size, at, to_at)

    def lock(self, slot: int, kind: int) -> None:
        fcntl.flock(self.files[slot], kind | fcntl.LOCK_NB)

    def lock_range(self, slot: int, kind: int, start: int, size: int) -> None:
        wait = 0 if kind == fcntl.LOCK_UN else fcntl.LOCK_NB
        fcntl.lockf(self.files[slot], kind | wait, size, start)

    def map(self, slot: int, position: int, byte: int) -> bytes:
        """Change a byte of the first page through a shared mapping."""
        fd = self.files[slot]
        if os.fstat(fd).st_size <= position:
            return b""
        try:
            with mmap.mmap(fd, position + 1) as view:
                view[position] = byte
                view.flush()
                return view[:4]
        except ValueError:
            return b"not mapped"

    # --- Names --------------------------------------------------------------------

    def truncate(self, name: str, size: int) -> None:
        os.truncate(self.path(name), size)

    def mkdir(self, name: str, mode: int) -> None:
        os.mkdir(self.path(name), mode)

    def mknod(self, name: str, mode: int) -> None:
        os.mknod(self.path(name), mode | stat.S_IFIFO)

    def rmdir(self, name: str) -> None:
        os.rmdir(self.path(name))

    def unlink(self, name: str) -> None:
        os.unlink(self.path(name))

    def rename(self, old: str, new: str, flags: int) -> None:
        old_path, new_path = self.path(old).encode(), self.path(new).encode()
        checked(_libc.renameat2(-100, old_path, -100, new_path, flags))

    def link(self, old: str, new: str) -> None:
        os.link(self.path(old), self.path(new), follow_symlinks=False)

    def symlink(self, target: str, name: str) -> None:
        os.symlink(target, self.path(name))

    def readlink(self, name: str) -> str:
        return os.readlink(self.path(name))

    def listdir(self, name: str) -> list[str]:
        return sorted(os.listdir(self.path(name)))

    # --- Attributes ---------------------------------------------------------------

    def stat(self, name: str) -> tuple[int, ...]:
        return facts(os.lstat(self.path(name)))

    def chmod(self, name: str, mode: int) -> None:
        os.chmod(self.path(name), mode)

    def chown(self, name: str, uid: int, gid: int) -> None:
        os.chown(self.path(name), uid, gid, follow_symlinks=False)

    def utime(self, name: str, when_ns: int) -> int:
        os.utime(self.path(name), ns=(when_ns, when_ns), follow_symlinks=False)
        return os.lstat(self.path(name)).st_mtime_ns

    def setxattr(self, name: str, key: str, size: int, flags: int) -> bytes:
        os.setxattr(self.path(name), f"user.{key}", bytes(size), flags)
        return os.getxattr(self.path(name), f"user.{key}")

    def removexattr(self, name: str, key: str) -> list[str]:
        os.removexattr(self.path(name), f"user.{key}")
        return sorted(os.listxattr(self.path(name)))

    def end(self) -> dict[str, Any]:
        """Close all files; return the content of the folder."""
        for slot in list(self.files):
            self.close(slot)
        return {
            str(path.relative_to(self.root)): contents(path)
            for path in sorted(self.root.rglob("*"))
        }


def facts(status: os.stat_result) -> tuple[int, ...]:
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return status.st_mode, status.st_nlink, size, status.st_uid, status.st_gid


def contents(path: Path) -> Any:
    status = path.lstat()
    if stat.S_ISREG(status.st_mode):
        return facts(status), path.read_bytes()
    return facts(status), os.readlink(path) if path.is_symlink() else None


def random_operation(rng: random.Random) -> tuple[Any, ...]:
    """Return the name and the arguments of a random operation."""
    name, other = rng.choice(NAMES), rng.choice(NAMES)
    slot, to = rng.randrange(4), rng.randrange(4)
    size = rng.choice((rng.randrange(300), rng.randrange(70_000)))
    position = rng.choice((0, rng.randrange(5000), rng.randrange(200_000)))
    mode, byte = rng.choice(MODES), rng.randrange(256)
    ranges = KEEP_SIZE | PUNCH_HOLE, 0, KEEP_SIZE, ZERO_RANGE
    blocks = BLOCK * rng.randrange(4), BLOCK * rng.randrange(1, 4)
    locks = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_UN
    names = [
        ("truncate", name, position),
        ("mkdir", name, mode),
        ("mknod", name, mode),
        ("rmdir", name),
        ("unlink", name),
        ("rename", name, other, rng.choice((0, 0, NOREPLACE, EXCHANGE))),
        ("link", name, other),
        ("symlink", rng.choice(("a", "d/a", "../b", "no")), name),
        ("readlink", name),
        ("listdir", name),
        ("stat", name),
        ("chmod", name, mode),
        ("chown", name, *rng.choice(OWNERS)),
        ("utime", name, rng.randrange(10**18)),
        ("setxattr", name, rng.choice("xy"), size % 100, rng.choice((0, 0, 1, 2))),
        ("removexattr", name, rng.choice("xy")),
    ]
    files = [
        ("pwrite", slot, size, position, byte),
        ("write", slot, size, byte),
        ("pread", slot, size, position),
        ("ftruncate", slot, position),
        ("fstat", slot),
        ("fchmod", slot, mode),
        ("fsync", slot),
        ("allocate", slot, rng.choice(ranges), *blocks),
        ("copy", slot, to, size, position, rng.randrange(5000)),
        ("lock", slot, rng.choice(locks)),
        ("lock_range", slot, rng.choice(locks), position, size),
        ("map", slot, position % 4096, byte),
        ("close", slot),
    ]
    opened = ("open", slot, name, rng.choice(FLAGS), mode)
    return rng.choice((rng.choice(names), rng.choice(files), opened))


def make_reachable(path: Path) -> None:
    """Let all users pass the folders above a path."""
    for folder in path.parents:
        mode = stat.S_IMODE(folder.stat().st_mode)
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | 0o011)


def compare(mount: Mounted, tmp_path: Path, seed: int, operations: int) -> None:
    """Make random operations on a mount and in a plain folder; compare results."""
    # A folder in a folder of its own: symbolic links may lead one level up.
    name = f"run-{seed}/root"
    roots = tmp_path / "plain" / "root", mount.point / name
    umask = os.umask(0o022 if seed % 2 else 0)
    try:
        for root in roots:
            root.mkdir(parents=True)
            root.chmod(0o2777 if seed % 3 == 0 else 0o777)
            make_reachable(root)
        plain, mounted = map(Player, roots)
        rng = random.Random(seed)
        for number in range(operations):
            operation = rng.choice((0, USER)), *random_operation(rng)
            expected = plain.play(*operation)
            assert mounted.play(*operation) == expected, (number, operation)
    finally:
        os.umask(umask)
    expected = plain.end()
    assert mounted.end() == expected
    assert Player(mount.backing / name).end() == expected


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_mount_behaves_like_its_backing_folder(
    unlimited: Mounted, tmp_path: Path, seed: int
) -> None:
    compare(unlimited, tmp_path, seed, OPERATIONS // ROUNDS)


def test_operations_that_have_waited_behave_like_others(
    mount: Callable[..., Mounted], tmp_path: Path
) -> None:
    (tmp_path / "slo.toml").write_text(ONE_AT_A_TIME)
    mounted = mount("--slo", str(tmp_path / "slo.toml"))
    command = [sys.executable, "-c", NEIGHBOUR, str(mounted.point)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as neighbour:
        try:
            compare(mounted, tmp_path, ROUNDS, 500)
            assert mounted.status()["metadata_waited_s"] > 0.0
        finally:
            neighbour.kill()


@pytest.fixture
def sanitized(tmp_path: Path) -> Iterator[CheckedMount]:
    """Return a mount under the sanitizers of addresses and undefined behaviour."""
    mounted = CheckedMount(tmp_path / "checked")
    file = tmp_path / "all-parts.toml"
    file.write_text(ALL_PARTS)
    try:
        mounted.start("--slo", str(file), "--limit", "50 MB/s")
        yield mounted
    finally:
        # Shown if the test fails.
        print(mounted.reports())
        mounted.end()


def test_no_operation_has_an_invalid_access(
    sanitized: CheckedMount, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", NEIGHBOUR, str(sanitized.point)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as neighbour:
        try:
            compare(sanitized, tmp_path, 1, 1500)
        finally:
            neighbour.kill()
    assert sanitized.status()["pid"] == sanitized.pid
    # Requests under way, the end of all threads.
    os.kill(sanitized.pid, signal.SIGTERM)
    until(lambda: not Path(f"/proc/{sanitized.pid}").exists())
    assert sanitized.reports() == ""
