# SPDX-License-Identifier: MIT
"""A drainer runs beside a program, at the job's rate, on the job's journals only."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.live.node.pages.page import IoClass, Page
from penstock.live.staging.drain import JournalState
from penstock.live.staging.drainers import Drainer, drain_beside
from penstock.live.staging.journal import Lock
from penstock.native.files import shim_path
from support.jobs import Job
from support.stages import Stage
from support.users import NEEDS_ROOT, NOBODY, open_for_all
from support.waiting import LIMIT_S, until

#: Opens a file, writes as many bytes as each input line says, and closes it at the end.
_WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for line in sys.stdin:
    print(os.write(fd, b"x" * int(line)), flush=True)
try:
    os.close(fd)
except OSError as error:
    sys.exit(error.strerror)
print("closed", flush=True)
"""
MB = 1_000_000


class Writer:
    """A program that writes to a staged file on request."""

    def __init__(self, stage: Stage, environment: dict[str, str], name: str) -> None:
        self.path = stage.folder / name
        self.process = stage.start(
            *(sys.executable, "-S", "-c", _WRITER, name), environment=environment
        )

    def write(self, size: int) -> None:
        """Let the program write, and wait until it has written."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{size}\n".encode())
        self.process.stdin.flush()
        assert int(self.process.stdout.readline()) == size

    def end(self) -> bytes:
        """Let the program close the file and end; return its output."""
        return self.process.communicate(timeout=LIMIT_S)[0]


@contextmanager
def _draining(page: Page, stage: Stage) -> Iterator[subprocess.Popen[bytes]]:
    process = drain_beside(page.path, stage.journals, os.geteuid(), os.getegid())
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT_S)


def _pending(page: Page) -> int:
    staged = page.staged
    return staged.absorbed_bytes - staged.drained_bytes


def test_staged_data_are_drained_while_the_program_runs(stage: Stage, job: Job) -> None:
    job.page.renew(60.0)
    job.page.grant(10 * MB)
    writer = Writer(stage, stage.environment(page=job.page.path), "a")
    for _ in range(40):
        writer.write(MB // 5)
    began = time.monotonic()
    with _draining(job.page, stage):
        until(lambda: _pending(job.page) == 0)
        # Except for the credit of the first 0.1 s and the last step.
        assert time.monotonic() - began > (8 - 1 - 0.4) / 10
        assert writer.path.read_bytes() == b"x" * 8 * MB
        # The bytes count as drained, not as written by the program.
        until(lambda: job.volume(IoClass.DRAIN) == 8 * MB)
        assert job.volume(IoClass.WRITE) == 0
        writer.write(1000)
        assert writer.end() == b"closed\n"
    assert writer.path.stat().st_size == 8 * MB + 1000
    assert stage.left_over() == []
    assert job.page.charged_bytes() >= 8 * MB


def test_a_drainer_waits_for_its_grant(stage: Stage, job: Job) -> None:
    job.page.renew(60.0)
    job.page.grant(0.0)
    writer = Writer(stage, stage.environment(page=job.page.path), "a")
    writer.write(MB)
    with _draining(job.page, stage):
        until(lambda: job.page.counters(IoClass.DRAIN).waiting_calls)
        assert writer.path.stat().st_size == 0
        # The program is not held up and is not reported as held up.
        assert job.page.counters(IoClass.WRITE).waiting_calls == 0
        job.page.grant(float("inf"))
        until(lambda: _pending(job.page) == 0)
        assert writer.path.stat().st_size == MB
        assert writer.end() == b"closed\n"


def test_a_drainer_ignores_the_journals_of_other_jobs(
    stage: Stage, job: Job, tmp_path: Path
) -> None:
    other = Page.create(tmp_path / "other.page")
    job.page.renew(60.0)
    own_writer = Writer(stage, stage.environment(page=job.page.path), "mine")
    other_writer = Writer(stage, stage.environment(page=other.path), "theirs")
    nobodys = Writer(stage, stage.environment(), "nobodys")
    for writer in (own_writer, other_writer, nobodys):
        writer.write(MB)
    with _draining(job.page, stage):
        until(lambda: _pending(job.page) == 0)
        assert own_writer.path.stat().st_size == MB
        assert other_writer.path.stat().st_size == nobodys.path.stat().st_size == 0
    for writer in (own_writer, other_writer, nobodys):
        assert writer.end() == b"closed\n"
        assert writer.path.stat().st_size == MB


#: Writes to as many files as its argument says, and waits.
_MANY = """
import os, sys
for number in range(int(sys.argv[1])):
    fd = os.open(f"file-{number}", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"%03d" % number * 100_000)
