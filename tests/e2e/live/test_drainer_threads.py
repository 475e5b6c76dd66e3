# SPDX-License-Identifier: MIT
"""The threads of a drainer drain all journals, and it ends after their last step."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.live.node.pages.page import IoClass, Page
from penstock.live.staging.drain_process import start_drainer
from penstock.native.files import shim_path
from support.jobs import Job, compiled
from support.native_build import build_variant
from support.stages import Stage
from support.waiting import LIMIT_S, until

#: Number of threads of a drainer: a journal belongs to one of them by its inode.
THREADS = 8
#: A drainer of these tests ends after this time without work (s).
LINGER_S = 1.0
#: Writes to the files that its arguments name, and waits.
_WRITER = """
import os, sys
for name in sys.argv[1:]:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT)
    os.write(fd, name.encode() * 1000)
print("staged", flush=True)
sys.stdin.read()
"""


def _staged(stage: Stage, job: Job, *names: str) -> subprocess.Popen[bytes]:
    """Start a program that has staged these files."""
    program = stage.start(
        *(sys.executable, "-S", "-c", _WRITER, *names),
        environment=stage.environment(page=job.page.path),
    )
    job.started.append(program)
    assert program.stdout is not None
    assert program.stdout.readline() == b"staged\n"
    return program


def _staged_for_another_thread(stage: Stage, job: Job) -> Path:
    """Stage a file whose journal does not belong to the first thread; return it."""
    for number in range(2 * THREADS):
        name = f"file{number}"
        program = _staged(stage, job, name)
        (journal,) = stage.journals.glob("*.journal")
        if journal.stat().st_ino % THREADS != 0:
            return stage.folder / name
        program.communicate(timeout=LIMIT_S)
        # No later journal gets the same inode.
        (stage.journals / f"placeholder{number}").touch()
    raise AssertionError("all journals belong to the first thread")


def _pending(page: Page) -> int:
    staged = page.staged
    return staged.absorbed_bytes - staged.drained_bytes


# --- The end ------------------------------------------------------------------------


def _variables(page: Page) -> dict[str, str]:
    linger = f"{LINGER_S * 1e3:.0f}"
    return {"PENSTOCK_PAGE": str(page.path), "PENSTOCK_DRAIN": linger}


@contextmanager
def _draining(page: Page, stage: Stage) -> Iterator[subprocess.Popen[bytes]]:
    user, group = os.geteuid(), os.getegid()
    process = start_drainer(stage.journals, user, group, _variables(page))
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT_S)


def _check_end(job: Job, file: Path, drainer: subprocess.Popen[bytes]) -> None:
    """Check that all is drained, and that the drainer then ends between two steps."""
    until(lambda: _pending(job.page) == 0)
    assert file.read_bytes() == file.name.encode() * 1000
    assert drainer.wait(LIMIT_S) == 0
    counters = job.page.counters(IoClass.DRAIN)
    assert counters.begun_calls == counters.ended_calls > 0


def test_a_drainer_does_not_end_while_a_thread_waits_for_its_grant(
    stage: Stage, job: Job
) -> None:
    """What the thread has reserved would stay charged to the job."""
    file = _staged_for_another_thread(stage, job)
    job.page.grant(0.0)
    with _draining(job.page, stage) as drainer:
        until(lambda: job.page.counters(IoClass.DRAIN).waiting_calls)
        time.sleep(2.5 * LINGER_S)
        assert drainer.poll() is None
        assert file.stat().st_size == 0
        job.page.grant(float("inf"))
        _check_end(job, file, drainer)


@contextmanager
def _draining_with(
    fault: str, page: Page, stage: Stage, trace: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a drainer whose writes meet a fault."""
    variables = _variables(page) | {
        "LD_PRELOAD": str(shim_path()),
        "PENSTOCK_STAGING": str(stage.journals),
    }
    settings = [f"--env={name}={value}" for name, value in variables.items()]
    command = ("strace", "-f", "-qq", "-o", str(trace), *settings)
    flags = ("-e", "trace=pwritev", "-e", f"inject=pwritev:{fault}")
    with subprocess.Popen([*command, *flags, "true"]) as process:
        yield process
        process.kill()


@pytest.mark.usefixtures("strace")
def test_a_drainer_does_not_end_while_the_storage_is_slow(
    stage: Stage, job: Job, tmp_path: Path
) -> None:
    file = _staged_for_another_thread(stage, job)
    fault, trace = f"delay_enter={2.5 * LINGER_S * 1e6:.0f}", tmp_path / "trace"
    with _draining_with(fault, job.page, stage, trace) as drainer:
        _check_end(job, file, drainer)
    assert "(DELAYED)" in trace.read_text()


