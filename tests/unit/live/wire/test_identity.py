# SPDX-License-Identifier: MIT
"""Which users are trusted, and when processes started."""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from penstock.errors import InputError, UnavailableError
from penstock.live import ending
from penstock.live.wire import identity
from penstock.live.wire.identity import (
    KnownUser,
    is_operator,
    known_user,
    parse_start_ticks,
    process_start_ticks,
    user_id,
    user_name,
)
from support.waiting import LIMIT_S, until


def test_operators_are_root_and_the_user_of_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    assert [user for user in (0, 1, 6, 7, 8) if is_operator(user)] == [0, 7]


def test_users_have_names_and_numbers() -> None:
    me = os.geteuid()
    name = pwd.getpwuid(me).pw_name
    assert (user_name(me), user_id(name), user_id(str(me))) == (name, me, me)
    assert (user_name(3_999_999_999), user_name(2**40)) == ("", "")
    assert (user_id("no such user"), user_id(""), user_id("a\0b")) == (None,) * 3


def test_a_known_user_has_a_main_group_and_others() -> None:
    own = pwd.getpwuid(os.geteuid())
    known = known_user(own.pw_uid)
    assert known is not None
    assert (known.name, known.group) == (own.pw_name, own.pw_gid)
    assert set(known.groups) == set(os.getgrouplist(own.pw_name, own.pw_gid))
    assert known_user(3_999_999_999) is None


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a program that takes the place of `id`."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "id").touch(0o755)
    return tmp_path / "id"


def test_a_slow_user_database_does_not_stop_other_threads(program: Path) -> None:
    """Its answer waits for something that another thread of this process does."""
    gate = program.with_name("gate")
    program.write_text(f"#!/bin/sh\nuntil cat {gate}; do sleep 0.01; done\n")
    found: list[KnownUser | None] = []
    thread = threading.Thread(target=lambda: found.append(known_user(os.geteuid())))
    thread.start()
    gate.with_suffix(".new").write_text("4711 4712\n")
    gate.with_suffix(".new").rename(gate)
    thread.join(LIMIT_S)
    assert [known and known.groups for known in found] == [(4711, 4712)]


def test_a_user_database_that_does_not_answer_is_named(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = pwd.getpwuid(os.geteuid()).pw_name
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(UnavailableError, match=f"the groups of '{name}'"):
        known_user(os.geteuid())
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(identity, "_LIMIT_S", 0.1)
    with pytest.raises(UnavailableError, match=r"answers within 0\.1 s"):
        known_user(os.geteuid())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="there is no program `id`"):
        known_user(os.geteuid())


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_program_that_cannot_be_killed_is_abandoned(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process in state D ends long after it was killed."""
    number = program.with_name("number")
    program.write_text(f"#!/bin/sh\necho $$ > {number}\nexec sleep 600\n")
    monkeypatch.setattr(identity, "_LIMIT_S", 1.0)
    monkeypatch.setattr(ending, "KILL_S", 0.01)
    refused: list[UnavailableError] = []

    def ask() -> None:
        try:
            known_user(os.geteuid())
        except UnavailableError as error:
            refused.append(error)

    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "kill", lambda _: None)
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(20.0)
        is_done = not thread.is_alive()
    os.kill(int(number.read_text()), signal.SIGKILL)
    thread.join(LIMIT_S)
    assert is_done
    assert len(refused) == 1


def test_when_a_process_was_started() -> None:
    assert process_start_ticks(os.getpid()) == process_start_ticks(os.getpid())
    with subprocess.Popen(["true"]) as process:
        until(lambda: process_start_ticks(process.pid) is None)
    assert process_start_ticks(process.pid) is None


def test_without_free_descriptors_a_process_is_not_taken_for_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def exhausted(path: Path) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    monkeypatch.setattr(Path, "read_bytes", exhausted)
    with pytest.raises(OSError, match="Too many open files"):
        process_start_ticks(os.getpid())


def test_the_name_of_a_program_does_not_hide_its_start() -> None:
    fields = b" ".join([b"S", *(b"%d" % number for number in range(1, 40))])
    assert parse_start_ticks(b"7 (a ) S 1 (b)) " + fields) == 19
    assert parse_start_ticks(b"7 (a) " + fields.replace(b"S", b"Z")) is None


def test_a_program_whose_name_is_not_text_has_a_start(tmp_path: Path) -> None:
    program = os.fsencode(tmp_path) + b"/\xff\r) S\n"
    shutil.copy(b"/bin/sleep", program)
    with subprocess.Popen([program, "600"]) as process:
        try:
            start = process_start_ticks(process.pid)
        finally:
            process.kill()
    assert start is not None
    assert start >= (process_start_ticks(os.getpid()) or 0)
