# SPDX-License-Identifier: MIT
"""The guarantees of staging, one case at a time."""

from __future__ import annotations

import argparse
import errno
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.cli.live import drain
from penstock.live.node.pages.page import IoClass, Page
from penstock.live.staging.drain import JournalState, list_journals
from penstock.live.staging.drainers import drain_beside
from penstock.live.staging.journal import LAYOUT
from support.jobs import Job
from support.stages import Stage
from support.waiting import LIMIT_S, until

#: Writes, prints a line, and waits for a line of input or a kill.
WRITER = """
import os, sys
fd = os.open("a", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(fd, b"staged" * 1000)
print("written", flush=True)
for line in sys.stdin:
    os.write(fd, line.encode())
    print("written", flush=True)
"""
STAGED = b"staged" * 1000


def _command(*words: object) -> int:
    """Run ``penstock drain``; return its exit status."""
    parser = argparse.ArgumentParser()
    drain.setup_parser(parser)
    return drain.main(parser.parse_args([str(word) for word in words]))


def _tell(program: subprocess.Popen[bytes], text: bytes) -> None:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(text)
    program.stdin.flush()
    assert program.stdout.readline() == b"written\n"


@pytest.fixture
def writer(stage: Stage) -> Iterator[subprocess.Popen[bytes]]:
    """Return a program that has staged data and waits."""
    program = stage.start(sys.executable, "-S", "-c", WRITER)
    assert program.stdout is not None
    assert program.stdout.readline() == b"written\n"
    yield program
    program.kill()
    program.communicate(timeout=LIMIT_S)


def _killed(program: subprocess.Popen[bytes]) -> None:
    program.kill()
    program.communicate(timeout=LIMIT_S)


def _small_file_system(folder: Path, size: str) -> bool:
    command = [
        "mount",
        "-t",
        "tmpfs",
        "-o",
        f"size={size},mode=700",
        "none",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    return done.returncode == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or not _small_file_system(folder, "256k"):
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True, timeout=120)


# --- Other processes ------------------------------------------------------------------


