# SPDX-License-Identifier: MIT
"""Open files whose job gets other storage targets: new data goes to a part."""

from __future__ import annotations

import itertools
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from penstock.live.node.local_job import JobNote, LocalJob
from penstock.live.node.pages.page import IoClass, Page
from penstock.live.staging.drain import drain_folder
from penstock.live.staging.drainers import Leftover, Sweeper
from penstock.live.staging.journal import Journal
from penstock.live.staging.rules import Staging
from penstock.live.wire.messages import Partition
from penstock.staging import redirection
from support.daemons import Daemon
from support.parts import SLOTS, Redirected
from support.stages import Stage
from support.waiting import LIMIT_S, until

#: Does what the lines of its input say, and prints a result for each.
_WRITER = """
import os, sys
fd = -1
for line in sys.stdin:
    word, _, rest = line.rstrip("\\n").partition(" ")
    if word == "open":
        fd = os.open(rest, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        answer = "open"
    elif word == "write":
        answer = os.write(fd, rest.encode())
    elif word == "read":
        answer = os.pread(fd, 1000, 0).decode()
    elif word == "size":
        answer = os.fstat(fd).st_size, os.lseek(fd, 0, os.SEEK_END)
    elif word == "duplicate":
        fd = os.dup2(fd, 50)
        answer = "duplicate"
    elif word == "fsync":
        answer = os.fsync(fd)
    elif word == "close":
        try:
            answer = os.close(fd)
        except OSError as error:
            answer = error
    print(answer, flush=True)
"""


class Writer:
    """The program, and the file "out" that it writes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def do(self, *words: str) -> str:
        """Let the program do something, and return the result of the last word."""
        answer = ""
        for word in words:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()
            answer = self.process.stdout.readline().decode().rstrip("\n")
        return answer


@pytest.fixture
def redirected(memory_stage: Stage, tmp_path: Path) -> Iterator[Redirected]:
    with Page.create(tmp_path / "page") as page:
        yield Redirected.make(memory_stage, page)


@contextmanager
def writing(redirected: Redirected, *, durable: str = "file") -> Iterator[Writer]:
    """Start the program; kill it at the end."""
    process = redirected.stage.start(
        *(sys.executable, "-c", _WRITER),
        environment=redirected.environment(durable=durable),
    )
    with process:
        yield Writer(process)
        process.kill()


def _text(redirected: Redirected) -> str:
    return (redirected.stage.folder / "out").read_text()


def test_new_data_goes_to_a_part_and_is_merged_at_close(redirected: Redirected) -> None:
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        assert writer.do("write two ") == "4"
        assert writer.do("write three") == "5"
        (part,) = redirected.parts()
        with part.open("rb") as file:
            assert b"two " in file.read(8192)
        assert redirected.slot_of(part) == writer.process.pid % SLOTS
        assert _text(redirected) == "one "
        assert writer.do("size") == "(13, 13)"
        assert writer.do("close") == "None"
        assert _text(redirected) == "one two three"
        assert redirected.parts() == []
        assert redirected.stage.left_over() == []
    # What went to the part counts once: its copy is no progress of the program. Both
    # are charged, because both take bandwidth.
    staged = redirected.page.staged
    assert redirected.page.counters(IoClass.WRITE).moved_bytes == 4 + 9
    assert (staged.redirected_bytes, staged.merged_bytes) == (9, 9)
    assert (staged.absorbed_bytes, staged.drained_bytes) == (0, 0)


@pytest.mark.parametrize(("age_s", "wait_s"), [(0.0, 0.0), (0.1, 0.2), (120.0, 0.0)])
def test_the_library_redirects_the_files_that_the_simulator_redirects(
    redirected: Redirected,
    monkeypatch: pytest.MonkeyPatch,
    age_s: float,
    wait_s: float,
) -> None:
    """A file is redirected if it has a certain age, also through a copy of it."""
    monkeypatch.setattr(redirection, "REDIRECT_AGE_S", age_s)
    with writing(redirected) as writer:
        for word in ("open out", "duplicate"):
            writer.do(word)
            opened_s = time.monotonic()
            redirected.move(2, age_s=age_s)
            time.sleep(wait_s)
            follows = redirection.follows(opened_s, time.monotonic())
            writer.do("write new")
            assert bool(redirected.parts()) == follows
            redirected.move(1)


def test_a_file_is_redirected_when_it_is_old_enough(redirected: Redirected) -> None:
    with writing(redirected) as writer:
        writer.do("open out")
        redirected.move(2, age_s=120.0)
        writer.do("write one ")
        assert redirected.parts() == []
        redirected.move(2)
        writer.do("write two")
        assert len(redirected.parts()) == 1
        assert _text(redirected) == "one "
        writer.do("close")
    assert _text(redirected) == "one two"


@pytest.mark.usefixtures("strace")
def test_a_merge_writes_no_larger_calls_than_the_program(
    redirected: Redirected, tmp_path: Path
) -> None:
    """On a target that serves in the order of arrival, larger calls get more."""
    trace = tmp_path / "trace"
    with writing(redirected) as writer:
        writer.do("open out", "write one")
        redirected.move(2)
        for size in (20_000, 20_000, 20_000, 20_000, 100_000, 20_000):
            writer.do("write " + size * "x")
        flags = ("-f", "-qq", "-y", "-e", "trace=pwritev", "-o", str(trace))
        pid = writer.process.pid
        with subprocess.Popen(["strace", *flags, "-p", str(pid)]) as tracer:
            until(lambda: "TracerPid:\t0" not in _status(pid))
            writer.do("close")
            tracer.terminate()
            tracer.wait(timeout=LIMIT_S)
    calls = re.findall(r"pwritev\(\d+<[^>]*/out>.* = (\d+)$", trace.read_text(), re.M)
    assert list(map(int, calls)) == [60_000, 20_000, 100_000, 20_000]


def _status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def test_the_files_of_a_process_are_spread_over_all_slots(
    redirected: Redirected, python: str
) -> None:
    program = """
