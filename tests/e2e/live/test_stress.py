# SPDX-License-Identifier: MIT
"""Very many processes: nothing leaks, and a job gets exactly its rate."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.live.node.pages.page import IoClass, Page
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import AttachProcess, GetStatus
from support.daemons import Daemon
from support.waiting import until

MB = 10**6


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Return a daemon whose leases do not end on a busy machine."""
    folder = tmp_path_factory.mktemp("stress")
    with closing(Daemon(folder, bandwidth="4 MB/s", lease="60 s")) as made:
        made.start()
        yield made


def jobs(daemon: Daemon) -> list[str]:
    """Return the names of the jobs."""
    with Client(daemon.home / "agent.sock") as client:
        return [line.job_name for line in client.ask(GetStatus()).jobs]


class Footprint:
    """The resources of a daemon: descriptors, threads, memory and files."""

    def __init__(self, daemon: Daemon) -> None:
        assert daemon.process is not None
        process = Path(f"/proc/{daemon.process.pid}")
        self.descriptors = len(list((process / "fd").iterdir()))
        self.threads = len(list((process / "task").iterdir()))
        resident = (process / "statm").read_text().split()[1]
        self.memory_bytes = int(resident) * os.sysconf("SC_PAGE_SIZE")
        self.pages = len(list((daemon.home / "pages").iterdir()))


def assert_no_leak(daemon: Daemon, before: Footprint) -> None:
    """Wait until a daemon has about as many resources as before."""

    def same() -> bool:
        now = vars(Footprint(daemon))
        return all(now[name] <= value for name, value in vars(before).items())

    # A few are created at their first use, and stay.
    before.descriptors += 5
    before.threads += 3
    before.memory_bytes += 20 * MB
    until(same)
    assert "Traceback" not in daemon.log


def test_three_thousand_short_writers(daemon: Daemon) -> None:
    before = Footprint(daemon)
    script = "for i in $(seq 3000); do /bin/echo line >>lines; done"
    process = daemon.run("sh", "-c", script, job="short")
    assert process.communicate(timeout=100) == ("", "")
    assert process.returncode == 0
    assert (daemon.data / "lines").read_bytes() == b"line\n" * 3000
    until(lambda: jobs(daemon) == [])
    assert_no_leak(daemon, before)


def _attach_and_end(address: Path) -> None:
    """Attach a process that ends at once to a job."""
    child = os.fork()
    if child == 0:
        try:
            with Client(address) as client:
                client.ask(AttachProcess("crowd"))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_hundreds_of_processes_attach_and_end(daemon: Daemon) -> None:
    before = Footprint(daemon)
    for _ in range(200):
        _attach_and_end(daemon.home / "agent.sock")
    until(lambda: jobs(daemon) == [])
    assert_no_leak(daemon, before)


#: A process that forks others, which all write to one file until they are killed.
CROWD = """
import os, signal, sys
os.setpgid(0, 0)
file = os.open("crowd", os.O_WRONLY | os.O_CREAT)
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
while True:
    os.pwrite(file, bytes(4096), 0)
"""


def test_five_hundred_processes_have_the_rate_of_one_job(daemon: Daemon) -> None:
    process = daemon.run(sys.executable, "-c", CROWD, "500", job="crowd")
    try:
        until(lambda: "crowd" in jobs(daemon))
        (path,) = (daemon.home / "pages").glob("*.page")
        with Page.open(path) as page:
            # All have begun, and all but one of them are held up.
            until(lambda: page.counters(IoClass.WRITE).waiting_calls >= 490)
            drawn = [page.counters(IoClass.WRITE).moved_bytes]
            granted = [page.granted_bytes() or 0]
            time.sleep(4.0)
            drawn.append(page.counters(IoClass.WRITE).moved_bytes)
            granted.append(page.granted_bytes() or 0)
        # Against what the page granted meanwhile, however long that was.
        ratio = (drawn[1] - drawn[0]) / (granted[1] - granted[0])
        assert ratio == pytest.approx(1.0, abs=0.02)
        with Client(daemon.home / "agent.sock") as client:
            (line,) = client.ask(GetStatus()).jobs
        assert line.grant == 4 * MB
    finally:
        os.killpg(process.pid, 9)
        process.wait(120)
    until(lambda: jobs(daemon) == [])
