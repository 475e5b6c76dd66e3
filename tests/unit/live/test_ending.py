# SPDX-License-Identifier: MIT
"""Processes are killed, and those that cannot be killed are abandoned."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from penstock.live import ending
from penstock.live.ending import Ending, end_process
from support.waiting import until


def _start(*arguments: str, **options: bool) -> subprocess.Popen[bytes]:
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, **options)  # type: ignore[call-overload, no-any-return]


def test_a_process_is_killed_and_its_pipes_are_closed() -> None:
    process = _start("sleep", "600")
    assert end_process(process) == Ending(is_abandoned=False, printed=b"")
    assert process.returncode == -9
    assert process.stdout is not None
    assert process.stdout.closed
    assert not end_process(process).is_abandoned


def test_all_that_was_printed_is_returned_and_the_group_is_killed() -> None:
    script = "sleep 600 & echo $!; exec sleep 600"
    process = _start("sh", "-c", script, start_new_session=True)
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        process.communicate(timeout=0.01)
    until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
    ended = end_process(process, with_group=True)
    assert not ended.is_abandoned
    assert ended.printed.startswith(caught.value.output or b"")
    until(lambda: not _is_living(int(ended.printed)))


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_process_that_cannot_be_killed_is_reaped_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process in state D ends long after it was killed. Nobody keeps it."""
    monkeypatch.setattr(ending, "KILL_S", 0.01)
    number = _abandoned(monkeypatch)
    assert _is_living(number)
    os.kill(number, signal.SIGKILL)

    def is_reaped() -> bool:
        subprocess.run(["true"], check=True)
        return not Path(f"/proc/{number}").exists()

    until(is_reaped)


def _abandoned(monkeypatch: pytest.MonkeyPatch) -> int:
    process = _start("sleep", "600")
    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "kill", lambda _: None)
        assert end_process(process).is_abandoned
    return process.pid


def _is_living(number: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