print("staged", flush=True)
sys.stdin.read()
"""


def test_several_journals_are_drained_at_the_same_time(stage: Stage, job: Job) -> None:
    """Each once and whole, whichever thread of the drainer has it."""
    job.page.renew(60.0)
    job.page.grant(0.0)
    environment = stage.environment(page=job.page.path)
    program = stage.start(
        sys.executable, "-S", "-c", _MANY, 24, environment=environment
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"staged\n"
    with _draining(job.page, stage) as drainer:
        until(lambda: job.page.counters(IoClass.DRAIN).waiting_calls > 1)
        job.page.grant(float("inf"))
        until(lambda: _pending(job.page) == 0)
        assert drainer.poll() is None
        for number in range(24):
            data = (stage.folder / f"file-{number}").read_bytes()
            assert data == b"%03d" % number * 100_000
        assert job.page.staged.drained_bytes == 24 * 300_000
        until(lambda: job.volume(IoClass.DRAIN) == 24 * 300_000)
        program.communicate(timeout=LIMIT_S)
    assert job.volume(IoClass.WRITE) == 0
    assert stage.left_over() == []


def test_a_drainer_leaves_a_journal_to_the_program_that_drains_it(
    stage: Stage, job: Job
) -> None:
    """If it waited for its turn, the turn would be lost for the whole job."""
    job.page.renew(60.0)
    first = Writer(stage, stage.environment(page=job.page.path), "a")
    first.write(1000)
    (journal,) = stage.journals.glob("*.journal")
    with journal.open("r+b") as held:
        words = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, Lock.DRAIN, 1, 0)
        fcntl.fcntl(held, fcntl.F_OFD_SETLK, words)
        second = Writer(stage, stage.environment(page=job.page.path), "b")
        second.write(1000)
        with _draining(job.page, stage):
            until(lambda: second.path.stat().st_size == 1000)
            time.sleep(0.2)  # Its threads look every 20 ms.
            assert job.page.counters(IoClass.DRAIN).begun_calls == 1
            assert first.path.stat().st_size == 0
            held.close()
            until(lambda: first.path.stat().st_size == 1000)
    for writer in (first, second):
        assert writer.end() == b"closed\n"


def test_close_leaves_a_journal_on_disk_to_the_drainer(stage: Stage, job: Job) -> None:
    environment = stage.environment(page=job.page.path, durable="journal")
    job.page.renew(60.0)
    job.page.grant(0.0)  # A program that waited for the drain would wait for ever.
    writer = Writer(stage, environment, "a")
    writer.write(MB)
    with _draining(job.page, stage):
        until(lambda: job.page.counters(IoClass.DRAIN).waiting_calls)
        assert writer.end() == b"closed\n"
        assert writer.path.stat().st_size == 0
        job.page.grant(float("inf"))
        until(lambda: stage.left_over() == [])
    assert writer.path.read_bytes() == b"x" * MB


def test_later_writes_are_staged_until_the_drain_is_done(
    stage: Stage, job: Job
) -> None:
    environment = stage.environment(page=job.page.path, always=False)
    job.page.renew(60.0)
    job.page.grant(0.0)
    job.page.stages = True
    writer = Writer(stage, environment, "a")
    writer.write(MB)
    with _draining(job.page, stage):
        until(lambda: job.page.counters(IoClass.DRAIN).waiting_calls)
        job.page.stages = False
        # A write to the file itself would wait for a drain that is held up.
        writer.write(1000)
        assert job.page.staged.absorbed_bytes == MB + 1000
        job.page.grant(float("inf"))
        until(lambda: _pending(job.page) == 0)
        writer.write(2000)
        assert job.page.staged.absorbed_bytes == MB + 1000
        assert writer.path.stat().st_size == MB + 3000
        assert writer.end() == b"closed\n"


def test_a_killed_drainer_is_replaced_and_nothing_is_lost(
    stage: Stage, job: Job
) -> None:
    job.page.renew(60.0)
    job.page.grant(4 * MB)
    writer = Writer(stage, stage.environment(page=job.page.path), "a")
    for _ in range(20):
        writer.write(MB // 5)
    for wanted in (1, MB, 2 * MB):
        with _draining(job.page, stage):
            until(lambda: job.page.staged.drained_bytes >= wanted)  # noqa: B023
    job.page.grant(float("inf"))
    assert writer.end() == b"closed\n"
    assert writer.path.read_bytes() == b"x" * 4 * MB
    assert stage.left_over() == []


def test_the_page_is_corrected_after_a_drain_by_another_process(
    stage: Stage, job: Job
) -> None:
    writer = Writer(stage, stage.environment(page=job.page.path), "a")
    writer.write(MB)
    stage.drain()
    assert writer.path.stat().st_size == MB
    assert _pending(job.page) == MB
    with _draining(job.page, stage):
        until(lambda: _pending(job.page) == 0)
    writer.write(1000)
    assert _pending(job.page) == 1000
    assert writer.end() == b"closed\n"


def test_a_drainer_ends_when_nothing_is_staged(stage: Stage, job: Job) -> None:
    writer = Writer(stage, stage.environment(page=job.page.path), "a")
    writer.write(1000)
    drainer = Drainer(job.page.path, os.geteuid(), os.getegid())
    drainer.keep(stage.journals)
    assert drainer.is_running
    until(lambda: _pending(job.page) == 0)
    until(lambda: not drainer.is_running)
    assert writer.end() == b"closed\n"


def test_a_failed_drain_is_reported_to_the_program(stage: Stage, job: Job) -> None:
    writer = Writer(stage, stage.environment(page=job.page.path), "a")
    writer.write(1000)
    writer.path.rename(
        stage.folder / "hidden"
    )  # Not with a program that has loaded the library.
    (stage.folder / "a").write_text("another")
    with _draining(job.page, stage) as process:
        time.sleep(0.3)
        assert process.poll() is None
        assert (stage.folder / "a").read_text() == "another"
        assert _pending(job.page) == 1000
        assert writer.end() == b"closed\n"
    assert (stage.folder / "hidden").read_bytes() == b"x" * 1000


def test_a_drainer_without_a_page_drains_nothing(stage: Stage, tmp_path: Path) -> None:
    writer = Writer(stage, stage.environment(), "a")
    writer.write(1000)
    gone = tmp_path / "gone.page"
    process = drain_beside(gone, stage.journals, os.geteuid(), os.getegid())
    assert process.wait(LIMIT_S) == 0
    assert writer.path.stat().st_size == 0
    assert writer.end() == b"closed\n"


def test_journals_of_dead_processes_are_drained_for_their_own_job_only(
    stage: Stage, job: Job, tmp_path: Path
) -> None:
    """Otherwise the end of a job would drain the journals of others without pacing."""
    other = Page.create(tmp_path / "other.page")
    own_writer = Writer(stage, stage.environment(page=job.page.path), "mine")
    other_writer = Writer(stage, stage.environment(page=other.path), "theirs")
    for writer in (own_writer, other_writer):
        writer.write(1000)
        writer.process.kill()
        writer.process.communicate(timeout=LIMIT_S)
    stage.sweep(job.page)
    assert own_writer.path.stat().st_size == 1000
    assert other_writer.path.stat().st_size == 0
    stage.sweep(other)
    assert other_writer.path.stat().st_size == 1000
    assert stage.left_over() == []


@NEEDS_ROOT
def test_a_file_that_was_made_read_only_is_drained(tmp_path: Path) -> None:
    """The test runs as a normal user, because root may write to any file."""
    stage = Stage(tmp_path / "staged", tmp_path / "journals")
    page = Page.create(tmp_path / "page")
    open_for_all(tmp_path)
    stage.folder.mkdir(mode=0o700)
    stage.journals.mkdir(mode=0o700)
    environment = stage.environment(page=page.path)
    for path in (stage.folder, stage.journals, page.path):
        os.chown(path, NOBODY, NOBODY)
    library = shutil.copy(shim_path(), str(tmp_path / "library.so"))
    environment["LD_PRELOAD"] = library
    with subprocess.Popen(
        ["dd", "of=out", "bs=8", "status=none"],
        env=environment,
        cwd=stage.folder,
        stdin=subprocess.PIPE,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    ) as program:
        assert program.stdin is not None
        program.stdin.write(b"written\n")
        program.stdin.flush()
        until(lambda: _pending(page) == 8)
        out = stage.folder / "out"
        out.chmod(0o444)
        drainer = drain_beside(page.path, stage.journals, NOBODY, NOBODY)
        until(lambda: out.read_bytes() == b"written\n")
        assert out.stat().st_mode & 0o777 == 0o444
        drainer.kill()
        drainer.wait(LIMIT_S)


def test_a_drainer_that_can_drain_nothing_ends(stage: Stage, job: Job) -> None:
    writer = Writer(stage, stage.environment(page=job.page.path), "a")
    writer.write(1000)
    writer.path.rename(stage.folder / "hidden")
    process = drain_beside(job.page.path, stage.journals, os.geteuid(), os.getegid())
    assert process.wait(LIMIT_S) == 0
    assert _pending(job.page) == 1000
    assert writer.end() == b"closed\n"
    assert (stage.folder / "hidden").stat().st_size == 1000


def test_a_drain_of_another_jobs_journal_is_not_counted_in_the_own_page(
    stage: Stage, job: Job, tmp_path: Path
) -> None:
    other = Page.create(tmp_path / "other.page")
    other_writer = Writer(stage, stage.environment(page=other.path), "theirs")
    other_writer.write(1000)
    done = stage.run("cat", "theirs", environment=stage.environment(page=job.page.path))
    assert done.stdout == b"x" * 1000
    assert job.page.staged.drained_bytes == 0
    # The page of the job that staged the data is corrected by its own drainer.
    with _draining(other, stage):
        until(lambda: _pending(other) == 0)
    assert other_writer.end() == b"closed\n"


def test_a_job_with_two_folders_has_no_drainer(
    stage: Stage, job: Job, tmp_path: Path
) -> None:
    second = Stage(stage.folder, tmp_path / "second")
    writers = [
        Writer(each, each.environment(page=job.page.path), name)
        for name, each in zip("ab", (stage, second), strict=True)
    ]
    for writer in writers:
        writer.write(1000)
    assert job.page.journal_folder is None
    with _draining(job.page, stage):
        until(lambda: _pending(job.page) == 1000)
        time.sleep(1.5)
        # Data in the other folder do not count as drained.
        assert _pending(job.page) == 1000
    for writer in writers:
        assert writer.end() == b"closed\n"
    assert _pending(job.page) == 0


_RACE = """
import os, sys, threading
fd = os.open("a", os.O_WRONLY | os.O_CREAT)
os.write(fd, bytes(8))
over = threading.Event()
def close_another() -> None:
    while not over.wait(0.001):
        other = os.dup(fd)
        os.pwrite(other, b"z", 1 << 20)
        os.close(other)
