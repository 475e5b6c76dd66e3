# SPDX-License-Identifier: MIT
"""Processes are killed, and those that cannot be killed are abandoned."""

from __future__ import annotations

import subprocess

import pytest

from penstock.live.staging import ending
from penstock.live.staging.ending import end_process


def _sleep() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE)


def test_a_process_is_killed_and_its_pipes_are_closed() -> None:
    process = _sleep()
    assert end_process(process)
    assert process.returncode == -9
    assert process.stdout is not None
    assert process.stdout.closed
    assert end_process(process)


def test_a_process_that_cannot_be_killed_is_reaped_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process in state D ends long after it was killed."""
    monkeypatch.setattr(ending, "KILL_S", 0.01)
    process = _sleep()
    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "kill", lambda _: None)
        assert not end_process(process)
    assert process in ending._ABANDONED
    process.kill()
    process.wait(120)
    assert end_process(_ended())
    assert process not in ending._ABANDONED


def _ended() -> subprocess.Popen[bytes]:
    process = _sleep()
    process.kill()
    process.wait(120)
    return process
