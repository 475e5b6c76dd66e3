# SPDX-License-Identifier: MIT
"""A daemon for all users, an attacker A and a victim B: real users of one node.

Needs root. The attacks are in `attacker`; `Victim` says what B noticed of them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hostile.attacker import VICTIM
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import GetStatus, StatusDocument
from penstock.native.files import shim_path
from support.daemons import Daemon
from support.waiting import LIMIT_S

__all__ = [
    "BANDWIDTH",
    "Victim",
    "attack",
    "descriptors",
    "scene",
    "small_disk",
    "socket_of",
    "start_attack",
    "start_victim",
    "status",
    "victim",
]

#: Bandwidth that B has for itself while nobody else moves bytes (bytes/s).
BANDWIDTH = 8e6
_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Victim:
    """What B has met."""

    start_s: float
    """Time to join the daemon."""
    write_s: float
    """Time to write."""
    share: float
    """Rate at which it wrote, as a part of the bandwidth."""
    complaint: str
    """Why it was not controlled; empty if it was."""
    granted: tuple[float, ...]
    """What it was granted while it wrote, as parts of the bandwidth."""


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Have a file system of 64 MiB at a folder, which is made."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=64m,mode=755"]
    subprocess.run(["mount", *options, "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def scene(*, is_small: bool = False, **settings: str) -> Iterator[Daemon]:
    """Yield a running daemon that serves all users; `is_small`: on a small disk."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-hostile-"))
    folder.chmod(0o711)
    # Other users need not have access to the folder of this checkout.
    shutil.copyfile(shim_path(), folder / "libpenstock.so")
    (folder / "libpenstock.so").chmod(0o755)
    settings = {"bandwidth": f"{BANDWIDTH} B/s", "users": "all"} | settings
    daemon = Daemon(folder, **settings)
    daemon.data.chmod(0o777)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        if is_small:
            stack.enter_context(small_disk(daemon.home))
        stack.callback(daemon.close)
        daemon.start()
        yield daemon


def _environment() -> dict[str, str]:
    paths = [str(_TESTS), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def start_attack(path: Path, kind: str, user: int) -> subprocess.Popen[bytes]:
    """Start to attack a socket or a mount as a user, in a process group of its own."""
    words = [str(user), kind, str(path)]
    return subprocess.Popen(
        [sys.executable, "-m", "hostile.attacker", *words],
        stdout=subprocess.PIPE,
        env=_environment(),
        start_new_session=True,
    )


@contextmanager
def attack(path: Path, kind: str, user: int) -> Iterator[None]:
    """Attack a socket or a mount as a user until the block ends."""
    with start_attack(path, kind, user) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def start_victim(
    daemon: Daemon,
    job: str,
    mebibytes: int,
    variables: Mapping[str, str],
    user: int = VICTIM,
) -> subprocess.Popen[str]:
    """Let a user write, with further variables in its environment."""
    words = [str(user), str(daemon.home), str(daemon.data), job, str(mebibytes)]
    return subprocess.Popen(
        [sys.executable, "-m", "hostile.victim", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=_environment() | dict(variables),
    )


def victim(
    daemon: Daemon,
    job: str,
    mebibytes: int = 16,
    variables: Mapping[str, str] | None = None,
) -> Victim:
    """Let B write, with further variables in its environment; return what it met."""
    granted = []
    with start_victim(daemon, job, mebibytes, variables or {}) as process:
        while process.poll() is None:
            time.sleep(0.1)
            granted += [
                (each.grant or 0.0) / BANDWIDTH
                for each in status(daemon).jobs
                if each.user == VICTIM and each.active
            ]
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 0, said
    start = re.search(r"started in (\S+) s", said)
    write = re.search(r"copied, (\S+) s", said)
    complaint = re.search(r"not controlled: (.*)", said)
    assert start, said
    assert write, said
    write_s = float(write[1])
    return Victim(
        float(start[1]),
        write_s,
        mebibytes * 2**20 / write_s / BANDWIDTH,
        complaint[1] if complaint else "",
        tuple(granted),
    )


def socket_of(daemon: Daemon) -> Path:
    """Return the socket of a daemon that all users may connect to."""
    return daemon.home / "agent.sock"


def status(daemon: Daemon) -> StatusDocument:
    """Return the status of the daemon, as root sees it, without explanations.

    To explain 200 jobs ten times a second would cost more than most attacks.
    """
    with Client(socket_of(daemon), limit_s=LIMIT_S) as client:
        reply = client.ask(GetStatus(explains=False))
    assert isinstance(reply, StatusDocument)
    return reply


def descriptors(daemon: Daemon) -> int:
    """Return how many files the daemon has open."""
    assert daemon.process is not None
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))  # noqa: PTH208
