# SPDX-License-Identifier: MIT
"""A job on one node: its page, its processes and its note."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from penstock.live.node import local_job
from penstock.live.node.budgets import Budgets, Holding
from penstock.live.node.bypass import ROUNDING_BYTES
from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.local_job import JobNote, LocalJob, find_bypass
from penstock.live.node.pages.page import IoClass, Mode, Page
from penstock.live.node.pages.room import SPARE_BYTES, PageRoom
from penstock.live.staging.drainers import Drainer, Leftover
from penstock.live.staging.rules import Staging
from penstock.live.wire.identity import process_start_ticks
from penstock.live.wire.messages import AgentConfig, JobJoined, Partition
from support.waiting import until

#: When this process started.
START = process_start_ticks(os.getpid()) or 0

CONFIG = AgentConfig("dry-run", [], 0.25, 0.1, 3.0, inf, reads=False)
WRITE = "import sys; open(sys.argv[1], 'wb', 0).write(bytes(100_000))"


def note(job: str = "0:a") -> JobNote:
    """Return the note of a job of this user without processes."""
    return JobNote(job, os.geteuid(), os.getegid(), 2, 5.0)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[LocalJob]:
    """Return a job with a page."""
    created = LocalJob.create(tmp_path, note())
    yield created
    created.close(remove=True)


def write(job: LocalJob, folder: Path) -> None:
    """Let a program write under control."""
    environment = shim_environment(job.page.path, [folder])
    command = [sys.executable, "-c", WRITE, str(folder / "out")]
    subprocess.run(command, env=environment, check=True)


def test_the_controller_gets_a_message_about_a_new_job(job: LocalJob) -> None:
    assert job.joined_message() == JobJoined(
        "0:a", os.geteuid(), str(os.getegid()), 2, 5.0
    )


def test_the_page_is_for_its_user_only(job: LocalJob) -> None:
    assert job.page.path.stat().st_mode & 0o777 == 0o600


def test_counters(job: LocalJob, tmp_path: Path) -> None:
    before = job.read_counters(0.1, reads=True)
    assert (before.job_key, before.moved_bytes, before.operations_begun) == (
        "0:a",
        0.0,
        0,
    )
    operated = job.may_operate
    write(job, tmp_path)
    after = job.read_counters(1e9, reads=True)
    assert (after.moved_bytes, after.waiting) == (100_000.0, False)
    assert after.operations_begun > 0
    assert 0.0 <= after.idle_s < 60.0
    assert (operated, job.may_operate) == (False, True)

    def is_idle() -> bool:
        job.read_counters(0.001, reads=True)
        return not job.may_operate

    until(is_idle)


STAGES = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, bytes(100_000))
print("staged", flush=True)
sys.stdin.read()
"""


