# SPDX-License-Identifier: MIT
"""A daemon with a staging strategy: the second job stages, and loses nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.pages.page import CREDIT_S
from penstock.live.staging.rules import Staging
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import AttachProcess
from penstock.native.files import shim_path
from support.daemons import Daemon
from support.users import NEEDS_ROOT, NOBODY, as_user, open_for_all
from support.waiting import LIMIT_S, until

#: Begins a phase, writes for every line that it reads, ends the phase with the input.
_WRITER = """
import os, sys
import penstock
with penstock.phase(volume=4 << 20):
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for line in sys.stdin:
        os.write(fd, line.encode() * 1000)
        print("written", flush=True)
    os.close(fd)
print("closed", flush=True)
"""


def _started(daemon: Daemon, name: str, journals: Staging) -> subprocess.Popen[str]:
    command = ["run", f"--job={name}", "--", sys.executable, "-c", _WRITER, name]
    return subprocess.Popen(
        [sys.executable, "-m", "penstock", *command],
        env=daemon.environment | journals.environment(),
        cwd=daemon.data,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _write(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "written\n"


def test_the_second_stages_behind_the_first(tmp_path: Path) -> None:
    journals = Staging(tmp_path / "journals", always=False)
    journals.prepare()
    with closing(Daemon(tmp_path, strategy="2a", lease="60 s")) as daemon:
        daemon.start()
        first = _started(daemon, "first", journals)
        _write(first, "a")
        until(lambda: daemon.job("first").get("active", False))
        second = _started(daemon, "second", journals)
        until(lambda: daemon.job("second") != {})
        # Until the order to stage arrives, the program may write to the file.
        until(
            lambda: (
                "its writes go to its journals" in _written_once_more(daemon, second)
            )
        )
        seen = (daemon.data / "second").stat().st_size
        _write(second, "c")
        assert (daemon.data / "second").stat().st_size == seen
        assert (daemon.data / "first").stat().st_size > 0
        # After the end of the first, the second drains at its close.
        assert first.communicate(timeout=120)[0] == "closed\n"
        assert second.communicate(timeout=120)[0] == "closed\n"
        text = (daemon.data / "second").read_text()
        assert text.startswith("b\n" * 1000)
        assert text.endswith("c\n" * 1000)
        assert set(text) == set("bc\n")
        assert first.returncode == second.returncode == 0
        assert "Traceback" not in daemon.log


def test_a_program_and_its_drainer_draw_one_grant(tmp_path: Path) -> None:
    """A record takes 0.26 s at the granted rate, much longer than a slice."""
    journals = Staging(tmp_path / "journals", always=True)
    journals.prepare()
    blocks, rate = 16, 4e6
    with closing(Daemon(tmp_path, bandwidth=f"{rate:g} B/s")) as daemon:
        daemon.start()
        words = ("dd", "if=/dev/zero", "of=big", "bs=1M", f"count={blocks}")
        begun_s = time.monotonic()
        program = daemon.run(*words, job="big", environment=journals.environment())
        assert program.wait(LIMIT_S) == 0
        elapsed_s = time.monotonic() - begun_s
    # The program and the drainer may each be one record ahead of the grant.
    assert elapsed_s > (blocks - 2) * 2**20 / rate - CREDIT_S


_PLAIN_WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for _ in range(int(sys.argv[2])):
    os.write(fd, b"x" * 65536)
open(f"{sys.argv[1]}-written", "w").close()
os.close(fd)
"""


def test_a_program_without_hints_is_not_held_in_its_first_write(tmp_path: Path) -> None:
    """Its first write waits already when the order to stage arrives."""
    journals = Staging(tmp_path / "journals", always=False)
    journals.prepare()
    blocks = 64
    with closing(Daemon(tmp_path, strategy="2a", bandwidth="1 MB/s")) as daemon:
        daemon.start()
        programs = {}
        for name, count in (("first", 10**6), ("second", blocks)):
            script = [sys.executable, "-c", _PLAIN_WRITER, name, str(count)]
            programs[name] = daemon.run(
                *script, job=name, environment=journals.environment()
            )
            until(lambda: daemon.job(name).get("active", False))  # noqa: B023
        until((daemon.data / "second-written").exists)
        assert (daemon.data / "second").stat().st_size < blocks * 65536
        programs["first"].kill()
        assert programs["second"].wait(LIMIT_S) == 0
        assert (daemon.data / "second").read_bytes() == b"x" * blocks * 65536


def _written_once_more(daemon: Daemon, process: subprocess.Popen[str]) -> str:
    _write(process, "b")
    why: str = daemon.job("second")["why"]
    return why


