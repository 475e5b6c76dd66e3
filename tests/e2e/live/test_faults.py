# SPDX-License-Identifier: MIT
"""Injected faults: programs continue without messages, and the daemon recovers.

More such tests are in ``test_serve*.py``.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import (
    VERSION,
    AttachProcess,
    ExplainJob,
    GetStatus,
    HintVolume,
    JobStatus,
    Message,
    RegisterJob,
    SetLimit,
    encode,
)
from support import seeded
from support.daemons import Daemon
from support.users import (
    NEEDS_ROOT,
    NOBODY,
    SOMEBODY,
    as_user,
    become,
    open_for_all,
)
from support.waiting import until

#: With control this takes twenty minutes: longer than any test waits.
SLOW, MANY_BLOCKS = "20 kB/s", 400


def jobs(daemon: Daemon) -> dict[str, JobStatus]:
    """Return the status of the jobs, by name."""
    with Client(daemon.home / "agent.sock") as client:
        return {line.job_name: line for line in client.ask(GetStatus()).jobs}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Return a daemon for several tests; it serves all users if root runs the tests."""
    folder = tmp_path_factory.mktemp("faults")
    users = "own"
    if os.geteuid() == 0:
        open_for_all(folder)
        users = "all"
    with closing(Daemon(folder, users=users)) as made:
        made.start()
        yield made


# --- The daemon -----------------------------------------------------------------------


def test_killed_and_restarted_again_and_again_under_load(tmp_path: Path) -> None:
    with closing(Daemon(tmp_path, bandwidth=SLOW, lease="60 s")) as daemon:
        daemon.start()
        programs = [daemon.write(name, blocks=MANY_BLOCKS) for name in "abc"]
        for _ in range(2):
            until(lambda: [j.active for j in jobs(daemon).values()] == [True] * 3)
            daemon.kill()
            daemon.start()
        until(lambda: [j.active for j in jobs(daemon).values()] == [True] * 3)
        # Jobs that a busy machine does not run draw nothing, and have less for a while.
        until(
            lambda: (
                sum(line.grant or 0.0 for line in jobs(daemon).values())
                == pytest.approx(20_000)
            )
        )
        daemon.ctl("off")
        for process in programs:
            assert process.communicate(timeout=100) == ("", "")
            assert process.returncode == 0
        until(lambda: jobs(daemon) == {})
        assert not list((daemon.home / "pages").iterdir())
        assert "Traceback" not in daemon.log


def test_a_removed_socket_is_created_again(shared: Daemon) -> None:
    (shared.home / "agent.sock").unlink()
    # A program that starts now does not wait for the socket.
    process = shared.run("echo", "done", job="meanwhile")
    assert process.communicate(timeout=120) == ("done\n", "")
    until((shared.home / "agent.sock").exists)
    assert jobs(shared) == {}
    assert "was removed; creating it again" in shared.log


@contextmanager
def full_disk(folder: Path) -> Iterator[Path]:
    """Mount a full disk."""
    folder.mkdir()
    size = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "none", str(folder)]
    subprocess.run(size, check=True)
    try:
        with suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@NEEDS_ROOT
def test_a_full_disk_for_state_and_pages(tmp_path: Path) -> None:
    with full_disk(tmp_path / "full") as disk, closing(Daemon(tmp_path)) as daemon:
        daemon.home = disk / "run"
        daemon.settings["folder"] = str(daemon.home)
        daemon.start()
        process = daemon.run("echo", "done", options=("--verbose",))
        output, complaint = process.communicate(timeout=120)
        assert (process.returncode, output) == (0, "done\n")
        assert complaint.startswith("penstock: without control: ")
        assert complaint.count("\n") == 1
        assert daemon.log.count("control goes on") == 1
        # As soon as there is space again, jobs are controlled again.
        (disk / "filler").unlink()
        daemon.write("controlled")
        until(lambda: "controlled" in jobs(daemon))
        assert "Traceback" not in daemon.log


# --- Garbage --------------------------------------------------------------------------

_MESSAGES: tuple[Message, ...] = (
    AttachProcess("fuzz", 3, 5.0, "/"),
    RegisterJob("fuzz", 0, 0, "account", 4),
    HintVolume("fuzz", 1.0),
    SetLimit("fuzz", 1.0),
    ExplainJob("fuzz"),
    GetStatus(),
)


def _mutated(draw: Any) -> bytes:
    """Return a valid frame with a few bytes changed."""
    data = bytearray(encode(draw.choice(_MESSAGES)))
    for _ in range(draw.randrange(4)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    if draw.random() < 0.5:
        data[0] = VERSION
    length = len(data) if draw.random() < 0.8 else draw.randrange(1 << 32)
    return struct.pack(">I", length) + bytes(data[: draw.randrange(len(data) + 1)])


def _send_garbage(address: Path) -> int:
    draw = seeded(7)
    for _ in range(300):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20.0)
            client.connect(str(address))
            with suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(draw.randrange(1, 4)):
                    client.sendall(_mutated(draw))
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
    return os.getpid()


def test_fuzzed_messages(shared: Daemon) -> None:
    # In a separate process, so that the jobs that it attaches to end with it.
    as_user(os.geteuid(), lambda: _send_garbage(shared.home / "agent.sock"))
    for page in (shared.home / "pages").glob("*.page"):
        page.unlink()
    until(lambda: jobs(shared) == {})
    assert "Traceback" not in shared.log
    assert len(shared.log.splitlines()) < 150