thread = threading.Thread(target=close_another)
thread.start()
for place in range(0, 8 * 4000, 8):
    os.pwrite(fd, b"A" * 8, place)
    os.pwrite(fd, b"B" * 8, place)
over.set()
thread.join()
os.close(fd)
"""


def test_nothing_is_written_under_a_journal_that_is_handed_over(
    stage: Stage, job: Job
) -> None:
    environment = stage.environment(page=job.page.path, durable="journal")
    warm = Writer(stage, environment, "warm")
    warm.write(10)
    with _draining(job.page, stage):
        until(lambda: _pending(job.page) == 0)
        for _ in range(3):
            stage.run(sys.executable, "-S", "-c", _RACE, environment=environment)
            until(lambda: _pending(job.page) == 0)
            data = (stage.folder / "a").read_bytes()
            assert data[: 8 * 4000] == b"B" * 8 * 4000
        assert warm.end() == b"closed\n"


def test_only_journals_of_dead_processes_are_drained(stage: Stage) -> None:
    dead, living = (Writer(stage, stage.environment(), name) for name in "ab")
    for writer in (dead, living):
        writer.write(MB)
    dead.process.kill()
    dead.process.communicate(timeout=LIMIT_S)
    stage.sweep()
    until(lambda: len(stage.left_over()) == 1)
    assert dead.path.read_bytes() == b"x" * MB
    assert living.path.stat().st_size == 0
    assert living.end() == b"closed\n"


@NEEDS_ROOT
def test_a_journal_of_another_user_is_not_trusted(stage: Stage) -> None:
    """Its header could name any file to be written."""
    dead = Writer(stage, stage.environment(), "a")
    dead.write(1000)
    dead.process.kill()
    dead.process.communicate(timeout=LIMIT_S)
    (journal,) = stage.journals.glob("*.journal")
    os.chown(journal, NOBODY, NOBODY)
    again = Writer(stage, stage.environment(), "a")
    again.write(10)
    assert again.path.read_bytes() == b"x" * 10
    assert again.end() == b"closed\n"
    assert "journal is kept" in stage.log()
    assert journal.exists()


_ASKS = """
import os, sys
from penstock import bbio
calls = []
fds = [os.open(name, os.O_WRONLY | os.O_CREAT) for name in ("asks", "other")]
bbio.on_flush(fds[0], calls.append)
for fd in fds:
    os.write(fd, b"x" * 1000)
