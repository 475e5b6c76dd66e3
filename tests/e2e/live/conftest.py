# SPDX-License-Identifier: MIT
"""Fixtures of the tests of live control."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.live.node.pages.page import Page
from support.jobs import Job, compiled
from support.stages import Stage


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """Return a job that is counted and leased, without a limit."""
    page = Page.create(tmp_path / "page")
    page.renew(60.0)
    job = Job(tmp_path, page)
    job.folder.mkdir()
    yield job
    job.close()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Return a folder whose files are staged."""
    made = Stage(tmp_path / "staged", tmp_path / "journals")
    made.folder.mkdir()
    made.journals.mkdir(mode=0o700)
    return made


@pytest.fixture
def memory_stage(tmp_path: Path) -> Iterator[Stage]:
    """Return a folder whose files are staged in memory."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - where memory is
        pytest.skip("needs /dev/shm")
    journals = Path("/dev/shm") / f"penstock-test-{os.getpid()}-{time.monotonic_ns()}"  # noqa: S108
    journals.mkdir(mode=0o700)
    made = Stage(tmp_path / "staged", journals)
    made.folder.mkdir()
    yield made
    shutil.rmtree(journals)


@pytest.fixture(scope="session")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program of ``calls.c``."""
    return compiled(tmp_path_factory.mktemp("calls") / "calls", "calls.c")


@pytest.fixture(scope="session")
def crasher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program of ``crasher.c``."""
    return compiled(tmp_path_factory.mktemp("crasher") / "crasher", "crasher.c")


@pytest.fixture(scope="session")
def python() -> str:
    """Return the interpreter for controlled programs."""
    return sys.executable


@pytest.fixture
def strace() -> str:
    """Return the name of strace, or skip the test."""
    probe = ["strace", "-o", "/dev/null", "true"]
    if shutil.which("strace") is None or subprocess.run(probe, check=False).returncode:
        pytest.skip("needs strace, and the right to trace")
    return "strace"
