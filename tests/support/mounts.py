# SPDX-License-Identifier: MIT
"""Real mounts for tests."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from penstock.errors import InputError
from penstock.native.files import mount_library_path
from support.waiting import LIMIT_S

__all__ = ["BROKEN", "Mounted", "penstock", "why_no_mount_library", "why_no_mounts"]


#: Errors of a call at a mount whose process has ended: no connection, it broke during
#: the call, or it broke while the kernel copied the request (fuse_dev_do_read: EIO).
BROKEN = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO)


def why_no_mounts() -> str:
    """Return why mounts are impossible on this machine; empty if they are possible."""
    if os.geteuid() != 0:
        return "not root"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse"
    return why_no_mount_library()


def why_no_mount_library() -> str:
    """Return why there is no library of mounts (libfuse3-dev); empty if there is."""
    try:
        mount_library_path()
    except InputError as error:
        return str(error)
    return ""


class Mounted:
    """A mount point, its backing folder and its process."""

    def __init__(
        self, home: Path, backing: Path | None = None, point: Path | None = None
    ) -> None:
        self.home = home
        self.backing = backing or home / "backing"
        self.point = point or home / "mnt"
        self.pid = 0
        for folder in (self.backing, self.point):
            folder.mkdir(parents=True, exist_ok=True)

    def start(self, *options: str) -> Mounted:
        done = self.command(str(self.backing), str(self.point), *options)
        assert done.returncode == 0, done.stderr
        self.pid = self.status()["pid"]
        return self

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``penstock mount``; a new mount goes to the background."""
        is_mounted = any(
            a.startswith(("--status", "--set", "--unmount")) for a in arguments
        )
        return penstock(
            "mount",
            *([] if is_mounted else ["--background"]),
            *arguments,
            home=self.home,
        )

    def ask(self, *arguments: str) -> str:
        done = self.command(*arguments, str(self.point))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.ask("--status", "--json", "-"))
        return document

    def is_mounted(self) -> bool:
        text = Path("/proc/self/mountinfo").read_text()
        return f" {self.point} " in text

    def end(self) -> None:
        """Unmount, and end the process."""
        while self.is_mounted():
            subprocess.run(["umount", "-l", str(self.point)], check=False, timeout=120)
        if self.pid and _serves(self.pid, self.point):
            os.kill(self.pid, signal.SIGKILL)


def penstock(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run penstock with its sockets below `home`."""
    return subprocess.run(
        [sys.executable, "-m", "penstock", *arguments, "--folder", str(home / "run")],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def _serves(pid: int, point: Path) -> bool:
    """Return True if a process is that of the mount: numbers are soon used again."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return os.fsencode(point) in command.split(b"\0")
