# SPDX-License-Identifier: MIT
"""A real daemon, real programs: sharing, changing, switching off, and bad input."""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import (
    AttachProcess,
    ExplainJob,
    GetStatus,
    HintVolume,
    SetBandwidth,
    SetLimit,
    SetMode,
    SetPolicy,
)
from support.daemons import PHASES, Daemon
from support.users import NEEDS_ROOT, NOBODY, as_user, open_for_all
from support.waiting import until

MB = 10**6


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Return a daemon for many tests."""
    with closing(Daemon(tmp_path_factory.mktemp("serve"))) as made:
        made.start()
        yield made


@pytest.fixture
def daemon(shared: Daemon) -> Iterator[Daemon]:
    """Return the daemon as it was when it was started."""
    yield shared
    for process in shared._started:
        if process is not shared.process and process.poll() is None:
            process.kill()
    until(lambda: not shared.status()["jobs"])
    shared.ctl("on")
    shared.ctl("policy", "fair-share")
    shared.ctl("bandwidth", "8 MB/s")


# --- Programs -------------------------------------------------------------------------


def test_a_program_is_paced(daemon: Daemon) -> None:
    began = time.monotonic()
    process = daemon.run("dd", "if=/dev/zero", "of=paced", "bs=64k", "count=128")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    # 8.4 MB at 8 MB/s, less the bytes that pass before the first decision.
    assert time.monotonic() - began > 0.7
    assert (daemon.data / "paced").stat().st_size == 128 * 65536
    until(lambda: not daemon.status()["jobs"])
    assert not list((daemon.home / "pages").iterdir())


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), -signal.SIGKILL),
        (("no-such-program",), 127),
        (("/etc/passwd",), 126),
    ],
)
def test_the_exit_status_is_the_programs(
    daemon: Daemon, command: tuple[str, ...], status: int
) -> None:
    process = daemon.run(*command)
    output, complaint = process.communicate(timeout=120)
    assert process.returncode == status
    assert output == ""
    assert complaint.count("\n") == (status in (126, 127))


def test_nothing_is_added_to_the_output_of_a_program(daemon: Daemon) -> None:
    process = daemon.run(
        "sh", "-c", "cat; echo out; echo err >&2", options=("--verbose",)
    )
    assert process.communicate("in\n", timeout=120) == ("in\nout\n", "err\n")


def _has_completed(daemon: Daemon, job_name: str, operations: int) -> bool:
    return bool(daemon.job(job_name).get("operations") == operations)


def _is_active(daemon: Daemon, job_name: str) -> bool:
    return bool(daemon.job(job_name).get("active"))


def test_phases_are_detected_and_their_volume_is_learnt(daemon: Daemon) -> None:
    process = daemon.run(sys.executable, "-c", PHASES, "phases", job="p")
    assert process.stdin is not None
    assert process.stdout is not None
    for number in (1, 2, 3):
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "written\n"
        until(partial(_has_completed, daemon, "p", number))
        line = daemon.job("p")
        assert not line["active"]
        assert line["moved"] == number * 16 * 65536
    process.stdin.close()
    assert process.wait(120) == 0


def test_two_jobs_share_and_the_operator_changes_it(daemon: Daemon) -> None:
    for job in ("a", "b"):
        daemon.write(job)
        until(partial(_is_active, daemon, job))
    assert [line["granted"] for line in daemon.status()["jobs"]] == [4 * MB, 4 * MB]
    assert "fair-share divides the bandwidth among 2" in daemon.ctl("explain", "b")
    assert daemon.ctl("policy", "fcfs") == "fcfs decides\n"
    assert daemon.job("a")["granted"] == 8 * MB
    assert daemon.job("b")["granted"] == 0.0
    assert "b waits: policy fcfs serves other jobs first" in daemon.ctl("explain", "b")
    daemon.ctl("limit", "a", "2 MB/s")
    assert daemon.job("b")["granted"] == 6 * MB
    daemon.ctl("limit", "a", "none")
    daemon.ctl("bandwidth", "20 MB/s")
    assert daemon.job("a")["granted"] == 20 * MB
    for word in ("policy fcfs", "a    moves", "b    waits"):
        assert word in daemon.ctl("status")
    top = daemon.command("top", "--once").stdout
    assert "b waits: policy fcfs serves other jobs first" in " ".join(top.split())


def test_without_control_every_call_passes(daemon: Daemon) -> None:
    daemon.ctl("bandwidth", "1 kB/s")
    process = daemon.write("slow", blocks=1000)
    until(lambda: daemon.job("slow").get("active"))
    assert daemon.ctl("off") == "control is off: no call is held up\n"
    # 65 MB at 1 kB/s would take 18 hours.
    assert process.wait(100.0) == 0
    assert daemon.status()["mode"] == "off"


def test_a_dry_run_holds_up_no_call(daemon: Daemon) -> None:
    daemon.ctl("bandwidth", "1 kB/s")
    daemon.ctl("dry-run")
    assert daemon.write("free", blocks=1000).wait(100.0) == 0


def test_what_a_dry_run_would_hold_up_is_not_counted_as_held_up(daemon: Daemon) -> None:
    daemon.ctl("bandwidth", "1 kB/s")
    daemon.ctl("dry-run")
    process = daemon.write("watched", blocks=10**6)
    until(lambda: daemon.job("watched").get("would_hold_up"))
    assert daemon.job("watched")["held_up"] == 0.0
    assert "penstock would have held up its calls" in daemon.ctl("explain", "watched")
    assert "would wait" in daemon.ctl("status")
    daemon.ctl("off")
    assert daemon.job("watched")["would_hold_up"] > 0.0
    process.kill()
    process.wait(100.0)


def test_several_programs_are_one_job(daemon: Daemon) -> None:
    first, second = daemon.write("one"), daemon.write("one")
    pages = daemon.home / "pages"
    until(lambda: list(pages.glob("*.note")))
    (note,) = pages.glob("*.note")
    until(lambda: all(f'"{p.pid}"' in note.read_text() for p in (first, second)))
    until(lambda: daemon.job("one").get("waiting"))
    assert len(daemon.status()["jobs"]) == 1
    first.kill()
    first.wait(120)
    # The daemon has noticed the end of the program.
    until(lambda: f'"{first.pid}"' not in note.read_text())
    assert daemon.job("one")["active"]
    second.kill()
    second.wait(120)
    until(lambda: not daemon.status()["jobs"])


def test_a_job_that_is_killed_is_forgotten(daemon: Daemon) -> None:
    process = daemon.write("victim")
    until(lambda: daemon.job("victim").get("active"))
    process.kill()
    process.wait(120)
    until(lambda: not daemon.status()["jobs"])


def test_many_short_programs(daemon: Daemon) -> None:
    script = "for i in $(seq 200); do cat /etc/passwd > f$i; done"
    process = daemon.run("sh", "-c", script, job="many")
    assert process.wait(100.0) == 0
    assert (daemon.data / "f200").read_bytes() == Path("/etc/passwd").read_bytes()


# --- Mistakes and garbage -------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("explain", "nobody"), "there is no job 'nobody'"),
        (("policy", "fast"), "unknown policy 'fast'"),
        (("limit", "nobody", "1 MB/s"), "there is no job 'nobody'"),
        (("limit", "nobody", "-1 B/s"), "-1 is not positive"),
        (("bandwidth", "much"), "'much' is not a bandwidth"),
        (("status", "--folder", "/nowhere"), "no penstock answers"),
    ],
)
def test_mistakes_of_an_operator_are_reported(
    daemon: Daemon, arguments: tuple[str, ...], complaint: str
) -> None:
    done = daemon.command("ctl", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_second_daemon_is_refused(daemon: Daemon) -> None:
    done = daemon.command("serve", "--bandwidth", "1 GB/s")
    assert done.returncode == 2
    assert "another penstock serve already uses" in done.stderr


def test_garbage_on_the_socket(daemon: Daemon) -> None:
    frames = [
        b"",
        b"\x00",
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">I", 0xFFFFFFFF),
        struct.pack(">I", 100) + b"short",
        struct.pack(">I", 1) + b"\x09",
        struct.pack(">I", 5) + b"\x02\xc1\xc1\xc1\xc1",
        struct.pack(">I", 65536) + bytes(65536),
        bytes(range(256)) * 50,
    ]
    for data in frames * 3:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20.0)
            client.connect(str(daemon.home / "agent.sock"))
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
    assert daemon.status()["jobs"] == []
    assert "Traceback" not in daemon.log
    assert daemon.log.count("is of version 9") == 1


def test_silent_connections_hold_up_no_other(daemon: Daemon) -> None:
    silent = []
    for _ in range(40):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(daemon.home / "agent.sock"))
        client.sendall(b"\x00\x00")
        silent.append(client)
    assert daemon.status()["jobs"] == []
    for client in silent:
        client.close()


def test_folders_and_sockets_are_private(daemon: Daemon) -> None:
    for path, mode in (("", 0o700), ("agent.sock", 0o600), ("pages", 0o700)):
        assert (daemon.home / path).stat().st_mode & 0o777 == mode
    process = daemon.write("modes")
    until(lambda: daemon.job("modes"))
    for page in (daemon.home / "pages").iterdir():
        assert page.stat().st_mode & 0o077 == 0
    process.kill()


# --- Without a daemon -----------------------------------------------------------------


def test_a_private_daemon_comes_and_goes(tmp_path: Path) -> None:
    with closing(Daemon(tmp_path)) as alone:
        settings = {"PENSTOCK_BANDWIDTH": "4 MB/s", "PENSTOCK_LINGER": "1 s"}
        program = ("dd", "if=/dev/zero", "of=data", "bs=64k", "count=96")
        process = alone.run(*program, options=("--verbose",), environment=settings)
        began = time.monotonic()
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0
        assert "without control" not in errors
        assert errors.startswith(
            f"penstock: started a private daemon at {alone.home}\n"
        )
        assert time.monotonic() - began > 1.0
        until(lambda: not (alone.home / "agent.sock").exists())


def test_a_program_runs_without_a_daemon(tmp_path: Path) -> None:
    with closing(Daemon(tmp_path)) as alone:
        alone.home.write_text("not a folder")
        for options, lines in (((), 1), (("--quiet",), 0)):
            process = alone.run("sh", "-c", "echo done; exit 3", options=options)
            output, complaint = process.communicate(timeout=120)
            assert (process.returncode, output) == (3, "done\n")
            assert complaint.count("\n") == lines
            assert complaint.startswith("penstock: without control: " * lines)


def test_a_program_that_requires_control_is_not_started_without(tmp_path: Path) -> None:
    with closing(Daemon(tmp_path)) as alone:
        alone.home.write_text("not a folder")
        done = alone.command("run", "--require-control", "--", "echo", "done")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert "the program cannot be controlled" in done.stderr


def test_no_program(tmp_path: Path) -> None:
    with closing(Daemon(tmp_path)) as alone:
        done = alone.command("run", "--")
        assert done.returncode == 2
        assert "no program to run" in done.stderr


# --- Other users ----------------------------------------------------------------------


@NEEDS_ROOT
def test_a_user_sees_only_own_jobs(tmp_path: Path) -> None:
    with closing(Daemon(tmp_path, users="all")) as daemon:
        open_for_all(tmp_path)
        daemon.start()
        daemon.write("roots")
        until(lambda: daemon.job("roots").get("active"))

        def enter() -> list[Any]:
            with Client(daemon.home / "agent.sock") as client:
                pages = [
                    client.ask(AttachProcess(job, nodes=9)).page
                    for job in ("own", "roots")
                ]
                jobs = [line.job_name for line in client.ask(GetStatus()).jobs]
                own = [os.access(page, os.R_OK | os.W_OK) for page in pages]
                listed = list(map(str, (daemon.home / "pages").glob("*")))
                return [jobs, own, listed, client.ask(ExplainJob("own")).text]

        jobs, own, listed, words = as_user(NOBODY, enter)
        # A job with the name of another user's job is a different job.
        assert jobs == ["own", "roots"]
        assert own == [True, True]
        assert listed == []
        assert words.startswith(
            "own does no I/O now. Its next operation may begin at 8 MB/s."
        )
        until(lambda: len(daemon.status()["jobs"]) == 1)

        def meddle() -> list[str]:
            complaints = []
            for question in (
                # The own job of this name has ended: the archive would explain it.
                ExplainJob("0:roots"),
                HintVolume("roots", 1.0),
                SetLimit("roots", 1.0),
                SetPolicy("fcfs"),
                SetBandwidth(1.0),
                SetMode("off"),
            ):
                with Client(daemon.home / "agent.sock") as client:
                    try:
                        client.ask(question)
                    except InputError as error:
                        complaints.append(str(error))
            return complaints

        complaints = as_user(NOBODY, meddle)
        assert [c.partition("'")[0] for c in complaints[:2]] == ["there is no job "] * 2
        assert len(complaints) == 6
        assert all(c.startswith("only root and the user") for c in complaints[2:])
        page = next((daemon.home / "pages").glob("*.page"))
        assert not as_user(NOBODY, lambda: os.access(page, os.R_OK))


def test_a_phase_that_is_announced_has_its_volume_at_once(tmp_path: Path) -> None:
    code = (
        "import penstock, pathlib, sys\n"
        "sys.stdin.readline()\n"
        "with penstock.phase(volume=3_000_000):\n"
        "    pathlib.Path('announced').write_bytes(bytes(1000))\n"
        "    sys.stdin.readline()\n"
    )
    with closing(Daemon(tmp_path)) as daemon:
        daemon.start()
        program = daemon.run(sys.executable, "-c", code, job="hinted")
        # Announce when the job is known: only the sum of earlier ones is visible.
        until(lambda: daemon.job("hinted"))
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
        until(lambda: daemon.job("hinted").get("volume") == 3_000_000)