import os, sys
files = [os.open(f"out{n}", os.O_WRONLY | os.O_CREAT) for n in range(4)]
print("open", flush=True)
sys.stdin.readline()
for fd in files:
    os.write(fd, b"new")
print("written", flush=True)
sys.stdin.readline()
"""
    process = redirected.stage.start(
        *(python, "-c", program), environment=redirected.environment()
    )
    with Writer(process).process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        redirected.move(2)
        assert Writer(process).do("") == "written"
        slots = sorted(redirected.slot_of(part) for part in redirected.parts())
        assert slots == [0, 0, 1, 1]
        process.kill()


def test_a_file_is_not_redirected_on_its_own_targets(redirected: Redirected) -> None:
    with writing(redirected) as writer:
        redirected.move(2)
        writer.do("open out", "write one")
        redirected.move(1)
        redirected.move(2)
        writer.do("write two")
        assert redirected.parts() == []
        assert _text(redirected) == "onetwo"


def test_data_goes_to_the_file_again_when_the_targets_do(
    redirected: Redirected,
) -> None:
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two ")
        redirected.move(1)
        writer.do("write three")
        assert _text(redirected) == "one two three"
        assert redirected.parts() == []
        assert redirected.stage.left_over() == []


@pytest.mark.parametrize("number", [255, 257, 2**16 + 1, 2**32 - 2])
def test_numbers_of_targets_are_compared_in_full(
    redirected: Redirected, number: int
) -> None:
    """The number of the first targets is 1."""
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(number)
        writer.do("write two")
        assert len(redirected.parts()) == 1
        assert _text(redirected) == "one "
        writer.do("close")
    assert _text(redirected) == "one two"


def test_a_second_change_makes_another_part(redirected: Redirected) -> None:
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two ")
        first = redirected.parts()
        redirected.move(3)
        writer.do("write three")
        assert len(redirected.parts()) == 1
        assert redirected.parts() != first
        assert _text(redirected) == "one two "
        writer.do("close")
        assert _text(redirected) == "one two three"
        assert redirected.parts() == []


def test_reads_see_one_file(redirected: Redirected) -> None:
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two ")
        assert writer.do("read") == "one two "
        assert redirected.parts() == []
        writer.do("write three")
        assert _text(redirected) == "one two three"


def test_another_program_sees_one_file(redirected: Redirected) -> None:
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two")
        done = redirected.stage.run("cat", "out", environment=redirected.environment())
        assert done.stdout == b"one two"
        writer.do("write  three", "close")
        assert _text(redirected) == "one two three"
        assert redirected.parts() == []
        assert redirected.stage.left_over() == []


def test_a_sync_merges_and_redirection_goes_on(redirected: Redirected) -> None:
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two ", "fsync")
        assert _text(redirected) == "one two "
        writer.do("write three")
        assert _text(redirected) == "one two "
        writer.do("close")
        assert _text(redirected) == "one two three"


def test_a_sync_may_leave_the_data_in_the_part(stage: Stage, tmp_path: Path) -> None:
    with Page.create(tmp_path / "page") as page:
        redirected = Redirected.make(stage, page)
        with writing(redirected, durable="journal") as writer:
            writer.do("open out", "write one ")
            redirected.move(2)
            assert writer.do("write two", "fsync") == "None"
            assert _text(redirected) == "one "
        (journal,) = stage.journals.glob("*.journal")
        with Journal.open(journal) as opened:
            assert opened.pending_bytes == 3
            assert opened.part == redirected.parts()[0]
        stage.sweep()
        assert _text(redirected) == "one two"
        assert redirected.parts() == []
        assert stage.left_over() == []


def test_the_end_of_the_lease_ends_redirection(redirected: Redirected) -> None:
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two ")
        redirected.page.renew(0.0)
        writer.do("write three")
        assert _text(redirected) == "one two three"
        assert redirected.parts() == []


# --- What is not redirected ----------------------------------------------------------


def test_a_file_that_was_opened_before_its_targets_were_known(
    redirected: Redirected,
) -> None:
    redirected.move(0)
    with writing(redirected) as writer:
        writer.do("open out")
        redirected.move(1)
        writer.do("write one")
        assert _text(redirected) == "one"
        assert redirected.parts() == []


def test_a_file_that_is_not_in_the_folder_of_the_job(redirected: Redirected) -> None:
    other = redirected.stage.folder.parent
    place = Partition(1, str(redirected.folder), SLOTS, (f"{other}/stage", "/"))
    redirected.page.place(place)
    with writing(redirected) as writer:
        writer.do("open out")
        redirected.page.place(msgspec.structs.replace(place, number=2))
        writer.do("write one")
        assert _text(redirected) == "one"
        assert redirected.parts() == []
        assert redirected.stage.left_over() == []


def test_a_folder_of_parts_that_is_gone_stops_no_program(
    redirected: Redirected,
) -> None:
    shutil.rmtree(redirected.targets)
    with writing(redirected) as writer:
        writer.do("open out")
        redirected.move(2)
        assert writer.do("write one") == "3"
        assert _text(redirected) == "one"
        assert redirected.stage.left_over() == []
        assert "not staged" in redirected.stage.log()


# --- After a crash -------------------------------------------------------------------


def _killed_with_part(redirected: Redirected) -> Path:
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two")
    (part,) = redirected.parts()
    return part


def test_the_next_program_that_opens_the_file_merges(redirected: Redirected) -> None:
    _killed_with_part(redirected)
    done = redirected.stage.run("cat", "out", environment=redirected.environment())
    assert done.stdout == b"one two"
    assert redirected.parts() == []
    assert redirected.stage.left_over() == []


def test_a_part_is_found_though_the_slots_lead_elsewhere(
    redirected: Redirected,
) -> None:
    _killed_with_part(redirected)
    redirected.move(3)
    redirected.stage.drain()
    assert _text(redirected) == "one two"
    assert redirected.parts() == []


def test_a_part_that_is_gone_is_reported(redirected: Redirected) -> None:
    _killed_with_part(redirected).unlink()
    (report,) = redirected.stage.drain()
    assert report.state == "kept"
    assert "cannot open the part" in report.reason
    assert _text(redirected) == "one "


def test_another_file_in_the_place_of_the_part_is_not_merged(
    redirected: Redirected,
) -> None:
    part = _killed_with_part(redirected)
    part.rename(part.with_suffix(".kept"))
    part.write_bytes(bytes(100))
    (report,) = redirected.stage.drain()
    assert "another file is in the place of the part" in report.reason
    done = redirected.stage.run("cat", "out", environment=redirected.environment())
    assert done.stdout == b"one "
    part.with_suffix(".kept").rename(part)
    redirected.stage.drain()
    assert _text(redirected) == "one two"


# --- A storage target that is away for a time ----------------------------------------

#: Writes to the file, in a program of its own.
_PATCH = """
import os, sys
fd = os.open("out", os.O_WRONLY)
os.write(fd, b"ONE")
os.close(fd)
"""


@contextmanager
def _away(part: Path) -> Iterator[None]:
    """Take away the storage target of a part."""
    away = part.parent.with_suffix(".away")
    part.parent.rename(away)
    yield
    away.rename(part.parent)


def _patch(redirected: Redirected) -> subprocess.CompletedProcess[bytes]:
    command = (sys.executable, "-c", _PATCH)
    return redirected.stage.run(*command, environment=redirected.environment())


def test_no_program_writes_before_older_data_are_merged(redirected: Redirected) -> None:
    with _away(_killed_with_part(redirected)):
        done = _patch(redirected)
        assert b"Input/output error" in done.stderr
        assert _text(redirected) == "one "
        done = redirected.stage.run("cat", "out", environment=redirected.environment())
        assert done.stdout == b"one "
        (report,) = redirected.stage.drain()
        assert "bring its storage target back" in report.reason
    assert _patch(redirected).returncode == 0
    assert _text(redirected) == "ONE two"
    assert redirected.stage.left_over() == []


@contextmanager
def _opened_before(
    redirected: Redirected, program: str, environment: dict[str, str]
) -> Iterator[tuple[Writer, Path]]:
    """Start a program that opens the file, and only then show it the journal.

    On file systems without leases, two programs may have the file open. The program
    says when it has opened the file. Yields it, and the part.
    """
    part = _killed_with_part(redirected)
    (journal,) = redirected.stage.journals.glob("*.journal")
    hidden = journal.rename(journal.with_suffix(".hidden"))
    process = redirected.stage.start(
        *(sys.executable, "-c", program), environment=environment
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        hidden.rename(journal)
        yield Writer(process), part
        process.kill()


#: Opens the file and writes at its beginning, for each line of its input.
_OVERWRITER = """
import os, sys
fd = os.open("out", os.O_RDWR)
print("open", flush=True)
for line in sys.stdin:
    try:
        print(os.pwrite(fd, b"ONE", 0), flush=True)
    except OSError as error:
        print(error, flush=True)