print("staged", flush=True)
sys.stdin.read()
bbio.flush(fds[0])
assert calls == [fds[0]]
"""


def test_a_program_with_a_flush_callback_drains_by_itself(
    stage: Stage, job: Job
) -> None:
    program = stage.start(
        *(sys.executable, "-c", _ASKS),
        environment=stage.environment(page=job.page.path),
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"staged\n"
    with _draining(job.page, stage):
        until(lambda: (stage.folder / "other").stat().st_size == 1000)
        reports = {Path(report.file).name: report for report in stage.drain()}
        assert reports["asks"].state is JournalState.LIVE
        assert "on_flush" in reports["asks"].reason
        assert (stage.folder / "asks").stat().st_size == 0
        program.communicate(timeout=LIMIT_S)
    assert program.returncode == 0
    assert (stage.folder / "asks").stat().st_size == 1000


_CLOSES = """
import os, sys
from penstock import bbio
calls = []
fd, other = [os.open(name, os.O_WRONLY | os.O_CREAT) for name in ("asks", "other")]
bbio.on_flush(fd, calls.append)
os.write(fd, b"x" * 1000)
os.write(other, b"x" * 1000)
print("staged", flush=True)
sys.stdin.read()
os.close(fd)
print(calls == [fd], flush=True)
"""


def test_close_does_not_leave_a_file_with_a_flush_callback_to_the_drainer(
    stage: Stage, job: Job
) -> None:
    environment = stage.environment(page=job.page.path, durable="journal")
    program = stage.start(*(sys.executable, "-c", _CLOSES), environment=environment)
    assert program.stdout is not None
    assert program.stdout.readline() == b"staged\n"
    with _draining(job.page, stage):
        until(lambda: (stage.folder / "other").stat().st_size == 1000)
        output, _ = program.communicate(timeout=LIMIT_S)
    assert output == b"True\n"
    assert (stage.folder / "asks").stat().st_size == 1000


def test_callbacks_of_dead_programs_are_not_called(stage: Stage) -> None:
    program = stage.start(sys.executable, "-c", _ASKS)
    assert program.stdout is not None
    assert program.stdout.readline() == b"staged\n"
    program.kill()
    program.communicate(timeout=LIMIT_S)
    assert [report.state for report in stage.drain()] == [JournalState.DRAINED] * 2
    assert (stage.folder / "asks").stat().st_size == 1000


def test_a_program_that_opens_the_file_does_not_wait_for_the_callback(
    stage: Stage,
) -> None:
    program = stage.start(sys.executable, "-c", _ASKS)
    assert program.stdout is not None
    assert program.stdout.readline() == b"staged\n"
    assert stage.run("cat", "asks").stdout == b"x" * 1000
    program.kill()
    program.communicate(timeout=LIMIT_S)
