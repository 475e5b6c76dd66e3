# SPDX-License-Identifier: MIT
"""Staging and every wrapped call: the same answers and bytes, nothing left over."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import pytest

from penstock.live.node.pages.page import IoClass
from penstock.live.staging.drainers import drain_beside
from support.jobs import Job
from support.stages import Stage, files, scenes_of
from support.waiting import LIMIT_S, until

#: Scenes that wait for a grant that this test does not give.
_LEFT_OUT = {"handler", "longjmp", "cancel"}


@pytest.mark.parametrize("capacity", [64 << 10, 64 << 20], ids=["small", "large"])
@pytest.mark.parametrize("scene", sorted(scenes_of("calls.c") - _LEFT_OUT))
def test_a_call_answers_as_without_staging(
    stage: Stage, calls: Path, scene: str, capacity: int
) -> None:
    plain = stage.run(calls, scene, environment={})
    left = files(stage.folder)
    stage.empty()
    done = stage.run(calls, scene, environment=stage.environment(capacity))
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)
    assert files(stage.folder) == left
    assert stage.left_over() == []


@pytest.mark.parametrize("scene", ["write", "fork", "stdio_write", "stdio_text"])
def test_every_scene_stages_something(
    stage: Stage, job: Job, calls: Path, scene: str
) -> None:
    """Without this check the comparison above could pass without any staging."""
    environment = stage.environment(page=job.page.path)
    assert stage.run(calls, scene, environment=environment).returncode == 0
    staged = job.page.staged
    assert staged.absorbed_bytes > 0
    assert staged.refused_files == 0


# --- Calls that no scene can make -----------------------------------------------------

UNSEEN = """
import ctypes, os
fd = os.open("a", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(fd, b"staged" * 1000)
ctypes.CDLL("libc.so.6").close_range(3, 0xFFFFFFFF, 0)   # Past the library.
"""


def test_a_program_that_closes_descriptors_with_raw_calls_loses_nothing(
    stage: Stage,
) -> None:
    done = stage.run(sys.executable, "-S", "-c", UNSEEN)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (stage.folder / "a").read_bytes() == b"staged" * 1000
    # The journal is empty: the next process removes it.
    assert stage.run("cat", "a").stdout == b"staged" * 1000
    assert stage.left_over() == []


OFF_AND_ON = """
import os, sys
from penstock import bbio
bbio.finalize()
bbio.init(sys.argv[1], "1 MiB")
fd = os.open("a", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(fd, b"before")
child = os.fork()
if child == 0:
    os.write(fd, b" child")
    os._exit(0)
os.waitpid(child, 0)
os.write(fd, b" after")
"""


def test_staging_can_be_switched_off_and_on_again(stage: Stage) -> None:
    done = stage.run(sys.executable, "-c", OFF_AND_ON, stage.journals)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (stage.folder / "a").read_bytes() == b"before child after"


CALLED = """
import os, sys
from penstock import bbio
def called(fd):
    print("called for", os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
fds = [os.open(name, os.O_WRONLY | os.O_CREAT, 0o600) for name in "ab"]
for fd in fds:
    bbio.on_flush(fd, called)
os.write(fds[1], b"staged")
"""


def test_the_flush_callback_is_called_at_the_exit(
    stage: Stage,
) -> None:
    done = stage.run(sys.executable, "-c", CALLED)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"called for b\n", b"")
    assert (stage.folder / "b").read_bytes() == b"staged"


EVERY_FLUSH = """
import os, sys
from penstock import bbio
bbio.init(sys.argv[1], "64 KiB")
fd = os.open("a", os.O_WRONLY | os.O_CREAT, 0o600)
calls = []
bbio.on_flush(fd, calls.append)

def show(name, *steps):
    calls.clear()
    for step in steps:
        step()
    print(name, len(calls), set(calls) <= {fd})

def write(size=5000):
    os.write(fd, b"x" * size)

def flush():
    bbio.flush(fd)

show("empty", flush)
show("flush", write, flush)
show("fsync", write, lambda: os.fsync(fd))
show("full", *[lambda: write(30000)] * 3)
show("rest", flush)
show("too-large", write, lambda: write(200000))
show("disable", write, lambda: bbio.disable(fd))
show("disabled", write, flush)
show("enabled", lambda: bbio.enable(fd), write, flush)
show("close", write, lambda: os.close(fd))
again = os.open("b", os.O_WRONLY | os.O_CREAT, 0o600)
assert again == fd
show("another-file", write, flush)
"""
#: Flush -> how often the callback is called before it.
CALLS_BEFORE = {
    "empty": 0,
    "flush": 1,
    "fsync": 1,
    "full": 1,
    "rest": 1,
    "too-large": 1,
    "disable": 1,
    "disabled": 0,
    "enabled": 1,
    "close": 1,
    "another-file": 0,
}


def test_the_flush_callback_is_called_before_every_flush(stage: Stage) -> None:
    done = stage.run(sys.executable, "-c", EVERY_FLUSH, stage.journals)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = [line.split() for line in done.stdout.decode().splitlines()]
    assert {name: int(calls) for name, calls, _ in shown} == CALLS_BEFORE
    assert all(own == "True" for _, _, own in shown)
    assert (stage.folder / "a").stat().st_size == 7 * 5000 + 3 * 30000 + 200000


#: Writes a program, closes it after a line of input, and then executes it.
EXECUTING = """
import ctypes, os, sys
fd = os.open("program", os.O_WRONLY | os.O_CREAT, 0o700)
os.write(fd, b"#!/bin/sh\\nexit 7\\n")
print("written", flush=True)
sys.stdin.readline()
os.close(fd)
print("closed", flush=True)
sys.stdin.readline()
libc, words = ctypes.CDLL(None), (ctypes.c_char_p * 2)(b"program", None)
environment = (ctypes.c_char_p * 1)(None)
os.environ["PATH"] = "/nowhere::/bin"
CALL
sys.exit("not executed: " + os.strerror(ctypes.get_errno()))
"""
SPAWNED = "sys.exit(os.waitstatus_to_exitcode(os.waitpid({}, 0)[1]))"
EXECUTIONS = {
    "execve": "os.execve('./program', ['program'], {})",
    "execv": "os.execv('program', ['program'])",
    "execl": "libc.execl(b'program', b'program', None)",
    "execlp": "libc.execlp(b'program', b'program', None)",
    "execvp": "libc.execvp(b'program', words)",
    "execveat": "libc.execveat(-100, b'program', words, environment, 0)",
    "posix_spawn": SPAWNED.format("os.posix_spawn('program', ['program'], {})"),
    "posix_spawnp": SPAWNED.format("os.posix_spawnp('program', ['program'], {})"),
    "system": "sys.exit(os.waitstatus_to_exitcode(os.system('./program')))",
}


@pytest.mark.parametrize("call", EXECUTIONS.values(), ids=EXECUTIONS)
def test_a_program_that_is_being_drained_can_be_executed(
    stage: Stage, job: Job, call: str
) -> None:
    """A file that is open for writing cannot be executed; the drainer has it open."""
    job.page.grant(0.0)
    environment = stage.environment(page=job.page.path, durable="journal")
    code = EXECUTING.replace("CALL", call)
    program = stage.start(sys.executable, "-S", "-c", code, environment=environment)
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stdout.readline() == b"written\n"
    drainer_arguments = (job.page.path, stage.journals, os.geteuid(), os.getegid())
    drainer = drain_beside(*drainer_arguments)
    until(lambda: job.page.counters(IoClass.DRAIN).waiting_calls)
    program.stdin.write(b"close\n")
    program.stdin.flush()
    assert program.stdout.readline() == b"closed\n"
    program.stdin.write(b"execute\n")
    program.stdin.flush()
    # The execution waits for the drain, or has failed.
    until(lambda: job.page.counters(IoClass.WRITE).waiting_calls or program.poll())
    job.page.grant(math.inf)
    program.communicate(timeout=LIMIT_S)
    drainer.kill()
    drainer.wait(LIMIT_S)
    assert program.returncode == 7
