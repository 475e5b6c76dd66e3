# SPDX-License-Identifier: MIT
# ruff: noqa: PTH115, PTH208 - the calls themselves are tested
"""Random operations on a mount and on a plain folder: same results, same files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.mounts import Mounted

NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a"])
SIZES = st.integers(0, 200_000)
#: Slots of open files.
SLOTS = st.integers(0, 2)
FLAGS = st.sampled_from(
    [
        os.O_RDONLY,
        os.O_RDWR,
        os.O_RDWR | os.O_CREAT,
        os.O_RDWR | os.O_CREAT | os.O_EXCL,
        os.O_RDWR | os.O_CREAT | os.O_TRUNC,
        os.O_RDWR | os.O_CREAT | os.O_APPEND,
        os.O_WRONLY | os.O_APPEND,
    ]
)
OPERATIONS = st.one_of(
    st.tuples(st.just("open"), SLOTS, NAMES, FLAGS),
    st.tuples(st.just("close"), SLOTS),
    st.tuples(st.just("pwrite"), SLOTS, SIZES, SIZES, st.integers(0, 255)),
    st.tuples(st.just("write"), SLOTS, SIZES, st.integers(0, 255)),
    st.tuples(st.just("pread"), SLOTS, SIZES, SIZES),
    st.tuples(st.just("ftruncate"), SLOTS, SIZES),
    st.tuples(st.just("fstat"), SLOTS),
    st.tuples(st.just("fsync"), SLOTS),
    st.tuples(st.just("truncate"), NAMES, SIZES),
    st.tuples(st.just("mkdir"), NAMES),
    st.tuples(st.just("rmdir"), NAMES),
    st.tuples(st.just("unlink"), NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("link"), NAMES, NAMES),
    st.tuples(st.just("symlink"), NAMES, NAMES),
    st.tuples(st.just("chmod"), NAMES, st.sampled_from([0o600, 0o644, 0o4755])),
    st.tuples(st.just("utime"), NAMES, st.integers(0, 10**18)),
    st.tuples(st.just("setxattr"), NAMES, st.binary(max_size=20)),
    st.tuples(st.just("listdir"), NAMES),
    st.tuples(st.just("stat"), NAMES),
)


class Player:
    """Performs operations in a folder and returns comparable results."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.root.mkdir()
        self.files: dict[int, int] = {}

    def play(self, name: str, *arguments: Any) -> Any:
        operation: Callable[..., Any] = getattr(self, name)
        try:
            return operation(*arguments)
        except OSError as error:
            return "error", error.errno
        except KeyError:
            return "not open"

    def open(self, slot: int, name: str, flags: int) -> None:
        fd = os.open(self.root / name, flags, 0o644)
        self.close_if_open(slot)
        self.files[slot] = fd

    def close_if_open(self, slot: int) -> None:
        if slot in self.files:
            os.close(self.files.pop(slot))

    def close(self, slot: int) -> None:
        os.close(self.files.pop(slot))

    def pwrite(self, slot: int, size: int, position: int, byte: int) -> int:
        fd = self.files[slot]
        # On Linux pwrite() ignores the position with O_APPEND; also through FUSE.
        return os.pwrite(fd, bytes([byte]) * size, position)

    def write(self, slot: int, size: int, byte: int) -> tuple[int, int]:
        fd = self.files[slot]
        return os.write(fd, bytes([byte]) * size), os.lseek(fd, 0, os.SEEK_CUR)

    def pread(self, slot: int, size: int, position: int) -> bytes:
        return os.pread(self.files[slot], size, position)

    def ftruncate(self, slot: int, size: int) -> None:
        os.ftruncate(self.files[slot], size)

    def fstat(self, slot: int) -> tuple[int, ...]:
        return _facts(os.fstat(self.files[slot]))

    def fsync(self, slot: int) -> None:
        os.fsync(self.files[slot])

    def truncate(self, name: str, size: int) -> None:
        os.truncate(self.root / name, size)

    def mkdir(self, name: str) -> None:
        (self.root / name).mkdir()

    def rmdir(self, name: str) -> None:
        (self.root / name).rmdir()

    def unlink(self, name: str) -> None:
        (self.root / name).unlink()

    def rename(self, old: str, new: str) -> None:
        (self.root / old).rename(self.root / new)

    def link(self, old: str, new: str) -> None:
        os.link(self.root / old, self.root / new, follow_symlinks=False)

    def symlink(self, target: str, name: str) -> None:
        (self.root / name).symlink_to(target)

    def chmod(self, name: str, mode: int) -> None:
        (self.root / name).chmod(mode)

    def utime(self, name: str, when_ns: int) -> int:
        os.utime(self.root / name, ns=(when_ns, when_ns), follow_symlinks=False)
        return (self.root / name).lstat().st_mtime_ns

    def setxattr(self, name: str, value: bytes) -> bytes:
        os.setxattr(self.root / name, "user.test", value)
        return os.getxattr(self.root / name, "user.test")

    def listdir(self, name: str) -> list[str]:
        return sorted(os.listdir(self.root / name))

    def stat(self, name: str) -> tuple[int, ...]:
        return _facts((self.root / name).lstat())

    def end(self) -> dict[str, Any]:
        """Close all files; return the content of the folder."""
        for slot in list(self.files):
            self.close(slot)
        return {
            str(path.relative_to(self.root)): _contents(path)
            for path in sorted(self.root.rglob("*"))
        }


def _facts(status: os.stat_result) -> tuple[int, ...]:
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return status.st_mode, status.st_nlink, size, status.st_uid, status.st_gid


def _contents(path: Path) -> Any:
    if path.is_symlink():
        return os.readlink(path)
    return "folder" if path.is_dir() else (_facts(path.stat()), path.read_bytes())


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(operations=st.lists(OPERATIONS, min_size=5, max_size=40))
def test_a_mount_behaves_like_its_backing_folder(
    unlimited: Mounted,
    tmp_path_factory: Any,
    operations: list[tuple[Any, ...]],
) -> None:
    name = f"run-{sum(1 for _ in unlimited.backing.iterdir())}"
    plain = Player(tmp_path_factory.mktemp("plain") / name)
    mounted = Player(unlimited.point / name)
    for operation in operations:
        expected = plain.play(*operation)
        assert mounted.play(*operation) == expected, operation
    expected = plain.end()
    assert mounted.end() == expected
    below = Player.__new__(Player)
    below.root, below.files = unlimited.backing / name, {}
    assert below.end() == expected