@pytest.mark.usefixtures("strace")
def test_a_drainer_ends_while_all_drains_fail(
    stage: Stage, job: Job, tmp_path: Path
) -> None:
    """Programs must know that they have to drain by themselves."""
    file = _staged_for_another_thread(stage, job)
    trace = tmp_path / "trace"
    with _draining_with("error=EIO", job.page, stage, trace) as drainer:
        assert drainer.wait(LIMIT_S) == 0
    assert _pending(job.page) == len(file.name) * 1000
    assert "(INJECTED)" in trace.read_text()
    counters = job.page.counters(IoClass.DRAIN)
    assert counters.begun_calls == counters.ended_calls > 0


# --- A storage that does not answer --------------------------------------------------

#: The time after which a thread counts as stuck in the library of this test (s).
_STUCK_S = 2.5 * LINGER_S
#: Exit status of a program if the kernel lets no write hang.
_CANNOT_HANG = 77


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library with `_STUCK_S` instead of a minute."""
    flags = f"-DCMAKE_C_FLAGS=-DDRAIN_STUCK_MS={_STUCK_S * 1e3:.0f}"
    folder = tmp_path_factory.mktemp("impatient")
    return build_variant(folder, "shim", flags, "-DPENSTOCK_LIBFUSE=none")


def test_a_storage_that_does_not_answer_does_not_keep_a_drainer_for_ever(
    stage: Stage, job: Job, tmp_path: Path, impatient: Path
) -> None:
    """Beside it, programs would not know that they have to drain by themselves."""
    file = _staged_for_another_thread(stage, job)
    options = ["-shared", "-fPIC"]
    hanging = compiled(tmp_path / "hanging.so", "hanging_writes.c", options)
    environment = _variables(job.page) | {
        "LD_PRELOAD": f"{impatient}:{hanging}",
        "PENSTOCK_STAGING": str(stage.journals),
    }
    begun_s = time.monotonic()
    status = subprocess.run(
        ["true"], env=environment, check=False, timeout=LIMIT_S
    ).returncode
    if status == _CANNOT_HANG:
        pytest.skip("needs seccomp with notifications")
    assert status == 0
    assert time.monotonic() - begun_s > _STUCK_S
    assert _pending(job.page) == len(file.name) * 1000
    counters = job.page.counters(IoClass.DRAIN)
    assert counters.begun_calls == counters.ended_calls + 1
    # Nothing holds the journal: the next drainer drains it.
    with _draining(job.page, stage):
        until(lambda: _pending(job.page) == 0)
    assert file.read_bytes() == file.name.encode() * 1000


# --- Fewer threads ------------------------------------------------------------------


@pytest.fixture(scope="module")
def few_threads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library that lets programs start few threads."""
    target = tmp_path_factory.mktemp("few_threads") / "few_threads.so"
    return compiled(target, "few_threads.c", ["-shared", "-fPIC"])


@contextmanager
def _draining_with_threads(
    threads: int, library: Path, page: Page, stage: Stage
) -> Iterator[None]:
    """Drain with so many threads beside the first one."""
    environment = {
        "LD_PRELOAD": f"{library}:{shim_path()}",
        "THREADS": str(threads),
        "PENSTOCK_STAGING": str(stage.journals),
        "PENSTOCK_PAGE": str(page.path),
        "PENSTOCK_DRAIN": f"{LIMIT_S * 1e3:.0f}",
    }
    with subprocess.Popen(["true"], env=environment) as process:
        status = Path(f"/proc/{process.pid}/status")
        until(lambda: f"Threads:\t{threads + 1}\n" in status.read_text())
        yield
        process.kill()


@pytest.mark.parametrize("threads", [0, 2])
def test_threads_that_cannot_be_started_leave_no_journal(
    stage: Stage, job: Job, few_threads: Path, threads: int
) -> None:
    names = [f"file{number}" for number in range(3 * THREADS)]
    _staged(stage, job, *names)
    with _draining_with_threads(threads, few_threads, job.page, stage):
        until(lambda: _pending(job.page) == 0)
        for name in names:
            assert (stage.folder / name).read_bytes() == name.encode() * 1000


def test_the_page_is_corrected_without_further_threads(
    stage: Stage, job: Job, few_threads: Path
) -> None:
    _staged(stage, job, "file")
    stage.drain()  # by a process without the page
    assert _pending(job.page) > 0
    with _draining_with_threads(0, few_threads, job.page, stage):
        until(lambda: _pending(job.page) == 0)