def test_written_data_are_staged_and_not_in_the_file(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    assert (stage.folder / "a").read_bytes() == b""
    (report,) = list_journals(stage.journals)
    assert (report.state, report.pending_bytes) == (JournalState.LIVE, len(STAGED))
    assert report.process == writer.pid
    assert report.file == str(stage.folder / "a")


def test_another_program_finds_what_was_written(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    assert stage.run("stat", "-c", "%s", "a").stdout == b"%d\n" % len(STAGED)
    assert stage.run("cat", "a").stdout == STAGED
    _tell(writer, b"more\n")
    assert (stage.folder / "a").read_bytes() == STAGED + b"more\n"


@pytest.mark.parametrize("path", ["{link}/a", "{link}/../staged/a", "../staged/a"])
def test_any_path_to_a_file_shows_its_size(
    stage: Stage, writer: subprocess.Popen[bytes], tmp_path: Path, path: str
) -> None:
    (tmp_path / "link").symlink_to(stage.folder)
    name = path.format(link=tmp_path / "link")
    code = "import os, sys; print(os.stat(sys.argv[1]).st_size)"
    done = stage.run(sys.executable, "-S", "-c", code, name)
    assert int(done.stdout) == len(STAGED)
    assert (stage.folder / "a").stat().st_size == 0


def test_a_second_writer_waits_for_the_first(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    code = "import os; fd = os.open('a', os.O_WRONLY); os.pwrite(fd, b'second', 6)"
    assert stage.run(sys.executable, "-S", "-c", code).returncode == 0
    _tell(writer, b"more\n")
    expected = STAGED[:6] + b"second" + STAGED[12:] + b"more\n"
    assert (stage.folder / "a").read_bytes() == expected


def test_a_drainer_works_beside_the_writer(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    (report,) = stage.drain()
    assert (report.state, report.drained_bytes) == (JournalState.LIVE, len(STAGED))
    assert (stage.folder / "a").read_bytes() == STAGED
    _tell(writer, b"more\n")
    assert (stage.folder / "a").read_bytes() == STAGED
    (report,) = stage.drain()
    assert (stage.folder / "a").read_bytes() == STAGED + b"more\n"


def test_a_moved_file_is_found_through_its_writer(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    (stage.folder / "a").rename(stage.folder / "moved")
    (report,) = stage.drain()
    assert report.drained_bytes == len(STAGED)
    assert (stage.folder / "moved").read_bytes() == STAGED


# --- What the dead leave behind -------------------------------------------------------


def test_the_next_program_drains_what_a_dead_one_has_left(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    _killed(writer)
    assert [report.state for report in list_journals(stage.journals)] == [
        JournalState.ORPHAN
    ]
    assert stage.run("cat", "a").stdout == STAGED
    assert stage.left_over() == []


def test_the_command_drains_what_a_dead_one_has_left(
    stage: Stage, writer: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    _killed(writer)
    assert _command(stage.journals, "--show") == 0
    assert "orphan" in capsys.readouterr().out
    assert (stage.folder / "a").read_bytes() == b""
    assert _command(stage.journals) == 0
    assert f"{len(STAGED)} bytes written" in capsys.readouterr().out
    assert (stage.folder / "a").read_bytes() == STAGED
    assert _command(stage.journals, "--json", "-") == 0
    assert '"journals": []' in capsys.readouterr().out


def test_a_drainer_may_be_staged_itself(
    stage: Stage, writer: subprocess.Popen[bytes], job: Job
) -> None:
    _killed(writer)
    code = "import sys, pathlib; from penstock.live.staging.drain import drain_folder; "
    code += "drain_folder(pathlib.Path(sys.argv[1]))"
    environment = stage.environment(page=job.page.path)
    command = (sys.executable, "-c", code, stage.journals)
    assert stage.run(*command, environment=environment).returncode == 0
    assert (stage.folder / "a").read_bytes() == STAGED
    assert job.page.counters(IoClass.WRITE).moved_bytes == len(STAGED)


def test_a_file_that_is_gone_keeps_its_journal(
    stage: Stage, writer: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    _killed(writer)
    (stage.folder / "a").unlink()
    assert _command(stage.journals) == 1
    assert "not there any more" in capsys.readouterr().out
    assert len(stage.left_over()) == 1


def test_another_file_with_the_name_is_not_written(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    _killed(writer)
    (stage.folder / "a").rename(stage.folder / "old")
    (stage.folder / "a").write_bytes(b"new")
    (report,) = stage.drain()
    assert (report.state, report.reason.split(" (")[0]) == (
        JournalState.KEPT,
        "another file has its name now",
    )
    assert (stage.folder / "a").read_bytes() == b"new"


def _patch(stage: Stage, field: str, value: int) -> Path:
    """Change a word in the header of the only journal."""
    (name,) = stage.left_over()
    place = getattr(LAYOUT["struct journal_header"], field)
    with (stage.journals / name).open("r+b") as file:
        file.seek(place.offset)
        file.write(value.to_bytes(place.size, "little"))
    return stage.journals / name


def test_a_reused_inode_is_another_file(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    _killed(writer)
    _patch(stage, "birth_ns", 12345)
    (report,) = stage.drain()
    assert report.state is JournalState.KEPT
    assert stage.run("cat", "a").stdout == b""
    (left,) = stage.left_over()
    assert left.endswith(".failed")
    assert stage.run(sys.executable, "-S", "-c", WRITER).returncode == 0
    assert (stage.folder / "a").read_bytes() == STAGED


def test_without_birth_times_the_name_decides(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    """As on FUSE: the inode of a dead program's file may belong to a new file."""
    _killed(writer)
    _patch(stage, "birth_ns", 0)
    (stage.folder / "a").rename(stage.folder / "another")
    assert stage.run("cat", "another").stdout == b""
    (left,) = stage.left_over()
    assert left.endswith(".failed")


def test_a_journal_of_another_version_is_kept_and_reported(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    _killed(writer)
    path = _patch(stage, "version", 99)
    kept = path.read_bytes()
    (report,) = stage.drain()
    assert report.state is JournalState.KEPT
    assert "not a journal of version" in report.reason
    assert stage.run(sys.executable, "-S", "-c", WRITER).returncode == 0
    assert (stage.folder / "a").read_bytes() == STAGED
    assert path.read_bytes() == kept
    assert "cannot be read" in stage.log()


@pytest.mark.parametrize("drain", [Stage.drain, Stage.sweep])
def test_after_a_restart_of_the_machine_drains_begin_where_they_were_synced(
    stage: Stage, writer: subprocess.Popen[bytes], drain: Callable[[Stage], object]
) -> None:
    stage.drain()  # These bytes are not synced: a crash of the machine may lose them.
    _killed(writer)
    _patch(stage, "boot", 7)
    _patch(stage, "device", 12345)  # After a restart a device may have another number.
    _patch(stage, "freed", 0)
    (stage.folder / "a").write_bytes(b"")
    drain(stage)
    assert (stage.folder / "a").read_bytes() == STAGED
    assert stage.left_over() == []


def test_after_a_restart_device_and_inode_do_not_identify_a_file(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    """A file that happens to have the same device and inode is not written."""
    _killed(writer)
    other = stage.folder / "other"
    other.write_bytes(b"other")
    _patch(stage, "boot", 7)
    _patch(stage, "birth_ns", 0)
    _patch(stage, "inode", other.stat().st_ino)
    journal = _patch(stage, "device", other.stat().st_dev)
    name = f"{other.stat().st_dev:x}-{other.stat().st_ino:x}.journal"
    journal.rename(stage.journals / name)
    assert stage.run("cat", "other").stdout == b"other"


def test_a_record_that_the_machine_lost_is_not_written(
    stage: Stage, writer: subprocess.Popen[bytes]
) -> None:
    _tell(writer, b"second\n")
    _killed(writer)
    (name,) = stage.left_over()
    path = stage.journals / name
    data = bytearray(path.read_bytes())
    place = data.index(b"second")
    data[place : place + 6] = bytes(6)
    path.write_bytes(data)
    (report,) = stage.drain()
    assert (report.state, report.drained_bytes) == (JournalState.KEPT, len(STAGED))
    assert "damaged" in report.reason
    assert (stage.folder / "a").read_bytes() == STAGED


# --- Errors ---------------------------------------------------------------------------

FILLING = """
import os, errno
fd = os.open("a", os.O_WRONLY | os.O_CREAT, 0o600)
data = bytes(range(256)) * 4096
print(os.write(fd, data))
for call in (os.fsync, os.fsync, os.close):
    try:
        call(fd)
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


def test_a_late_error_is_returned_by_fsync_and_close(
    stage: Stage, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = Stage(small, stage.journals)
    done = full.run(sys.executable, "-S", "-c", FILLING)
    assert done.stdout.split() == [b"1048576", *[b"ENOSPC"] * 3]
    (left,) = stage.left_over()
    assert left.endswith(".failed")
    (report,) = list_journals(stage.journals)
    assert (report.state, report.reason) == (
        JournalState.FAILED,
        os.strerror(errno.ENOSPC),
    )
    subprocess.run(["mount", "-o", "remount,size=4m", small], check=True, timeout=120)
    capsys.readouterr()
    assert _command(stage.journals) == 0
    expected = f"1 put aside: penstock drain --failed {stage.journals}\n"
    assert capsys.readouterr().out == expected
    assert stage.left_over() == [left]
    assert _command(stage.journals, "--failed") == 0
    assert (small / "a").read_bytes() == bytes(range(256)) * 4096
    assert stage.left_over() == []


#: Writes through a stream of the C library whose descriptor is staged.
STANDARD_OUTPUT = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.dup2(os.open("a", os.O_WRONLY | os.O_CREAT, 0o600), 1)
os.write(1, bytes(1 << 20))
answer = libc.fclose(ctypes.c_void_p.in_dll(libc, "stdout"))
print(answer, errno.errorcode[ctypes.get_errno()], file=sys.stderr, flush=True)
os._exit(0)
"""


def test_closing_a_stream_returns_that_the_file_system_is_full(
    stage: Stage, small: Path
) -> None:
    full = Stage(small, stage.journals)
    done = full.run(sys.executable, "-S", "-c", STANDARD_OUTPUT)
    assert (done.returncode, done.stderr) == (0, b"-1 ENOSPC\n")


def test_a_drain_goes_on_when_there_is_space_again(stage: Stage, small: Path) -> None:
    code = "import os; fd = os.open('a', os.O_WRONLY | os.O_CREAT, 0o600); "
    code += "os.write(fd, b'xy' * 2**17); os.kill(os.getpid(), 9)"
    full = Stage(small, stage.journals)
    (small / "ballast").write_bytes(bytes(100 << 10))
    full.run(sys.executable, "-S", "-c", code)
    (report,) = full.drain()
    assert (report.state, report.reason) == (
        JournalState.KEPT,
        os.strerror(errno.ENOSPC),
    )
    (small / "ballast").unlink()
    assert [report.state for report in full.drain()] == [JournalState.DRAINED]
    assert (small / "a").read_bytes() == b"xy" * 2**17


def test_journals_on_the_file_system_of_the_files_make_room_for_them(
    small: Path,
) -> None:
    subprocess.run(["mount", "-o", "remount,size=24m", small], check=True, timeout=120)
    (small / "journals").mkdir(mode=0o700)
    tight = Stage(small, small / "journals")
    code = "import os; fd = os.open('a', os.O_WRONLY | os.O_CREAT, 0o600); "
    code += "[os.write(fd, bytes([i]) * 2**20) for i in range(14)]; os.close(fd)"
    done = tight.run(sys.executable, "-S", "-c", code)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (small / "a").read_bytes() == b"".join(bytes([i]) * 2**20 for i in range(14))
    assert tight.left_over() == []


CHANGING = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)

def result_of(answer):
    return -1 if answer in (-1, None) else 0, os.strerror(ctypes.get_errno())

libc.fopen.restype = libc.freopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fopen(b"other", b"w"))
before = os.stat("a").st_size
print(result_of(libc.open(b"a", os.O_WRONLY)))
print(result_of(libc.open(b"a", os.O_RDONLY | os.O_TRUNC)))
print(result_of(libc.creat(b"a", 0o600)))
print(result_of(libc.truncate(b"a", 5)))
print(result_of(libc.fopen(b"a", b"r+")))
print(result_of(libc.freopen(b"a", b"a", stream)))
print(os.stat("a").st_size == before, len(open("a", "rb").read()) < before)
"""


def test_earlier_writes_are_drained_first_or_the_file_stays_unchanged(
    stage: Stage, small: Path
) -> None:
    code = "import os; fd = os.open('a', os.O_WRONLY | os.O_CREAT, 0o600); "
    code += "os.write(fd, b'xy' * 2**17); os.kill(os.getpid(), 9)"
    full = Stage(small, stage.journals)
    (small / "ballast").write_bytes(bytes(100 << 10))
    full.run(sys.executable, "-S", "-c", code)
    done = full.run(sys.executable, "-S", "-c", CHANGING)
    refused = str((-1, os.strerror(errno.ENOSPC)))
    expected = [refused] * 6 + ["True True"]
    assert (done.stdout.decode().splitlines(), done.stderr) == (expected, b"")
    (small / "ballast").unlink()
    code = "import os; os.write(os.open('a', os.O_WRONLY), b'mine')"
    assert full.run(sys.executable, "-S", "-c", code).returncode == 0
    assert (small / "a").read_bytes() == b"mine" + b"xy" * (2**17 - 2)
    assert stage.left_over() == []


def test_a_full_staging_folder_does_not_disturb_a_program(
    stage: Stage, small: Path
) -> None:
    tight = Stage(stage.folder, small)
    code = "open('a', 'wb', 0).write(b'xy' * 2**20); open('b', 'wb').write(b'z')"
    environment = tight.environment(8 << 20)
    done = tight.run(sys.executable, "-S", "-c", code, environment=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (stage.folder / "a").read_bytes() == b"xy" * 2**20
    assert (stage.folder / "b").read_bytes() == b"z"


@pytest.mark.parametrize("how", ["gone", "file", "read-only"])
def test_an_unusable_staging_folder_does_not_disturb_a_program(
    stage: Stage, small: Path, how: str
) -> None:
    tight = Stage(stage.folder, small if how == "read-only" else stage.journals)
    environment = tight.environment()
    if how == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", small], check=True, timeout=120)
    else:
        shutil.rmtree(stage.journals)
    if how == "file":
        stage.journals.write_bytes(b"")
    done = tight.run(
        sys.executable, "-S", "-c", "open('a', 'w').write('x')", environment=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (stage.folder / "a").read_bytes() == b"x"


def test_writes_that_could_not_be_staged_are_logged_and_counted(
    stage: Stage, job: Job
) -> None:
    environment = stage.environment(page=job.page.path)
    # No journal can be so large.
    environment["PENSTOCK_STAGING_SIZE"] = str(2**60)
    code = "open('a', 'w').write('x')"
    limited = ["sh", "-c", f'ulimit -v 4000000; "$0" -S -c "{code}"', sys.executable]
    stage.run(*limited, environment=environment)
    assert (stage.folder / "a").read_bytes() == b"x"
    assert job.page.staged.refused_files == 1
    assert stage.log().count("\n") == 1
    assert str(stage.folder / "a") in stage.log()


def test_a_file_that_another_program_has_open_is_not_staged(
    stage: Stage, job: Job
) -> None:
    """Also if that program has not loaded the library."""
    (stage.folder / "a").touch()
    with (stage.folder / "a").open("rb") as reader:
        program = stage.start(
            *(sys.executable, "-S", "-c", WRITER),
            environment=stage.environment(page=job.page.path),
        )
        assert program.stdout is not None
        assert program.stdout.readline() == b"written\n"
        assert reader.read() == STAGED
    assert stage.left_over() == []
    assert stage.log() == ""
    program.communicate(timeout=LIMIT_S)
    assert job.page.staged.absorbed_bytes == 0


def test_the_signal_set_with_f_setsig_is_kept(stage: Stage) -> None:
    code = "import fcntl, os; fd = os.open('a', os.O_WRONLY | os.O_CREAT); "
    code += "fcntl.fcntl(fd, 10, 12); os.write(fd, b'x' * 999); "
    code += "assert fcntl.fcntl(fd, 11) == 12; "
    code += "assert fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_UNLCK; "
    code += "print(os.fstat(fd).st_size)"
    done = stage.run(sys.executable, "-S", "-c", code)
    assert done.stdout == b"999\n", done.stderr


@pytest.mark.parametrize(
    "call",
    ["os.utime(fd, (7, 7)); os.close(fd)", "os.close(fd); os.utime('a', (7, 7))"],
)
@pytest.mark.parametrize("durable", ["file", "journal"])
def test_a_time_that_was_set_stays(
    stage: Stage, job: Job, call: str, durable: str
) -> None:
    code = "import os; fd = os.open('a', os.O_WRONLY | os.O_CREAT); "
    code += f"os.write(fd, b'x' * 999); {call}"
    environment = stage.environment(page=job.page.path, durable=durable)
    # With a drainer, which may be held up, close does not wait for the drain.
    drainer_arguments = (job.page.path, stage.journals, os.geteuid(), os.getegid())
    drainer = drain_beside(*drainer_arguments)
    done = stage.run(sys.executable, "-S", "-c", code, environment=environment)
    assert done.returncode == 0, done.stderr
    until(lambda: stage.left_over() == [])
    assert (stage.folder / "a").stat().st_size == 999
    assert (stage.folder / "a").stat().st_mtime == 7.0
    drainer.kill()
    drainer.wait(LIMIT_S)


def test_a_file_with_a_lease_is_not_staged(stage: Stage, job: Job) -> None:
    code = "import fcntl, os; fd = os.open('a', os.O_WRONLY | os.O_CREAT); "
    code += "fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK); os.write(fd, b'x'); "
    code += "assert fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_WRLCK"
    environment = stage.environment(page=job.page.path)
    done = stage.run(sys.executable, "-S", "-c", code, environment=environment)
    assert done.returncode == 0, done.stderr
    assert job.page.staged.absorbed_bytes == 0


# --- The page -------------------------------------------------------------------------


def test_the_page_says_when_to_stage(stage: Stage, job: Job) -> None:
    environment = stage.environment(page=job.page.path, always=False)
    code = "import os; fd = os.open('a', os.O_WRONLY | os.O_CREAT); "
    code += "os.write(fd, b'x' * 999)"
    stage.run(sys.executable, "-S", "-c", code, environment=environment)
    assert job.page.staged.absorbed_bytes == 0
    job.page.stages = True
    stage.run(sys.executable, "-S", "-c", code, environment=environment)
    staged = job.page.staged
    assert (staged.absorbed_bytes, staged.drained_bytes) == (999, 999)
    assert job.page.counters(IoClass.WRITE).moved_bytes == 2 * 999
    job.page.renew(0.0)  # The agent has died.
    stage.run(sys.executable, "-S", "-c", code, environment=environment)
    assert job.page.staged.absorbed_bytes == 999


def test_writes_are_not_held_up_and_drains_are(stage: Stage, job: Job) -> None:
    program = stage.start(
        *(sys.executable, "-S", "-c", WRITER),
        environment=stage.environment(page=job.page.path),
    )
    job.page.grant(0.0)
    assert program.stdout is not None
    assert program.stdout.readline() == b"written\n"
    _tell(program, b"more\n")
    assert program.stdin is not None
    program.stdin.close()
    until(lambda: job.page.counters(IoClass.WRITE).waiting_calls)
    assert (stage.folder / "a").read_bytes() == b""
    job.page.grant(math.inf)
    assert program.wait(timeout=LIMIT_S) == 0
    program.stdout.close()
    assert (stage.folder / "a").read_bytes() == STAGED + b"more\n"


def test_a_drain_keeps_to_the_granted_rate(stage: Stage, job: Job) -> None:
    job.page.grant(20e6)
    code = "open('a', 'wb', 0).write(bytes(10 << 20))"
    began = time.monotonic()
    environment = stage.environment(page=job.page.path)
    stage.run(sys.executable, "-S", "-c", code, environment=environment)
    assert time.monotonic() - began > 0.9 * (10 << 20) / 20e6
    assert (stage.folder / "a").stat().st_size == 10 << 20


#: Stages 4 MiB in each of four files, and closes all of them at the same time.
_FOUR_FILES = """
import os, threading
files = [os.open(f"file-{number}", os.O_WRONLY | os.O_CREAT) for number in range(4)]
for fd in files:
    for _ in range(64):
        os.write(fd, bytes(64 << 10))
threads = [threading.Thread(target=os.close, args=(fd,)) for fd in files]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_drain_together_share_a_step(stage: Stage, job: Job) -> None:
    """All that is under way when the grant is withdrawn takes 20 ms, not 20 ms each."""
    job.page.renew(60.0)
    job.page.grant(0.0)
    program = stage.start(
        *(sys.executable, "-S", "-c", _FOUR_FILES),
        environment=stage.environment(page=job.page.path),
    )
    until(lambda: job.page.counters(IoClass.WRITE).waiting_calls == 4)
    begun = job.page.counters(IoClass.WRITE).begun_calls
    rate, total_bytes = 20e6, 16 << 20
    job.page.grant(rate)
    program.communicate(timeout=LIMIT_S)
    assert program.returncode == 0
    # Alone, a thread would write this in one step.
    steps = total_bytes / (0.02 * rate)
    assert job.page.counters(IoClass.WRITE).begun_calls - begun > 2 * steps


def _sizes(stage: Stage) -> int:
    return sum(path.stat().st_size for path in stage.folder.iterdir())


def test_threads_with_hardly_any_grant_begin_one_step_together(
    stage: Stage, job: Job
) -> None:
    """A job that may not drain has a thousandth of the bandwidth: 1 KB/s here."""
    job.page.renew(60.0)
    job.page.grant(0.0)
    program = stage.start(
        *(sys.executable, "-S", "-c", _FOUR_FILES),
        environment=stage.environment(page=job.page.path),
    )
    until(lambda: job.page.counters(IoClass.WRITE).waiting_calls == 4)
    # Each has charged its whole step: after the first, none is due for a minute.
    assert job.page.charged_bytes() == 4 * (64 << 10)
    job.page.grant(1e3)
    until(lambda: _sizes(stage) > 0)
    assert _sizes(stage) == 64 << 10
    job.page.grant(math.inf)
    program.communicate(timeout=LIMIT_S)
    assert program.returncode == 0


def test_without_a_drainer_close_drains(stage: Stage, job: Job) -> None:
    environment = stage.environment(page=job.page.path, durable="journal")
    stage.run(sys.executable, "-S", "-c", WRITER, environment=environment)
    assert (stage.folder / "a").read_bytes() == STAGED
    assert stage.left_over() == []


# --- What is staged -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ((), "a", 999),
        (("*.log",), "b.log", 999),
        (("-*.log",), "b.log", 0),
        (("-*.log",), "b.dat", 999),
        (("*.dat", "-*"), "b.log", 0),
        (("*.dat", "-*"), "b.dat", 999),
        (("-*/staged/b?",), "bc", 0),
        (("-*/other/*",), "bc", 999),
    ],
)
def test_rules_say_which_files(
    stage: Stage, job: Job, rules: tuple[str, ...], name: str, expected: int
) -> None:
    environment = stage.environment(page=job.page.path, rules=rules)
    code = f"open({name!r}, 'wb', 0).write(bytes(999))"
    stage.run(sys.executable, "-S", "-c", code, environment=environment)
    assert job.page.staged.absorbed_bytes == expected


@pytest.mark.parametrize("flag", ["O_APPEND", "O_SYNC", "O_DSYNC", "O_DIRECT"])
def test_descriptors_opened_with_o_sync_or_o_direct_are_not_staged(
    stage: Stage, job: Job, flag: str
) -> None:
    code = (
        f"import os, mmap; fd = os.open('a', os.O_WRONLY | os.O_CREAT | os.{flag});"
        "m = mmap.mmap(-1, 4096); os.write(fd, m)"
    )
    environment = stage.environment(page=job.page.path)
    stage.run(sys.executable, "-S", "-c", code, environment=environment)
    assert job.page.staged.absorbed_bytes == 0


def test_an_inherited_descriptor_is_not_staged(stage: Stage, job: Job) -> None:
    environment = stage.environment(page=job.page.path)
    stage.run("sh", "-c", "cat /etc/passwd > a; dd if=a status=none > b")
    stage.run("sh", "-c", "env echo hello > a", environment=environment)
    assert (stage.folder / "a").read_bytes() == b"hello\n"
    assert job.page.staged.absorbed_bytes == 0


OLD_STAT = """
import ctypes, os, struct
fd = os.open("a", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(fd, bytes(999))
libc, data = ctypes.CDLL(None), ctypes.create_string_buffer(256)
for name, word in (("__fxstat", fd), ("__xstat64", b"a"), ("__lxstat", b"a")):
    print(getattr(libc, name)(1, word, data), struct.unpack_from("q", data, 48)[0])
print(libc.__fxstatat64(1, -100, b"a", data, 0), struct.unpack_from("q", data, 48)[0])
print(libc.__xstat(1, b"none", data), libc.__xstat(9, b"a", data))
"""


def test_programs_of_older_libraries_see_the_size(stage: Stage) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the layout of another machine")
    done = stage.run(sys.executable, "-c", OLD_STAT)
    assert done.stdout.splitlines() == [b"0 999"] * 4 + [b"-1 -1"]


BY_NUMBER = """
import ctypes, os, struct
libc, data = ctypes.CDLL(None), ctypes.create_string_buffer(256)
def staged(name):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(fd, bytes(999))
    return fd
print(libc.syscall(8, staged("a"), 0, os.SEEK_END))
for number, *words in ((5, staged("b")), (4, b"c"), (262, -100, b"d")):
    staged(str(words[-1], "ascii")) if number != 5 else None
    libc.syscall(number, *words, data, 0)
    print(struct.unpack_from("q", data, 48)[0])
staged("e")
libc.syscall(332, -100, b"e", 0, 0x200, data)
print(struct.unpack_from("q", data, 40)[0])
"""


def test_calls_by_number_find_what_is_staged(stage: Stage) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers of another machine")
    done = stage.run(sys.executable, "-c", BY_NUMBER)
    assert (done.stdout.split(), done.stderr) == ([b"999"] * 5, b"")


CLOSING = """
import os
def staged(name):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(fd, name.encode() * 100)
    return fd
first = staged("a")
os.closerange(3, 100000)                    # With the library's own descriptors.
second = staged("b")
for fd in range(3, 100000):
    try:
        os.close(fd)
    except OSError:
        pass
third, other = staged("c"), staged("d")
ours = [int(n) for n in os.listdir("/proc/self/fd") if int(n) > 200]
for number in ours:
    os.dup2(other, number)                  # Onto what the library uses.
os.write(third, b"end")
"""


def test_a_program_that_closes_every_descriptor_loses_nothing(stage: Stage) -> None:
    done = stage.run(sys.executable, "-S", "-c", CLOSING)
    assert (done.returncode, done.stderr) == (0, b"")
    for name, more in (("a", b""), ("b", b""), ("c", b"end"), ("d", b"")):
        assert (stage.folder / name).read_bytes() == name.encode() * 100 + more
    assert stage.left_over() == []


# --- The folder of the journals -------------------------------------------------------

LISTS_JOURNALS = """
import os, sys
os.write(os.open("a", os.O_WRONLY | os.O_CREAT, 0o600), b"x" * 5000)
print(len(os.listdir(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("name", "mode", "count"),
    [("", 0o700, 1), ("", 0o770, 0), ("link", 0o700, 0), ("link/", 0o700, 0)],
)
def test_journals_are_in_a_folder_that_others_cannot_change(
    stage: Stage, tmp_path: Path, name: str, mode: int, count: int
) -> None:
    (tmp_path / "link").symlink_to(stage.journals)
    environment = stage.environment()
    stage.journals.chmod(mode)
    if name:
        environment["PENSTOCK_STAGING"] = f"{tmp_path}/{name}"
    done = stage.run(
        *(sys.executable, "-c", LISTS_JOURNALS, stage.journals), environment=environment
    )
    assert int(done.stdout) == count
    assert (stage.folder / "a").read_bytes() == b"x" * 5000


# --- The interface for programs -------------------------------------------------------

BBIO = """
import os, sys
from penstock import bbio
bbio.init(sys.argv[1], "1 MiB")
fd = os.open("a", os.O_WRONLY | os.O_CREAT, 0o600)
size = lambda: os.stat("/proc/self/fd/%d" % fd).st_blocks
calls = []
os.write(fd, b"x" * 5000)
bbio.on_flush(fd, calls.append)
print(size(), len(calls))
bbio.flush(fd)
print(size() > 0, calls == [fd])
bbio.disable(fd)
os.write(fd, b"y")
bbio.enable(fd)
os.write(fd, b"z")
bbio.finalize()
bbio.finalize()
os.write(fd, b"!")
print(os.path.getsize("a"))
"""


def test_the_interface_in_python(stage: Stage) -> None:
    environment = stage.environment()
    for key in list(environment):
        if key.startswith("PENSTOCK_STAGING"):
            del environment[key]
    done = stage.run(
        sys.executable, "-c", BBIO, stage.journals, environment=environment
    )
    assert done.stderr == b""
    assert done.stdout.splitlines() == [b"0 0", b"True True", b"5003"]
    assert (stage.folder / "a").read_bytes() == b"x" * 5000 + b"yz!"


def test_without_the_library_the_interface_does_nothing(stage: Stage) -> None:
    environment = {key: os.environ[key] for key in ("PATH",) if key in os.environ}
    code = (
        "from penstock import bbio\n"
        "bbio.init(); bbio.enable(1); bbio.flush(1); bbio.on_flush(1, print)\n"
        "bbio.disable(1); bbio.finalize()"
    )
    done = stage.run(sys.executable, "-c", code, environment=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_new_page_says_that_nothing_is_staged(tmp_path: Path) -> None:
    with Page.create(tmp_path / "page") as page:
        assert not page.stages
        page.stages = True
        assert page.stages
