# SPDX-License-Identifier: MIT
"""Phases announced by programs in C, C++ and Python reach the page."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.live.node.pages.page import IoClass, Mode
from penstock.native.files import SOURCES
from support.jobs import Job
from support.waiting import until

PROGRAM = r"""
#include <stdio.h>
#include "penstock.h"
int main(void)
{
    for (int i = 0; i < 3; i++) {
        penstock_begin(1000);
        puts("writes");
        penstock_end();
    }
    penstock_begin(7);
    return 0;
}
"""
BUILDS = {
    "c": ("gcc", "-std=c99", "-x", "c"),
    "c-fixed-address": ("gcc", "-std=gnu11", "-no-pie", "-fno-pie", "-x", "c"),
    "c++": ("g++", "-x", "c++"),
}


@pytest.fixture(params=BUILDS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a program that includes the header."""
    compiler, *options = BUILDS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    (tmp_path / "source").write_text(PROGRAM)
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{SOURCES}/shim"]
    command = [compiler, *strict, *options, str(tmp_path / "source")]
    end = ["-x", "none", "-o", str(tmp_path / "program"), "-ldl"]
    subprocess.run([*command, *end], check=True, timeout=120)
    return tmp_path / "program"


def test_a_program_with_hints_runs_without_the_library(job: Job, program: Path) -> None:
    done = job.run(program, environment={})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"writes\n" * 3, b"")
    assert job.page.announced.begun == 0


def test_the_page_adds_up_announced_phases(job: Job, program: Path) -> None:
    assert job.run(program).returncode == 0
    announced = job.page.announced
    assert (announced.volume_bytes, announced.begun, announced.ended) == (3007, 4, 3)
    assert announced.last_s > 0.0
    # The begin of a phase is a post, its end is not.
    assert job.page.operations_begun == 4


def test_nothing_is_announced_when_control_is_off(job: Job, program: Path) -> None:
    job.page.mode = Mode.OFF
    assert job.run(program).returncode == 0
    assert job.page.announced.begun == job.page.operations_begun == 0


def test_pauses_inside_a_phase_are_counted(job: Job, python: str) -> None:
    job.page.gap_s = 0.01
    script = """
import os, penstock, time
fd = os.open("out", os.O_WRONLY | os.O_CREAT)
os.write(fd, b"before")
time.sleep(0.05)
for _ in range(2):
    with penstock.phase(volume="30 B"):
        for _ in range(3):
            os.write(fd, b"0123456789")
            time.sleep(0.05)
"""
    assert job.run(python, "-c", script).returncode == 0
    counters = job.page.counters(IoClass.WRITE)
    # Two in each phase: those before, between and after the phases are none.
    assert counters.pauses == 4
    assert counters.paused_s >= 4 * 0.05


@pytest.mark.parametrize("failure", ["pass", "raise SystemExit(3)"])
def test_a_phase_in_python_begins_and_ends(job: Job, python: str, failure: str) -> None:
    script = f"import penstock\nwith penstock.phase(volume='2 kB'):\n    {failure}"
    done = job.run(python, "-c", script)
    assert (done.returncode, done.stderr) == (0 if failure == "pass" else 3, b"")
    announced = job.page.announced
    assert (announced.volume_bytes, announced.begun, announced.ended) == (2000, 1, 1)


def test_the_shares_of_many_processes_are_added_up(job: Job, python: str) -> None:
    script = (
        "import os, penstock\n"
        "children = [os.fork() for _ in range(3)]\n"
        "with penstock.phase(volume=10): pass\n"
        "if all(children): [os.wait() for _ in children]"
    )
    assert job.run(python, "-c", script).returncode == 0
    announced = job.page.announced
    assert (announced.volume_bytes, announced.begun, announced.ended) == (80, 8, 8)


def test_an_announced_phase_wakes_the_agent(job: Job, python: str) -> None:
    woken: list[list[int]] = []
    with job.bell(slot=3, on_ring=lambda _, slots: woken.append(slots)):
        script = "import penstock\nwith penstock.phase(volume=1): pass"
        assert job.run(python, "-c", script).returncode == 0
        until(lambda: woken)
    assert {tuple(slots) for slots in woken} == {(3,)}
