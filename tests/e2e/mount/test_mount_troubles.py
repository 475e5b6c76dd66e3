# SPDX-License-Identifier: MIT
"""A storage that answers late or not at all, and a node with too many threads.

``troubles.c`` is preloaded into the process of the mount. It acts on files with certain
names. Where a call waits, it tells the test with a file, and goes on at another one.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.jobs import compiled
from support.mounts import Mounted
from support.waiting import LIMIT_S, until

Mounting = Callable[..., Mounted]

_HERE = Path(__file__).parent
#: Files by the name of their program; the mount itself is `other`.
BY_PROGRAM = """
[applications.some]
throughput = "1 GB/s"
latency = "10 ms"
[[rules]]
application = "some"
program = "prober"
"""


@pytest.fixture
def signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Preload the troubles; return the folder of signs between test and mount."""
    options = ("-shared", "-fPIC")
    library = compiled(tmp_path / "troubles.so", str(_HERE / "troubles.c"), options)
    folder = tmp_path / "signs"
    folder.mkdir()
    monkeypatch.setenv("TROUBLES", str(folder))
    monkeypatch.setenv("LD_PRELOAD", str(library))
    return folder


def test_a_storage_that_writes_nothing_is_an_error(
    signs: Path, mount: Mounting
) -> None:
    assert signs.is_dir()
    mounted = mount()
    with (
        (mounted.point / "writes-nothing").open("wb", buffering=0) as file,
        pytest.raises(OSError, match="Input/output") as raised,
    ):
        file.write(b"data")
    assert raised.value.errno == errno.EIO


def test_a_slow_close_holds_up_nobody(signs: Path, mount: Mounting) -> None:
    mounted = mount()
    file = mounted.point / "closes-slowly"
    other = mounted.point / "other"
    other.mkdir()
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY)
    # From now on the mount keeps a descriptor of the file without a name.
    file.unlink()
    os.close(descriptor)
    until((signs / "close-waits").exists)
    made = threading.Thread(target=(other / "new").mkdir, daemon=True)
    made.start()
    made.join(60.0)
    is_done = not made.is_alive()
    (signs / "close-goes").touch()
    assert is_done
    made.join(LIMIT_S)


def test_a_file_that_is_removed_while_it_is_opened_can_be_used(
    signs: Path, mount: Mounting
) -> None:
    mounted = mount()
    file = mounted.point / "opens-slowly"
    (mounted.backing / "opens-slowly").write_bytes(b"content")
    opened: list[int] = []
    opener = threading.Thread(
        target=lambda: opened.append(os.open(file, os.O_RDWR)), daemon=True
    )
    opener.start()
    until((signs / "open-waits").exists)
    file.unlink()
    (signs / "open-goes").touch()
    opener.join(LIMIT_S)
    (descriptor,) = opened
    status = os.fstat(descriptor)
    assert (status.st_size, status.st_nlink) == (7, 0)
    os.fchmod(descriptor, 0o600)
    assert stat.S_IMODE(os.fstat(descriptor).st_mode) == 0o600
    assert os.pread(descriptor, 100, 0) == b"content"
    os.close(descriptor)


@pytest.mark.parametrize(
    ("part", "left", "reason"),
    [
        ("libfuse3", 0, "error creating thread"),
        # The first thread sends late answers, from the beginning on; those of the gates
        # follow when the folder is mounted.
        *[("libpenstock-mount", n, os.strerror(errno.EAGAIN)) for n in (1, 2, 3, 4)],
    ],
)
def test_a_mount_without_threads_says_so_and_ends(
    signs: Path, monkeypatch: pytest.MonkeyPatch, part: str, left: int, reason: str
) -> None:
    assert signs.is_dir()
    monkeypatch.setenv("REFUSED_THREADS", part)
    monkeypatch.setenv("THREADS_LEFT", str(left))
    mounted = Mounted(signs.parent / "refused")
    done = mounted.command(str(mounted.backing), str(mounted.point))
    monkeypatch.delenv("REFUSED_THREADS")
    assert done.returncode != 0
    assert not mounted.is_mounted()
    assert f"requests cannot be served: {reason}" in done.stderr
    assert "allow more threads" in done.stderr


def test_a_program_on_a_storage_that_hangs_does_not_hold_up_its_own_requests(
    mount: Mounting, tmp_path: Path
) -> None:
    """A rule looks at the name of a program, and never at its file."""
    programs = mount()
    prober = compiled(programs.backing / "prober", str(_HERE / "prober.c"), ["-static"])
    (tmp_path / "slo.toml").write_text(BY_PROGRAM)
    mounted = mount("--slo", str(tmp_path / "slo.toml"))
    process = subprocess.Popen(
        [programs.point / prober.name, mounted.point / "no-such-file"],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        process.stdout.read(1)
        os.kill(programs.pid, signal.SIGSTOP)
        # Longer than the kernel keeps attributes, and the mount its answers.
        end_s = time.monotonic() + 3.0
        while time.monotonic() < end_s:
            assert readable(process.stdout.fileno())
            process.stdout.read(1)
        before = operations(mounted)
        until(lambda: operations(mounted) > before)
    finally:
        os.kill(programs.pid, signal.SIGCONT)
        process.kill()
        process.wait(LIMIT_S)
        process.stdout.close()


def readable(descriptor: int) -> bool:
    """Return True if there is something to read within a minute."""
    ready, _, _ = select.select([descriptor], [], [], 60.0)
    return bool(ready)


def operations(mounted: Mounted) -> int:
    """Return the number of requests of the program."""
    lines = mounted.status()["order"]["applications"]
    number: int = next(a["operations"] for a in lines if a["name"] == "some")
    return number
