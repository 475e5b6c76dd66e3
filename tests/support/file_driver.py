# SPDX-License-Identifier: MIT
"""Perform the file operations read from standard input, and print their results.

One line is a folder and a list of steps, in JSON; the answer is one line. A program of
its own: with and without the preload library it must answer the same.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = Any
_FLAGS = {
    "w": os.O_WRONLY | os.O_CREAT,
    "wt": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "rw": os.O_RDWR | os.O_CREAT,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "r": os.O_RDONLY,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "s": os.O_WRONLY | os.O_CREAT | os.O_DSYNC,
}


def _data(seed: int, size: int) -> bytes:
    return bytes((seed + i * 7) % 251 for i in range(size))


class Driver:
    """Descriptors by slot, in one folder."""

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}

    def do(self, step: list[Any]) -> Answer:
        """Perform one step; return its result, or the number of its error."""
        name, *words = step
        try:
            call: Callable[..., Answer] = getattr(self, f"do_{name}")
            return call(*words)
        except OSError as error:
            return f"error {error.errno}"

    def close_all(self) -> None:
        """Close all open descriptors."""
        for fd in self.slots.values():
            os.close(fd)
        self.slots.clear()

    def _fd(self, slot: int) -> int:
        return self.slots.get(slot, 9999)  # Not open.

    def _keep(self, slot: int, fd: int) -> None:
        old = self.slots.pop(slot, None)
        self.slots[slot] = fd
        if old is not None:
            os.close(old)

    def do_open(self, slot: int, name: str, how: str) -> Answer:
        self._keep(slot, os.open(name, _FLAGS[how], 0o600))
        return "open"

    def do_dup(self, slot: int, to: int) -> Answer:
        self._keep(to, os.dup(self._fd(slot)))
        return "dup"

    def do_close(self, slot: int) -> Answer:
        os.close(self.slots.pop(slot, 9999))
        return "closed"

    def do_write(self, slot: int, seed: int, size: int) -> Answer:
        return os.write(self._fd(slot), _data(seed, size))

    def do_writev(self, slot: int, seed: int, size: int) -> Answer:
        data = _data(seed, size)
        return os.writev(self._fd(slot), [data[: size // 3], data[size // 3 :]])

    def do_pwrite(self, slot: int, seed: int, size: int, at: int) -> Answer:
        return os.pwrite(self._fd(slot), _data(seed, size), at)

    def do_read(self, slot: int, size: int) -> Answer:
        return os.read(self._fd(slot), size).hex()

    def do_pread(self, slot: int, size: int, at: int) -> Answer:
        return os.pread(self._fd(slot), size, at).hex()

    def do_seek(self, slot: int, at: int, whence: int) -> Answer:
        return os.lseek(self._fd(slot), at, whence)

    def do_ftruncate(self, slot: int, size: int) -> Answer:
        return os.ftruncate(self._fd(slot), size)

    def do_truncate(self, name: str, size: int) -> Answer:
        return os.truncate(name, size)

    def do_fsync(self, slot: int) -> Answer:
        return os.fsync(self._fd(slot))

    def do_fstat(self, slot: int) -> Answer:
        return os.fstat(self._fd(slot)).st_size

    def do_stat(self, name: str) -> Answer:
        return Path(name).stat().st_size

    def do_rename(self, name: str, to: str) -> Answer:
        Path(name).rename(to)
        return "renamed"

    def do_unlink(self, name: str) -> Answer:
        Path(name).unlink()
        return "gone"

    def do_link(self, name: str, to: str) -> Answer:
        return os.link(name, to)

    def do_look(self, name: str) -> Answer:
        return Path(name).read_bytes().hex()

    def do_put(self, name: str, seed: int, size: int) -> Answer:
        return Path(name).write_bytes(_data(seed, size))

    def do_cat(self, name: str) -> Answer:
        """Read the file with another program."""
        done = subprocess.run(
            ["cat", name], capture_output=True, check=False, timeout=120
        )
        return done.returncode, done.stdout.hex()

    def do_copy(self, slot: int, to: int, size: int) -> Answer:
        return os.copy_file_range(self._fd(slot), self._fd(to), size)

    def do_map(self, slot: int) -> Answer:
        fd = self._fd(slot)
        if not os.fstat(fd).st_size:
            return "empty"
        try:
            with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as memory:
                return memory[:].hex()
        except ValueError:
            return "size changed"

    def do_lock(self, slot: int) -> Answer:
        fcntl.lockf(self._fd(slot), fcntl.LOCK_EX)
        return fcntl.lockf(self._fd(slot), fcntl.LOCK_UN)

    def do_append_later(self, slot: int) -> Answer:
        fd = self._fd(slot)
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        return fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_APPEND)

    def do_move(self, number: int) -> Answer:
        """Change the number of the partition in the page of this job, if it has one."""
        page, _, offset = os.environ.get("MOVED_PAGE", "").rpartition(":")
        if page:
            fd = os.open(page, os.O_RDWR)
            os.pwrite(fd, number.to_bytes(4, sys.byteorder), int(offset))
            os.close(fd)
        return "moved"

    def do_fork(self, steps: list[list[Any]]) -> Answer:
        """Let a child do some steps with the descriptors that it inherits."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            answers = [self.do(step) for step in steps]
            os.write(writing, json.dumps(answers).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as stream:
            text = stream.read()
        os.waitpid(child, 0)
        return json.loads(text)


def main() -> None:
    """Serve lines until the end of the input."""
    home = Path.cwd()
    for line in sys.stdin:
        folder, steps = json.loads(line)
        os.chdir(home / folder)
        driver = Driver()
        answers = [driver.do(step) for step in steps]
        driver.close_all()
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