def test_an_unusable_staging_folder_stops_no_program(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "penstock", "run", "--verbose"]
    command += [f"--folder={tmp_path}/run", "--stage", str(tmp_path / "file" / "x")]
    done = subprocess.run(
        [*command, "--", "sh", "-c", "echo written >data; exit 3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 3
    assert (tmp_path / "data").read_text() == "written\n"
    assert "penstock: without staging: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unusable_staging_folder_is_logged_once(tmp_path: Path) -> None:
    """The message is in the log of the daemon; the program prints nothing."""
    journals = Staging(tmp_path / "journals")
    journals.prepare()
    script = "import os, shutil; shutil.rmtree('../journals')\n"
    script += "for name in 'abc': open(name, 'wb', 0).write(b'x')"
    with closing(Daemon(tmp_path)) as daemon:
        daemon.start()
        environment = journals.environment()
        process = daemon.run(sys.executable, "-c", script, environment=environment)
        assert process.communicate(timeout=LIMIT_S) == ("", "")
        assert [(daemon.data / name).read_bytes() for name in "abc"] == [b"x"] * 3
        until(lambda: "cannot be staged" in daemon.log)
        assert daemon.log.count("cannot be staged") == 1


#: Stages four megabytes, prints a line, and waits.
_STAGER = """
import os, sys
fd = os.open("out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for number in range(16):
    os.write(fd, bytes([number]) * (1 << 18))
print("staged", flush=True)
sys.stdin.read()
os.close(fd)
"""
_STAGED = b"".join(bytes([number]) * (1 << 18) for number in range(16))


def _staging(daemon: Daemon, journals: Path) -> subprocess.Popen[str]:
    """Start a program that stages and then does nothing; return when it has staged."""
    command = ["run", "--job=it", f"--stage={journals}", "--", sys.executable, "-c"]
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", *command, _STAGER],
        env=daemon.environment,
        cwd=daemon.data,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "staged\n"
    return process


def _is_drained(daemon: Daemon) -> bool:
    return (daemon.data / "out").read_bytes() == _STAGED


def test_the_agent_starts_a_drainer_while_the_program_works(tmp_path: Path) -> None:
    with closing(Daemon(tmp_path)) as daemon:
        daemon.start()
        program = _staging(daemon, tmp_path / "journals")
        until(lambda: _is_drained(daemon))
        assert program.poll() is None
        program.communicate(timeout=120)
        assert program.returncode == 0
        assert _is_drained(daemon)


@pytest.mark.parametrize("killed", ["program", "agent", "both"])
def test_journals_of_killed_programs_are_drained_by_the_agent(
    tmp_path: Path, killed: str
) -> None:
    """The journals are on a disk, and no setting names their folder."""
    # Too slow to end before it is killed.
    with closing(Daemon(tmp_path, bandwidth="1 kB/s")) as daemon:
        daemon.start()
        program = _staging(daemon, tmp_path / "journals")
        assert not _is_drained(daemon)
        if killed != "program":
            daemon.kill()
        if killed != "agent":
            program.kill()
        if killed != "program":
            daemon.start()
        daemon.ctl("bandwidth", "1 GB/s")
        until(lambda: _is_drained(daemon))
        program.communicate(timeout=120)
        journals = tmp_path / "journals"
        until(lambda: not list(journals.glob("*.journal")))
        assert _is_drained(daemon)
        assert "Traceback" not in daemon.log


def test_a_folder_that_the_settings_name_is_drained_at_the_start(
    tmp_path: Path,
) -> None:
    journals = tmp_path / "ssd" / "journals"
    journals.parent.mkdir()
    with closing(Daemon(tmp_path, journals=f"{tmp_path}/*/journals")) as daemon:
        # Without a daemon, so that no agent knows of the journals.
        staging = Staging(journals)
        program = subprocess.Popen(
            [sys.executable, "-c", _STAGER],
            env=shim_environment(None, [daemon.data], staging=staging),
            cwd=daemon.data,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with program:
            assert program.stdout is not None
            program.stdout.readline()
            program.kill()
        assert (daemon.data / "out").stat().st_size == 0
        daemon.start()
        until(lambda: _is_drained(daemon))


@NEEDS_ROOT
def test_the_journals_of_another_user_are_drained_as_that_user(tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    with closing(Daemon(tmp_path, users="all")) as daemon:
        out = daemon.data / "out"
        open_for_all(tmp_path)
        daemon.start()
        daemon.data.chmod(0o777)
        journals.mkdir(mode=0o700)
        os.chown(journals, NOBODY, NOBODY)
        library = shutil.copy(shim_path(), tmp_path / "library.so")

        def enter() -> list[int]:
            environment = dict(os.environ) | {"LD_PRELOAD": library}
            environment["PENSTOCK_CONTROLLED"] = str(daemon.data)
            environment |= Staging(journals).environment()
            with Client(daemon.home / "agent.sock") as client:
                page = client.ask(AttachProcess("theirs")).page
                program = subprocess.Popen(
                    ["dd", "of=out", "bs=8", "status=none"],
                    env=environment | {"PENSTOCK_PAGE": page},
                    cwd=daemon.data,
                    stdin=subprocess.PIPE,
                )
                assert program.stdin is not None
                program.stdin.write(b"written\n")
                program.stdin.flush()
                # Only the drainer can have drained: the program is alive and waits.
                until(lambda: out.exists() and out.read_text() == "written\n")
                alive = program.poll() is None
                users = _users_of_drainers(daemon) if alive else []
                program.kill()
                return users

        assert as_user(NOBODY, enter) == [NOBODY]
        assert out.stat().st_uid == NOBODY


def _users_of_drainers(daemon: Daemon) -> list[int]:
    """Return the users of the drainers that a daemon has started."""
    assert daemon.process is not None
    users = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # Their user cannot read more of them.
            lines = (process / "status").read_text().splitlines()
            status = dict(line.split(":", 1) for line in lines)
            is_drainer = status["Name"].strip() == "penstock-drain"
            if is_drainer and int(status["PPid"]) == daemon.process.pid:
                users.append(int(status["Uid"].split()[1]))
    return users