def test_staged_data_are_drained_beside_the_program(
    job: LocalJob, tmp_path: Path
) -> None:
    staging = Staging(tmp_path / "journals")
    job.page.renew(60.0)
    job.page.grant(0.0)
    command = [sys.executable, "-c", STAGES, str(tmp_path / "out")]
    with subprocess.Popen(
        command,
        env=shim_environment(job.page.path, [tmp_path], staging=staging),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        assert job.page.journal_folder == tmp_path / "journals"
        counts = job.read_counters(0.001, reads=True)
        assert counts.can_stage
        assert (counts.staged_bytes, counts.moved_bytes, counts.idle_s) == (
            100_000.0,
            0.0,
            0.0,
        )
        job.keep_draining()
        until(lambda: job.page.counters(IoClass.DRAIN).waiting_calls)
        # The drainer is held up; the program makes no call and is not.
        counts = job.read_counters(0.001, reads=True)
        assert not counts.waiting
        assert counts.quiet_s > 0.0
        job.page.grant(inf)
        until(lambda: job.read_counters(0.001, reads=True).staged_bytes == 0.0)
        until(lambda: job.read_counters(0.001, reads=True).moved_bytes == 100_000.0)
        program.kill()


def test_a_drainer_that_is_over_budget_is_not_started(
    job: LocalJob, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept: list[Path] = []
    monkeypatch.setattr(Page, "journal_folder", tmp_path)
    monkeypatch.setattr(Drainer, "keep", lambda _, folder, __: kept.append(folder))
    job._staged_bytes = 1
    job.keep_draining(lambda: False)
    assert kept == []
    job.keep_draining(lambda: True)
    assert kept == [tmp_path]


def test_jobs_of_containers_share_what_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limits: list[float] = []

    def measure(_: LocalJob, __: object, most: float) -> bool:
        limits.append(most)
        return True

    monkeypatch.setattr(LocalJob, "measure_bypass", measure)
    jobs = []
    for user in (70_001, 70_002, 7):
        job = LocalJob.create(tmp_path, note(f"{user}:a"))
        job.note.user = user
        jobs.append((job, [1]))
    bypass = find_bypass(jobs, lambda user: min(user, 70_000))
    assert limits == [1000, 1000, 2000]
    assert bypass.job_keys == ["70001:a", "70002:a", "7:a"]
    assert set(bypass.spent_s) == {70_001, 70_002, 7}
    for job, _ in jobs:
        job.close(remove=True)


def test_a_call_in_the_kernel_is_not_taken_for_bypass(
    job: LocalJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel counts the bytes of a call before the page does."""
    monkeypatch.setattr(job._written, "measure", lambda *_: 5000)
    writes = job.page._view.classes[IoClass.WRITE]
    writes.begun_calls, writes.last_active_ns = 1, time.monotonic_ns()
    assert job.measure_bypass([])
    assert job.read_counters(1e9, reads=True).uncontrolled_bytes == 0.0
    # It waits for its grant: the page has counted it before.
    writes.moved_bytes, writes.waiting_calls = 5000, 1
    writes.heartbeat_ns = time.monotonic_ns()
    assert job.read_counters(1e9, reads=True).uncontrolled_bytes == 0.0
    assert not job.measure_bypass([])
    writes.ended_calls, writes.waiting_calls = 1, 0
    assert job.read_counters(1e9, reads=True).uncontrolled_bytes == 0.0


def test_bytes_that_no_call_has_written_are_uncontrolled(
    job: LocalJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_bytes = 5000 + ROUNDING_BYTES  # one call, in whole pages
    monkeypatch.setattr(job._written, "measure", lambda *_: kernel_bytes)
    writes = job.page._view.classes[IoClass.WRITE]
    writes.begun_calls = writes.ended_calls = 1
    writes.moved_bytes = 2000
    job.read_counters(1e9, reads=True)
    assert job.measure_bypass([])
    # What control sees after the measurement is no excuse for what was written before.
    assert job.read_counters(1e9, reads=True).uncontrolled_bytes == 3000.0
    writes.moved_bytes = 90_000
    assert job.read_counters(1e9, reads=True).uncontrolled_bytes == 3000.0
    assert not job.measure_bypass([])


def test_reads_count_only_if_they_are_controlled(job: LocalJob, tmp_path: Path) -> None:
    write(job, tmp_path)
    environment = shim_environment(job.page.path, [tmp_path])
    subprocess.run(
        ["cat", str(tmp_path / "out")],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    writes, both = (job.read_counters(1.0, reads=reads) for reads in (False, True))
    assert (both.moved_bytes, writes.moved_bytes) == (200_000.0, 100_000.0)
    assert (both.read_bytes, both.written_bytes) == (100_000.0, 100_000.0)
    assert (writes.read_bytes, writes.written_bytes) == (0.0, 100_000.0)


def test_a_report_reads_the_page_twice(
    job: LocalJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later word of two is taken from the first copy: see page.h."""
    reads: list[int] = []
    kept = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        data = kept(descriptor, size, offset)
        reads.append(offset)
        # After each copy, a phase begins and ends, and a byte is staged and drained.
        words = job.page._view
        words.phases_begun += 1
        words.phases_ended += 1
        words.staging.absorbed_bytes += 1
        words.staging.drained_bytes += 1
        return data

    monkeypatch.setattr(os, "pread", counted)
    state = job.page.look()
    assert (state.announced.begun, state.announced.ended) == (1, 0)
    assert (state.staged.absorbed_bytes, state.staged.drained_bytes) == (1, 0)
    reads.clear()
    job.read_counters(1.0, reads=True)
    assert len(reads) == 2


def test_a_configuration_is_written_into_the_page(job: LocalJob) -> None:
    job.apply(CONFIG, 3.0)
    mode = job.page.mode
    assert job.page.gap_s == pytest.approx(0.25)
    job.apply(AgentConfig("off", [], 0.25, 0.1, 3.0, inf, reads=False), 3.0)
    assert (mode, job.page.mode) == (Mode.DRY_RUN, Mode.OFF)
    assert not job.may_operate


@pytest.mark.parametrize(("reads", "writes"), [(True, False), (False, True)])
def test_what_is_free_is_written_into_the_page(
    job: LocalJob, reads: bool, writes: bool
) -> None:
    config = AgentConfig("control", [], 0.25, 0.1, 3.0, inf, True, reads, writes)
    job.apply(config, 3.0)
    words = job.page._read()
    assert (words.free_cached_reads, words.free_absorbed_writes) == (reads, writes)


def start_of(process: subprocess.Popen[bytes]) -> int:
    """Return the start of a process (clock ticks after boot)."""
    start = process_start_ticks(process.pid)
    assert start is not None
    return start


def test_processes(job: LocalJob) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        job.add(os.getpid(), START)
        job.add(process.pid, start_of(process))
        for pid in (process.pid, 12345678):
            job.remove(pid, start_of(process))
            assert not job.is_over
        job.remove(os.getpid(), START)
        assert job.is_over
        process.kill()


def test_a_registered_job_is_over_when_its_page_is_removed(
    job: LocalJob, tmp_path: Path
) -> None:
    job.register("physics", 4)
    assert job.joined_message() == JobJoined("0:a", os.geteuid(), "physics", 4, 5.0)
    job.add(os.getpid(), START)
    job.remove(os.getpid(), START)
    was_over = job.is_over
    again = LocalJob.reopen(job.page.path)
    assert again is not None
    assert again.joined_message() == job.joined_message()
    # Its user may have made another link to the file.
    os.link(job.page.path, tmp_path / "kept")
    job.page.path.unlink()
    assert (was_over, job.is_over, again.is_over) == (False, True, True)
    again.close()


def test_a_later_agent_reopens_the_page(job: LocalJob, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        job.add(os.getpid(), START)
        job.add(process.pid, start_of(process))
        process.kill()
    write(job, tmp_path)
    again = LocalJob.reopen(job.page.path)
    assert again is not None
    assert again.note == JobNote(
        "0:a",
        os.geteuid(),
        os.getegid(),
        2,
        5.0,
        processes={os.getpid(): process_start_ticks(os.getpid()) or 0},
    )
    assert again.page.counters(IoClass.WRITE).moved_bytes == 100_000
    again.close()


def test_the_next_controller_learns_which_targets_it_has(job: LocalJob) -> None:
    job.add(os.getpid(), START)
    job.place(Partition(7, "/data/a", targets=("A", "C")))
    assert job.page.partition == 7
    again = LocalJob.reopen(job.page.path)
    assert again is not None
    assert again.joined_message().targets == ("A", "C")
    again.close()


def test_the_next_controller_learns_that_it_has_several_nodes(job: LocalJob) -> None:
    """Otherwise files would be redirected until the second node has joined again."""
    job.add(os.getpid(), START)
    job.place(Partition(7, "/data/a", targets=("A",)))
    assert not job.joined_message().several_nodes
    job.place(Partition(0, "/data/a", targets=("A",)))
    again = LocalJob.reopen(job.page.path)
    assert again is not None
    assert again.joined_message().several_nodes
    again.close()


@pytest.mark.parametrize("damage", ["no note", "bad note", "no UTF-8", "bad page"])
def test_a_page_that_cannot_be_reopened_is_removed(job: LocalJob, damage: str) -> None:
    job.add(os.getpid(), START)
    path = job.page.path
    beside = path.with_suffix(".note")
    if damage == "no note":
        beside.unlink()
    elif damage == "bad note":
        beside.write_bytes(b"{")
    elif damage == "no UTF-8":
        beside.write_bytes(beside.read_bytes().replace(b"0:a", b"0:\xff"))
    else:
        path.unlink()
        path.write_bytes(b"?")
    assert LocalJob.reopen(path) is None
    assert not path.exists()
    assert not beside.exists()


@pytest.mark.parametrize(("is_operator", "expected"), [(False, -5.0), (True, -1.0)])
def test_users_only_lower_the_priority_of_a_job(
    job: LocalJob, monkeypatch: pytest.MonkeyPatch, is_operator: bool, expected: float
) -> None:
    monkeypatch.setattr(local_job, "is_operator", lambda _: is_operator)
    job.add(os.getpid(), START)

    def announce(priority: float) -> bool:
        return job.announce(JobNote("0:a", 0, 0, 0, 0.0, priority=priority))

    assert announce(-5.0)
    assert not announce(0.0)
    assert announce(-1.0) == is_operator
    # A later agent knows it, too.
    again = LocalJob.reopen(job.page.path)
    assert again is not None
    assert again.note.priority == expected
    again.close()


def test_a_page_that_is_too_long_is_cut_and_reopened(job: LocalJob) -> None:
    """Its user made it longer while no daemon was running."""
    job.add(os.getpid(), START)
    os.truncate(job.page.path, 1 << 20)
    again = LocalJob.reopen(job.page.path)
    assert again is not None
    assert job.page.path.stat().st_size == SPARE_BYTES
    again.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as another user")
@pytest.mark.parametrize("way", ["reopened", "created again"])
def test_a_page_that_is_of_no_use_is_watched_when_it_is_removed(
    job: LocalJob, way: str
) -> None:
    user, path = 65_030, job.page.path
    os.chown(path, user, -1)
    job.close()
    budgets = Budgets(4096)
    room = PageRoom(budgets, None)
    with path.open("r+b") as stream:
        stream.write(b"?" * 64)
        if way == "reopened":
            assert LocalJob.reopen(path, room) is None
        else:
            LocalJob.create(path.parent, job.note, room).close()
        assert budgets.held(user, Holding.JOBS) == 1
    room.cut([], 1.0)
    assert budgets.held(user, Holding.JOBS) == 0


def test_a_job_whose_processes_are_gone_is_over_and_has_left_its_journals(
    job: LocalJob, tmp_path: Path
) -> None:
    staging = Staging(tmp_path / "journals")
    environment = shim_environment(job.page.path, [tmp_path], staging=staging)
    subprocess.run(["true"], env=environment, check=True)
    job.add(os.getpid(), START)
    beside = job.page.path.with_suffix(".note")
    text = beside.read_text()
    # Another process has the same process id now.
    beside.write_text(text.replace(str(process_start_ticks(os.getpid())), "1"))
    again = LocalJob.reopen(job.page.path)
    assert again is not None
    assert again.is_over
    status = job.page.path.stat()
    assert again.leftovers() == [
        Leftover(
            tmp_path / "journals",
            os.geteuid(),
            os.getegid(),
            (status.st_dev, status.st_ino),
        )
    ]
    again.close()


def test_closing_removes_the_limit(job: LocalJob, tmp_path: Path) -> None:
    job.page.grant(5.0)
    other = Page.open(job.page.path)
    job.close()
    assert other.granted_bytes() is None
    assert job.page.path.exists()
    job.close(remove=True)
    assert not list(tmp_path.iterdir())
    other.close()


def test_a_process_with_the_number_of_one_that_has_ended_stays(job: LocalJob) -> None:
    job.add(os.getpid(), START)
    job.remove(os.getpid(), START - 1)
    assert job.note.processes == {os.getpid(): START}
    job.remove(os.getpid(), START)
    assert job.is_over


def test_ends_of_processes_make_no_false_claim_true(
    job: LocalJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(*_: object) -> int:
        job._written.is_complete = True
        job.remove(1, 7)  # in the middle of the measurement
        return 0

    monkeypatch.setattr(local_job, "is_operator", lambda _: False)
    monkeypatch.setattr(job._written, "measure", measure)
    job._claimed_bytes = 50e6
    job.measure_bypass([os.getpid()])
    assert not job._claims.is_backed
    job._claimed_bytes = 60e6
    job.measure_bypass([os.getpid()])
    assert not job._claims.is_backed
    assert job._checked_ends == job._ends - 1
