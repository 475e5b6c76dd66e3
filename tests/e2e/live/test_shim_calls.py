# SPDX-License-Identifier: MIT
"""Every wrapped call: same results and files as without control, exact counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock.live.node.pages.page import IoClass
from support.jobs import Job

#: Scene of ``calls.c`` -> bytes written and read under the prefix.
VOLUMES = {
    "write": (1110, 0),
    "writev": (5 * 1024, 0),
    "read": (2000, 2000 + 100 + 10 + 15),
    "readv": (2048, 5 * 1024),
    "copies": (10000 + 1000 + 1000 + 3000 + 500, 1000 + 1000 + 3000 + 500),
    "aio": (750, 750),
    "listio": (300, 300),
    "syscall": (1000 + 100 + 1024 + 1024 + 60, 40 + 60),
    "stdio_write": (300 * 100 + 100000 + 21, 0),
    "stdio_text": (1000 * (12 + 4 + 8 + 4), 0),
    "stdio_positions": (20, 0),
    "stdio_unbuffered": (17, 0),
    "stdio_stdout": (7 + 3 + 3 + 2, 0),
    "stdio_read": (100000, 100000),
    "stdio_lines": (64000, 64000),
    "stdio_characters": (20000, 20000),
    "print_to": (10 + 4 + 2 + 5 + 2, 0),
    "stdio_threads": (3 * 2000 * 30, 0),
    "stdio_under": (10 + 3 + 3, 0),
    "duplicates": (11111, 0),
    "reuse": (6, 0),
    "names": (1 + 10 + 400 + 2000 + 10000 + 100000, 0),
    "temporaries": (110, 0),
    "created": (1 + 2 + 10 + 20 + 100, 0),
    "not_followed": (2 * 10, 0),
    "fork": (1111, 0),
    "vfork": (110, 0),
    "errors": (1000, 0),
    "errno": (100, 0),
    "passed": (2 * (5 + 3) + 2 * (6 + 5 + 3), 2 * 5 + 2 * (6 + 6)),
    "rights": (8 * 10 + 1, 0),
    "unshared": (1000 + 10, 0),
}


def _files(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder)
    folder.mkdir()
    return folder


@pytest.mark.parametrize("scene", VOLUMES)
def test_a_call_answers_as_without_control_and_is_counted(
    job: Job, calls: Path, scene: str
) -> None:
    plain = job.run(calls, scene, environment={})
    left = _files(job.folder)
    _emptied(job.folder)
    job.page.grant(1e9)
    done = job.run(calls, scene)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        plain.stdout,
        plain.stderr,
    )
    assert _files(job.folder) == left
    written, read = VOLUMES[scene]
    assert job.volume(IoClass.WRITE) == written
    assert job.volume(IoClass.READ) == read
    for kind in (IoClass.WRITE, IoClass.READ):
        counters = job.page.counters(kind)
        assert counters.begun_calls == counters.ended_calls
        assert counters.waiting_calls == 0


def test_outside_of_the_prefixes_nothing_is_counted(job: Job, calls: Path) -> None:
    job.page.grant(0.0)
    other = job.root / "controlled-not"
    other.mkdir()
    for scene in VOLUMES:
        done = job.run(calls, scene, folder=other)
        assert done.returncode == 0
        _emptied(other)
    for kind in IoClass:
        assert job.page.counters(kind).ended_calls == 0


def test_symbolic_links_are_resolved_before_a_file_is_controlled(
    job: Job, python: str
) -> None:
    (job.root / "inside").symlink_to(job.folder)
    (job.root / "free").mkdir()
    (job.folder / "outside").symlink_to(job.root / "free")
    code = "import sys; open(sys.argv[1], 'wb', 0).write(bytes(1000))"
    assert job.run(python, "-c", code, job.folder / "outside" / "a").returncode == 0
    assert job.volume(IoClass.WRITE) == 0
    assert job.run(python, "-c", code, job.root / "inside" / "a").returncode == 0
    assert job.volume(IoClass.WRITE) == 1000


def test_the_prefix_of_everything_leaves_proc_and_devices_alone(
    job: Job, python: str
) -> None:
    environment = job.environment | {"PENSTOCK_CONTROLLED": "/"}
    code = (
        "import os; fd = os.open('/proc/self/comm', os.O_RDWR); os.write(fd, b'x');"
        "os.write(os.open('/dev/null', os.O_WRONLY), b'x');"
        "os.write(os.open('a', os.O_WRONLY | os.O_CREAT), bytes(1000))"
    )
    done = job.run(python, "-S", "-c", code, environment=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert job.volume(IoClass.WRITE) == 1000


def test_only_regular_files_are_controlled(job: Job, python: str) -> None:
    code = (
        "import os, socket; os.mkfifo('f'); fd = os.open('f', os.O_RDWR);"
        "os.write(fd, b'x'); os.read(fd, 1); s = socket.socket(socket.AF_UNIX);"
        "s.bind('s'); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect('s');"
        "os.write(c.fileno(), b'x'); a = s.accept()[0]; os.read(a.fileno(), 1)"
    )
    done = job.run(python, "-c", code)
    assert (done.returncode, done.stderr) == (0, b"")
    assert job.page.counters(IoClass.WRITE).ended_calls == 0
    assert job.page.counters(IoClass.READ).ended_calls == 0


def test_inherited_descriptors_are_controlled(job: Job) -> None:
    job.run("sh", "-c", "echo hello > a; cat < a >> b; { echo x; } 3>&1 >> b")
    assert (job.folder / "b").read_bytes() == b"hello\nx\n"
    assert job.volume(IoClass.WRITE) == 6 + 6 + 2
    assert job.volume(IoClass.READ) == 6


def test_a_set_up_of_io_uring_is_counted(job: Job, python: str) -> None:
    code = (
        "import ctypes; libc = ctypes.CDLL(None);"
        "libc.syscall(ctypes.c_long(425), 0, None)"  # io_uring_setup, all machines
    )
    assert job.run(python, "-c", code).returncode == 0
    assert job.page.look().bypass_setups == 1