# --- Other users ----------------------------------------------------------------------


@pytest.fixture
def victim(shared: Daemon) -> Iterator[Daemon]:
    """Return a daemon with a job of root that writes."""
    shared.ctl("on")
    process = shared.write("victim")
    until(lambda: "victim" in jobs(shared) and jobs(shared)["victim"].active)
    yield shared
    assert jobs(shared)["victim"].grant == 8_000_000
    before = jobs(shared)["victim"].moved_bytes
    until(lambda: jobs(shared)["victim"].moved_bytes > before)
    assert shared.process is not None
    assert shared.process.poll() is None
    assert "Traceback" not in shared.log
    process.kill()
    process.wait(120)
    until(lambda: jobs(shared) == {})


@NEEDS_ROOT
def test_a_user_who_truncates_a_page_harms_no_other_job(victim: Daemon) -> None:
    address = victim.home / "agent.sock"

    def attack() -> list[str]:
        with Client(address) as client:
            page = client.ask(AttachProcess("attacker")).page
            os.truncate(page, 0)
            until(lambda: client.ask(GetStatus()).jobs == [])
            # Again, while the agent reads it: another page of the same name.
            page = client.ask(AttachProcess("attacker")).page
            file = os.open(page, os.O_RDWR)
            for size in (4096, 0, 100, 4096) * 50:
                os.ftruncate(file, size)
            os.ftruncate(file, 0)
            until(lambda: client.ask(GetStatus()).jobs == [])
            return [str(os.path.exists(page))]  # noqa: PTH110 - in a child

    assert as_user(NOBODY, attack) == ["False"]
    assert (
        f"job {NOBODY}:attacker is not controlled any more, its page is damaged: "
        in victim.log
    )


@NEEDS_ROOT
def test_a_user_cannot_act_as_another_user(victim: Daemon) -> None:
    address = victim.home / "agent.sock"
    (roots,) = (victim.home / "pages").glob("*.page")

    def attack() -> list[str]:
        allowed = []
        with Client(address) as client:
            client.ask(AttachProcess("0:victim"))
            for word in (
                RegisterJob("victim", 0, 0, "account", 99),
                RegisterJob("own", NOBODY, NOBODY, "account", 99),
                SetLimit("0:victim", 1.0),
                SetLimit("victim", 1.0),
                ExplainJob("victim"),
                HintVolume("victim", 1.0),
            ):
                try:
                    allowed.append(str(client.ask(word)))
                except InputError as error:
                    allowed.append(str(error))
            seen = [line.job_name for line in client.ask(GetStatus()).jobs]
            allowed.append(f"sees {seen}")
        names = ("", "pages", "slurm", "keys")
        allowed += [name for name in names if os.access(victim.home / name, os.R_OK)]
        files = (roots, roots.with_suffix(".note"), victim.home / "history.sqlite")
        allowed += [
            str(f) for f in files if os.access(f, os.R_OK) or os.access(f, os.W_OK)
        ]
        return allowed

    allowed = as_user(SOMEBODY, attack)
    assert [words.split(" (")[0] for words in allowed] == [
        "only root may register a job",
        "only root may register a job",
        "only root and the user who runs the controller may change it",
        "only root and the user who runs the controller may change it",
        "there is no job 'victim'",
        "there is no job 'victim'",
        "sees ['0:victim']",
    ]
    # Root can still name its job by the key, though another user took the name.
    assert victim.ctl("limit", "0:victim", "none") == "victim has no limit\n"


@NEEDS_ROOT
def test_a_user_with_many_connections_does_not_block_others(victim: Daemon) -> None:
    address = victim.home / "agent.sock"
    reading, writing = os.pipe()
    waiting, going = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(NOBODY)
            silent = [socket.socket(socket.AF_UNIX) for _ in range(600)]
            for client in silent:
                with suppress(OSError):
                    client.connect(str(address))
            os.write(writing, b"!")
            os.read(waiting, 1)
        finally:
            os._exit(0)
    try:
        assert os.read(reading, 1) == b"!"
        assert [line.job_name for line in jobs(victim).values()] == ["victim"]

        def enter() -> str:
            with Client(address) as client:
                return type(client.ask(AttachProcess("other"))).__name__

        assert as_user(SOMEBODY, enter) == "PageAssigned"
    finally:
        os.write(going, b"!")
        os.waitpid(child, 0)
        for descriptor in (reading, writing, waiting, going):
            os.close(descriptor)


@NEEDS_ROOT
def test_a_second_daemon_ends_without_changes(victim: Daemon) -> None:
    before = victim.home.stat().st_mode
    late = subprocess.run(
        [sys.executable, "-m", "penstock", "serve", f"--folder={victim.home}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert late.returncode == 2
    assert "another penstock serve already uses" in late.stderr
    assert victim.home.stat().st_mode == before


@NEEDS_ROOT
def test_file_modes_when_all_users_are_served(victim: Daemon) -> None:
    expected = {"": 0o711, "pages": 0o711, "agent.sock": 0o666, "lock": 0o600}
    expected["history.sqlite"] = 0o600
    for name, mode in expected.items():
        status = (victim.home / name).stat()
        assert (status.st_uid, status.st_mode & 0o777) == (0, mode), name
    for path in (victim.home / "pages").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path
