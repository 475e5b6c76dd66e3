# SPDX-License-Identifier: MIT
"""Which users are trusted, and when processes started."""

from __future__ import annotations

import errno
import os
import pwd
import subprocess
from pathlib import Path

import pytest

from penstock.live.wire.identity import (
    is_operator,
    parse_start_ticks,
    process_start_ticks,
    user_id,
    user_name,
)
from support.waiting import until


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


def test_when_a_process_was_started() -> None:
    assert process_start_ticks(os.getpid()) == process_start_ticks(os.getpid())
    with subprocess.Popen(["true"]) as process:
        until(lambda: process_start_ticks(process.pid) is None)
    assert process_start_ticks(process.pid) is None


def test_without_free_descriptors_a_process_is_not_taken_for_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def exhausted(path: Path) -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    monkeypatch.setattr(Path, "read_text", exhausted)
    with pytest.raises(OSError, match="Too many open files"):
        process_start_ticks(os.getpid())


def test_the_name_of_a_program_does_not_hide_its_start() -> None:
    fields = " ".join(["S", *map(str, range(1, 40))])
    assert parse_start_ticks(f"7 (a ) S 1 (b)) {fields}") == 19
    assert parse_start_ticks(f"7 (a) {fields.replace('S', 'Z')}") is None