"""


@pytest.mark.parametrize("known", [False, True])
def test_a_descriptor_that_was_open_waits_for_older_data(
    redirected: Redirected, *, known: bool
) -> None:
    """Also one that was looked up before the journal was there, and is staged now."""
    program = _OVERWRITER
    if known:
        seek = 'os.lseek(fd, 0, os.SEEK_END)\nprint("open"'
        program = program.replace('print("open"', seek)
    stage = redirected.stage
    environment = stage.environment() if known else redirected.environment()
    with _opened_before(redirected, program, environment) as (writer, part):
        with _away(part):
            assert "Input/output error" in writer.do("write")
            assert "Input/output error" in writer.do("write")
            assert _text(redirected) == "one "
        assert writer.do("write") == "3"
    redirected.stage.drain()
    assert _text(redirected) == "ONE two"


@pytest.mark.parametrize("flag", ["O_APPEND", "O_DSYNC"])
def test_the_write_that_waited_is_not_staged(redirected: Redirected, flag: str) -> None:
    """Nobody has asked yet whether the descriptor may be staged: these may not."""
    program = f"""
import os, sys
fd = os.open("out", os.O_WRONLY | os.{flag})
print("open", flush=True)
for line in sys.stdin:
    try:
        print(os.write(fd, b"ONE"), flush=True)
    except OSError as error:
        print(error, flush=True)
