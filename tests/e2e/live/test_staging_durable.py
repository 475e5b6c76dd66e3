# SPDX-License-Identifier: MIT
"""With ``durable = journal``, data acknowledged by fsync and close are on storage."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.live.node.pages.page import IoClass
from penstock.live.staging.drainers import drain_beside
from support.jobs import Job
from support.stages import Stage
from support.waiting import LIMIT_S, until

CAPACITY = 64 << 10
OPENED = "import os; fd = os.open('a', os.O_WRONLY | os.O_CREAT, 0o600); "


pytestmark = pytest.mark.usefixtures("strace")


def _synced(
    stage: Stage, code: str, page: Path | None = None, inject: str = ""
) -> list[Path]:
    """Run a program; return the files that it has synced, in order."""
    environment = stage.environment(CAPACITY, page=page, durable="journal")
    names = [key for key in environment if key.startswith(("PENSTOCK", "LD_PRELOAD"))]
    log = stage.folder.parent / "syncs"
    command = ["strace", "-f", "-qq", "-y", "-o", str(log), "-e", "trace=fsync"]
    command += ["-e", f"inject=fsync:{inject}"] if inject else []
    for name in names:
        command += ["-E", f"{name}={environment.pop(name)}"]
    words = (*command, sys.executable, "-S", "-c", code)
    done = stage.run(*words, environment=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    return [Path(path) for path in re.findall(r"fsync\(\d+<(.*?)>", log.read_text())]


@pytest.mark.parametrize(
    ("change", "through"),
    [
        ("pass", False),
        ("os.write(fd, b'y' * 100)", False),
        ("os.writev(fd, [b'y'] * 64)", False),
        ("os.write(fd, bytes(100 << 10))", True),  # More than a journal holds.
        ("os.pwrite(fd, bytes(100 << 10), 7)", True),
        ("os.writev(fd, [b'y'] * 65)", True),
        ("os.ftruncate(fd, 10)", True),
        ("os.posix_fallocate(fd, 0, 5000)", True),
        ("os.fchmod(fd, 0o644)", True),
        ("os.chmod('a', 0o644)", True),
        ("os.utime('a', (7, 7))", True),
    ],
)
def test_fsync_syncs_the_file_itself_if_that_was_changed(
    stage: Stage, change: str, through: bool
) -> None:
    code = f"{OPENED} os.write(fd, b'x' * 100); os.fsync(fd); os.fdatasync(fd); "
    code += f"{change}; os.write(fd, b'z'); os.fsync(fd); os.fdatasync(fd)"
    file = stage.folder / "a"
    # The first sync makes the new file durable; later ones need only the journal.
    assert _synced(stage, code).count(file) == 1 + through


def test_fsync_syncs_the_name_of_a_new_journal(stage: Stage) -> None:
    code = (
        f"{OPENED} os.write(fd, b'x'); os.fsync(fd); os.write(fd, b'y'); os.fsync(fd)"
    )
    assert _synced(stage, code).count(stage.journals) == 1


#: One thread syncs the file a. While it is in the kernel, another closes this file, and
#: the file b gets its journal's place in the table of the library.
_SYNCED_MEANWHILE = (
    OPENED
    + """
import threading, time
os.write(fd, b'x')
thread = threading.Thread(target=os.fsync, args=(fd,))
thread.start()
state, seen = f'/proc/self/task/{thread.native_id}/stat', 0
for _ in range(10000):
    seen = seen + 1 if open(state).read().rpartition(')')[2].split()[0] == 't' else 0
    if seen == 20:  # The tracer holds the thread up, and not for a moment.
        break
    time.sleep(0.005)
os.close(fd)
os.open('.', os.O_RDONLY)  # The file b does not get the number of this descriptor.
other = os.open('b', os.O_WRONLY | os.O_CREAT, 0o600)
os.write(other, b'y')
thread.join()
os.fsync(other)
"""
)


def test_a_sync_of_another_file_does_not_mark_the_journal_as_synced(
    stage: Stage,
) -> None:
    synced = _synced(stage, _SYNCED_MEANWHILE, inject="delay_exit=500000:when=2")
    assert synced.count(stage.folder / "b") == 1


def test_fsync_through_a_duplicate_descriptor_syncs_the_file_itself(
    stage: Stage,
) -> None:
    code = f"{OPENED} os.write(fd, b'x' * 100); os.fsync(fd); "
    code += "other = os.dup(fd); os.write(other, b'y'); os.fsync(other)"
    assert _synced(stage, code).count(stage.folder / "a") == 2


@pytest.fixture
def held(stage: Stage, job: Job) -> Iterator[Path]:
    """Return the page of a job whose drainer runs and has no grant."""
    job.page.grant(0.0)
    code = "import os, sys; fd = os.open('other', os.O_WRONLY | os.O_CREAT); "
    code += "os.write(fd, b'x'); sys.stdin.read()"
    environment = stage.environment(page=job.page.path, durable="journal")
    program = stage.start(sys.executable, "-S", "-c", code, environment=environment)
    drainer_arguments = (job.page.path, stage.journals, os.geteuid(), os.getegid())
    drainer = drain_beside(*drainer_arguments)
    until(lambda: job.page.counters(IoClass.DRAIN).waiting_calls)
    yield job.page.path
    for process in (program, drainer):
        process.kill()
        process.communicate(timeout=LIMIT_S)


@pytest.mark.parametrize("end", ["os.close(fd)", "os._exit(0)"])
def test_close_does_not_wait_for_the_drain_but_for_a_file_that_is_new(
    stage: Stage, held: Path, end: str
) -> None:
    synced = _synced(stage, f"{OPENED} os.write(fd, b'x' * 100); {end}", held)
    assert synced.count(stage.folder / "a") == 1
    assert (stage.folder / "a").stat().st_size == 0
