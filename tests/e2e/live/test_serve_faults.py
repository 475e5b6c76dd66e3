# SPDX-License-Identifier: MIT
"""Programs go on when the daemon dies, is restarted, or has no disk."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.daemons import PHASES, Daemon
from support.waiting import until

#: With control this takes twenty minutes: longer than any test waits.
SLOW = "20 kB/s"
MANY_BLOCKS = 400


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Return a daemon with a very small bandwidth."""
    with closing(Daemon(tmp_path, bandwidth=SLOW)) as made:
        made.start()
        yield made


def test_programs_go_on_after_the_daemon_is_killed(daemon: Daemon) -> None:
    programs = [daemon.write(f"job{n}", blocks=MANY_BLOCKS) for n in range(3)]
    until(lambda: all(line["active"] for line in daemon.status()["jobs"]))
    until(lambda: len(daemon.status()["jobs"]) == 3)
    daemon.kill()
    for number, process in enumerate(programs):
        output, complaint = process.communicate(timeout=100)
        assert (process.returncode, output, complaint) == (0, "", "")
        size = (daemon.data / f"job{number}").stat().st_size
        assert size == MANY_BLOCKS * 65536


def test_a_stopped_daemon_lifts_all_limits_at_once(daemon: Daemon) -> None:
    process = daemon.write("job", blocks=MANY_BLOCKS)
    until(lambda: daemon.job("job").get("active"))
    assert daemon.stop() == 0
    assert process.wait(100.0) == 0
    assert not (daemon.home / "agent.sock").exists()


def test_a_hanging_daemon_does_not_hold_up_programs_for_long(daemon: Daemon) -> None:
    process = daemon.write("job", blocks=MANY_BLOCKS)
    until(lambda: daemon.job("job").get("active"))
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        assert process.wait(100.0) == 0
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    until(lambda: daemon.status()["jobs"] == [])


def test_a_restarted_daemon_controls_the_same_jobs(tmp_path: Path) -> None:
    with closing(Daemon(tmp_path, bandwidth="1 MB/s", lease="60 s")) as daemon:
        daemon.start()
        for job in ("a", "b"):
            daemon.write(job)
        until(lambda: len(daemon.status()["jobs"]) == 2)
        until(lambda: daemon.job("a").get("lost", 0.0) > 1.0)
        # The next daemon reads the state that was saved last.
        until(lambda: daemon.job("a").get("age", 0.0) > 7.0)
        asked = time.monotonic()
        before = daemon.job("a")
        daemon.kill()
        killed = time.monotonic()
        # Nobody controls the jobs now: this time is neither work nor loss.
        time.sleep(4.0)
        started = time.monotonic()
        daemon.start()
        until(lambda: daemon.job("a").get("active") and daemon.job("b").get("active"))
        after = daemon.job("a")
        controlled_s = (killed - asked) + (time.monotonic() - started)
        assert after["age"] < before["age"] + controlled_s
        assert 0.5 < after["lost"] < after["age"]
        assert after["granted"] == 500_000
        assert after["moved"] >= before["moved"]
        assert "job 0:a continues".replace("0:", f"{os.geteuid()}:") in daemon.log


def test_a_page_whose_processes_are_gone_is_removed(daemon: Daemon) -> None:
    process = daemon.write("job")
    until(lambda: daemon.job("job"))
    daemon.kill()
    process.kill()
    process.wait(120)
    assert list((daemon.home / "pages").glob("*.page"))
    (daemon.home / "pages" / "garbage.page").write_bytes(b"not a page")
    daemon.start()
    assert daemon.status()["jobs"] == []
    assert not list((daemon.home / "pages").iterdir())


def test_a_daemon_without_a_state_folder_goes_on(tmp_path: Path) -> None:
    with closing(Daemon(tmp_path, state="/dev/full")) as daemon:
        daemon.start()
        process = daemon.write("job", blocks=16)
        assert process.wait(120) == 0
        assert daemon.log.count("control goes on") == 1
        assert "Traceback" not in daemon.log


def test_a_daemon_takes_over_the_jobs_of_a_private_one(tmp_path: Path) -> None:
    """The daemon of an earlier `penstock run` does not keep `penstock serve` away."""
    with closing(Daemon(tmp_path)) as daemon:
        process = daemon.run(sys.executable, "-c", PHASES, "file", job="job")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "written\n"
        daemon.start()
        until(lambda: "8 MB/s shared" in daemon.command("ctl", "status").stdout)
        until(lambda: daemon.job("job"))
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "written\n"
        until(lambda: daemon.job("job")["moved"] == 2 * 16 * 65536)
        process.communicate(timeout=100)
        assert process.returncode == 0


def test_a_lingering_private_daemon_does_not_answer_for_a_new_one(
    tmp_path: Path,
) -> None:
    """Once `penstock serve` has begun, the first answer is its own."""
    with closing(Daemon(tmp_path)) as daemon:
        # On a busy machine this may be long after the job has ended.
        kept = {"PENSTOCK_LINGER": "2 min"}
        assert daemon.run("true", job="job", environment=kept).wait(120) == 0
        assert "learnt bandwidth shared" in daemon.command("ctl", "status").stdout
        daemon.begin()
        assert daemon.process is not None
        holder = str(daemon.process.pid)
        until(lambda: (daemon.home / "lock").read_text().startswith(holder))
        # The command does not wait for as long as a busy machine takes to start it.
        answers = (daemon.command("ctl", "status") for _ in range(100))
        first = next(each for each in answers if each.returncode == 0)
        assert "8 MB/s shared" in first.stdout