"""
    environment = redirected.stage.environment()
    with _opened_before(redirected, program, environment) as (writer, part):
        with _away(part):
            assert "Input/output error" in writer.do("write")
        assert writer.do("write") == "3"
        text = "one twoONE" if flag == "O_APPEND" else "ONE two"
        assert _text(redirected) == text
        assert redirected.stage.left_over() == []


#: Writes in the way that a line of its input names.
_OTHER_WRITER = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("out", os.O_RDWR)
other = os.memfd_create("other")
os.write(other, b"ONE")
reader, writer = os.pipe()
os.write(writer, b"ONE")
text = ctypes.create_string_buffer(b"ONE")
request = ctypes.create_string_buffer(256)
struct.pack_into("=iii4xQQ", request, 0, fd, 1, 0, ctypes.addressof(text), 3)
requests = (ctypes.c_void_p * 1)(ctypes.addressof(request))
def answer_of(value):
    if value < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return value
calls = {
    "sendfile": lambda: os.sendfile(fd, other, 0, 3),
    "copy_file_range": lambda: os.copy_file_range(other, fd, 3, 0, 0),
    "splice": lambda: os.splice(reader, fd, 3, offset_dst=0),
    "dprintf": lambda: answer_of(libc.dprintf(fd, b"ONE")),
    "pwritev2": lambda: os.pwritev(fd, [b"ONE"], 0, os.RWF_SYNC),
    "syscall": lambda: answer_of(libc.syscall(1, fd, text, 3)),
    "aio_write": lambda: answer_of(libc.aio_write(request)),
    "lio_listio": lambda: answer_of(libc.lio_listio(0, requests, 1, None)),
}
print("open", flush=True)
for line in sys.stdin:
    try:
        print(calls[line.strip()](), flush=True)
    except OSError as error:
        print(error, flush=True)
"""
_OTHER_WAYS: tuple[str, ...] = (
    "sendfile",
    "copy_file_range",
    "splice",
    "dprintf",
    "pwritev2",
)
_OTHER_WAYS += ("syscall", "aio_write", "lio_listio")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls")
def test_other_ways_to_write_wait_for_older_data_too(redirected: Redirected) -> None:
    environment = redirected.environment()
    with _opened_before(redirected, _OTHER_WRITER, environment) as (writer, part):
        with _away(part):
            for way in _OTHER_WAYS:
                assert "Input/output error" in writer.do(way), way
            assert _text(redirected) == "one "
        assert writer.do("sendfile") == "3"
        assert _text(redirected) == "ONE two"
        assert redirected.stage.left_over() == []


@pytest.mark.parametrize("finder", ["drain", "sweep"])
def test_data_that_were_away_do_not_overwrite_newer_data(
    redirected: Redirected, finder: str
) -> None:
    """Programs without the library, or on other nodes, know nothing of the part."""
    part = _killed_with_part(redirected)
    file = redirected.stage.folder / "out"
    with _away(part):
        getattr(redirected.stage, finder)()  # the agent does so within seconds
        with file.open("r+b") as other:
            other.write(b"one TWO and three")
    if finder == "sweep":
        redirected.stage.sweep()
    else:
        (report,) = redirected.stage.drain()
        assert (report.state, report.pending_bytes) == ("kept", 3)
        assert "the file was written while its part could not be read" in report.reason
    assert _text(redirected) == "one TWO and three"
    assert [path.suffix for path in redirected.stage.journals.glob("*-*")] == [
        ".failed"
    ]
    assert redirected.stage.drain() == []
    assert _patch(redirected).returncode == 0
    assert _text(redirected) == "ONE TWO and three"
    # A person may decide otherwise.
    (report,) = drain_folder(redirected.stage.journals, failed=True)
    assert report.state == "drained"
    assert _text(redirected) == "ONE two and three"
    assert redirected.parts() == []


def test_data_that_were_away_are_merged_into_an_unchanged_file(
    redirected: Redirected,
) -> None:
    part = _killed_with_part(redirected)
    for _ in range(2):
        with _away(part):
            redirected.stage.sweep()
            assert _text(redirected) == "one "
    redirected.stage.sweep()
    assert _text(redirected) == "one two"
    assert redirected.stage.left_over() == []


def _give_to_first_thread(journal: Path) -> None:
    """Threads of a drainer, of which there are at most eight, divide journals by inode.

    Copy the journal until the inode is a multiple of all possible numbers of threads.
    """
    copies = [journal]
    while copies[-1].stat().st_ino % math.lcm(*range(1, 9)):
        copies.append(journal.with_suffix(f".copy{len(copies)}"))
        shutil.copy(journal, copies[-1])
    copies[-1].rename(journal)
    for copy in copies[1:-1]:
        copy.unlink()


@contextmanager
def _drainer(
    redirected: Redirected, strace: str, trace: Path, *expressions: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the drainer of the job; it ends when nothing was drained for a second."""
    redirected.page._view.staging.absorbed_bytes += 1  # or else it looks for nothing
    wanted = ("LD_PRELOAD", "PENSTOCK_STAGING", "PENSTOCK_PAGE", "PENSTOCK_CONTROLLED")
    variables = {"PENSTOCK_DRAIN": "1000"} | {
        key: value
        for key, value in redirected.environment().items()
        if key.startswith(wanted)
    }
    flags = ["-f", "-qq", "-y", "-o", str(trace)]
    for each in expressions:
        flags += ["-e", each]
    for key, value in variables.items():
        flags += ["-E", f"{key}={value}"]
    with subprocess.Popen([strace, *flags, "true"]) as process:
        yield process
        process.kill()


def _leave_large_part(redirected: Redirected, name: str) -> None:
    """Kill a program that has written 40 records to a part: more than two turns."""
    redirected.move(1)
    with writing(redirected) as writer:
        writer.do(f"open {name}")
        redirected.move(2)
        writer.do(*(40 * [f"write {'x' * 70_000}"]))


def test_a_part_that_goes_away_between_two_turns_overwrites_nothing(
    redirected: Redirected, strace: str, tmp_path: Path
) -> None:
    """The drainer stops after the last step of its first turn."""
    trace, newer = tmp_path / "trace", b"newer" * 1000
    _leave_large_part(redirected, "out")
    (part,) = redirected.parts()
    (journal,) = redirected.stage.journals.glob("*.journal")
    _give_to_first_thread(journal)
    stop = ("trace=pwritev", "inject=pwritev:signal=STOP:when=16")
    with _drainer(redirected, strace, trace, *stop) as drainer:
        until(lambda: trace.exists() and "stopped by SIGSTOP" in trace.read_text())
        with _away(part):
            stopped = int(trace.read_text().splitlines()[-1].split()[0])
            os.kill(stopped, signal.SIGCONT)
            assert drainer.wait(timeout=LIMIT_S) == 0
            with (redirected.stage.folder / "out").open("r+b") as other:
                other.seek(39 * 70_000)
                other.write(newer)
    redirected.stage.sweep()
    assert (redirected.stage.folder / "out").read_bytes()[39 * 70_000 :] == newer
    (kept,) = redirected.stage.journals.glob("*-*")
    assert kept.suffix == ".failed"


def test_parts_that_are_merged_in_turns_are_each_synced_once(
    redirected: Redirected, strace: str, tmp_path: Path
) -> None:
    """A drainer goes on with its own merges: it needs no other note for each turn."""
    names, trace = ("one", "two"), tmp_path / "trace"
    for name in names:
        _leave_large_part(redirected, name)
    for journal in redirected.stage.journals.glob("*.journal"):
        _give_to_first_thread(journal)
    with _drainer(redirected, strace, trace, "trace=fsync,pwritev") as drainer:
        assert drainer.wait(timeout=LIMIT_S) == 0
    calls = trace.read_text()
    turns = re.findall(r"pwritev\(\d+<[^>]*/(one|two)>", calls)
    assert len(list(itertools.groupby(turns))) > 2
    for name in names:
        assert len(re.findall(rf"fsync\(\d+<[^>]*/{name}>", calls)) == 1
        assert (redirected.stage.folder / name).stat().st_size == 40 * 70_000
    assert redirected.stage.left_over() == []


@pytest.mark.parametrize("kind", ["stage", "memory_stage"])
def test_a_part_that_cannot_be_read_kills_no_program(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """`close` reports an error. On a disk, records have checksums too."""
    with Page.create(tmp_path / "page") as page:
        redirected = Redirected.make(request.getfixturevalue(kind), page)
        _close_with_short_part(redirected)


def _close_with_short_part(redirected: Redirected) -> None:
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do(f"write {'x' * 9000}")
        (part,) = redirected.parts()
        os.truncate(part, 4096 + 100)
        assert "Input/output error" in writer.do("close")
        assert writer.process.poll() is None
        assert _text(redirected).startswith("one ")


# --- The agent -----------------------------------------------------------------------


def _sweep(leftovers: list[Leftover]) -> None:
    """Let the sweeper of an agent work until it is done."""
    with closing(Sweeper()) as sweeper:
        sweeper.sweep(leftovers)
        until(lambda: not sweeper._waiting)


@pytest.fixture
def job(memory_stage: Stage, tmp_path: Path) -> Iterator[tuple[LocalJob, Redirected]]:
    """Return a job of an agent whose files are redirected."""
    created = LocalJob.create(
        tmp_path, JobNote("0:a", os.geteuid(), os.getegid(), 1, 0.0)
    )
    yield created, Redirected.make(memory_stage, created.page)
    created.close(remove=True)


def test_the_part_of_a_killed_process_is_merged_while_the_job_runs(
    job: tuple[LocalJob, Redirected],
) -> None:
    local, redirected = job
    with writing(redirected) as writer:
        local.read_counters(0.1, reads=False)
        assert local.orphaned_parts(100.0) == []  # nothing was redirected yet
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two")
        counters = local.read_counters(0.1, reads=False)
        assert (counters.moved_bytes, counters.redirected_bytes) == (7.0, 3.0)
        (leftover,) = local.orphaned_parts(100.0)
        assert not leftover.is_orphaned
        _sweep([leftover])
        assert _text(redirected) == "one "
    assert local.orphaned_parts(102.0) == []  # it was looked at just now
    local.remove(writer.process.pid, 0)
    (leftover,) = local.orphaned_parts(102.0)
    assert leftover.is_orphaned
    _sweep([leftover])
    assert _text(redirected) == "one two"
    assert redirected.parts() == []
    assert redirected.stage.left_over() == []


def test_parts_are_merged_when_a_second_node_takes_part(
    job: tuple[LocalJob, Redirected],
) -> None:
    """The other node does not see them; the living writer writes through from then."""
    local, redirected = job
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two ")
        before = local.must_merge
        local.place(Partition(0, str(redirected.folder)))
        assert (before, local.must_merge) == (False, True)
        _sweep(local.leftovers(merges_living=True))
        assert _text(redirected) == "one two "
        # What another node writes now stays.
        with (redirected.stage.folder / "out").open("r+b") as other:
            other.write(b"ONE TWO ")
        writer.do("write three", "close")
        assert _text(redirected) == "ONE TWO three"
        assert redirected.parts() == []
        assert redirected.stage.left_over() == []


@pytest.mark.parametrize("replaced", [False, True])
def test_parts_of_renamed_files_are_merged_when_a_second_node_takes_part(
    job: tuple[LocalJob, Redirected], *, replaced: bool
) -> None:
    """Renamed without the library: the writer may write nothing for hours."""
    local, redirected = job
    renamed = redirected.stage.folder / "renamed"
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        writer.do("write two ")
        (redirected.stage.folder / "out").rename(renamed)
        if replaced:
            (redirected.stage.folder / "out").write_text("another")
        local.place(Partition(0, str(redirected.folder)))
        _sweep(local.leftovers(merges_living=True))
        assert renamed.read_text() == "one two "
        with renamed.open("r+b") as other:
            other.write(b"ONE TWO ")
        writer.do("write three", "close")
        assert renamed.read_text() == "ONE TWO three"
        assert redirected.parts() == []
        assert redirected.stage.left_over() == []
    if replaced:
        assert _text(redirected) == "another"


# --- Races ---------------------------------------------------------------------------


@contextmanager
def _stopped_after(writer: Writer, call: str, tmp_path: Path) -> Iterator[None]:
    """Let the program write, and stop it after its next system call of this name."""
    assert writer.process.stdin is not None
    status = Path(f"/proc/{writer.process.pid}/status")
    inject = f"inject={call}:signal=STOP:when=1"
    command = ("strace", "-qq", "-o", str(tmp_path / "trace"), "-e", f"trace={call}")
    with subprocess.Popen(
        [*command, "-e", inject, "-p", str(writer.process.pid)]
    ) as tracer:
        until(lambda: "TracerPid:\t0" not in status.read_text())
        writer.process.stdin.write(b"write two ")
        writer.process.stdin.write(b"\n")
        writer.process.stdin.flush()
        # Stopped by the signal, not by the tracer for a moment.
        until(lambda: "--- stopped by SIGSTOP ---" in (tmp_path / "trace").read_text())
        yield
        tracer.terminate()
        tracer.wait(timeout=LIMIT_S)
        os.kill(writer.process.pid, signal.SIGCONT)


@pytest.mark.usefixtures("strace")
def test_targets_that_change_while_a_part_is_made(
    redirected: Redirected, tmp_path: Path
) -> None:
    """The program has read the number and the folder of targets that hold no more."""
    with writing(redirected) as writer:
        writer.do("open out", "write one ")
        redirected.move(2)
        with _stopped_after(writer, "readlinkat", tmp_path):
            assert redirected.parts() == []
            redirected.folder = tmp_path / "new"
            redirected.move(3)
        assert writer.process.stdout is not None
        assert writer.process.stdout.readline() == b"4\n"
        # Nothing goes to the former targets, and the file can still be redirected.
        assert redirected.parts() == []
        assert _text(redirected) == "one two "
        writer.do("write three")
        assert len(redirected.parts()) == 1
        writer.do("close")
        assert _text(redirected) == "one two three"


# --- A daemon ------------------------------------------------------------------------


def _started(daemon: Daemon, name: str, journals: Staging) -> Writer:
    command = ["run", f"--job={name}", "--", sys.executable, "-c", _WRITER]
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", *command],
        env=daemon.environment | journals.environment(),
        cwd=daemon.data,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    daemon._started.append(process)  # type: ignore[arg-type]
    return Writer(process)


def test_a_daemon_redirects_an_open_stream(tmp_path: Path) -> None:
    """While another job writes, new data of the first goes to the first's targets."""
    names = ("a", "b")
    with closing(Daemon(tmp_path, lease="60 s", strategy="3b", gap="10 s")) as daemon:
        jobs, targets = daemon.data / "jobs", daemon.data / "targets"
        for name in names:
            (targets / name).mkdir(parents=True)
        daemon.settings["targets"] = f"directories:{targets}:{','.join(names)}"
        daemon.settings["job_folder"] = f"{jobs}/{{job}}"
        journals = Staging(tmp_path / "journals", always=False)
        journals.prepare()
        daemon.start()
        first = _started(daemon, "first", journals)
        until((jobs / "first" / "1").is_symlink)
        # The page has its first partition soon after the folder.
        _page_has_partition(daemon)
        assert {(jobs / "first" / k).resolve().name for k in "01"} == {*names}
        text = ["0 "]
        first.do("open jobs/first/1/out", "write 0 ")
        until(lambda: daemon.job("first").get("active", False))
        second = _started(daemon, "second", journals)
        until((jobs / "second" / "0").is_symlink)
        second.do("open jobs/second/0/other", "write second")

        def has_part() -> bool:
            text.append(f"{len(text)} ")
            first.do(f"write {text[-1]}")
            return bool(list(targets.glob("*/.penstock-*.part")))

        until(has_part)
        (part,) = targets.glob("*/.penstock-*.part")
        assert part.parent.name == "a"
        assert (targets / "b" / "out").read_text() != "".join(text)
        assert first.do("size").startswith(f"({len(''.join(text))},")
        first.do("close")
        assert (targets / "b" / "out").read_text() == "".join(text)
        assert list(targets.glob("*/.penstock-*")) == []
        for writer in (first, second):
            writer.process.communicate(timeout=LIMIT_S)
        assert "Traceback" not in daemon.log
        assert daemon.stop() == 0


def _page_has_partition(daemon: Daemon) -> None:
    (path,) = daemon.home.rglob("*.page")
    with Page.open(path) as page:
        until(lambda: page.partition != 0)
        # The age from which on the simulator redirects files, too.
        age_ms = page._read().staging.redirect_age_ms
        assert age_ms == 1e3 * redirection.REDIRECT_AGE_S
