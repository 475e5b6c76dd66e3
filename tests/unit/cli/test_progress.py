# SPDX-License-Identifier: MIT
"""The progress bar: silent unless standard error is a terminal."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from penstock.cli import progress
from penstock.cli.progress import progress_bar, said_if_slow
from penstock.policies import get_policy
from penstock.policies.policy import Policy


class _Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def warmed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Policy, ...]]:
    """Record which policies are compiled, and compile nothing."""
    calls: list[tuple[Policy, ...]] = []
    monkeypatch.setattr("penstock.sim.warm_up", lambda *p: calls.append(p))
    return calls


def test_the_policies_are_compiled_before_the_work_begins(
    warmed: list[tuple[Policy, ...]],
) -> None:
    policy = get_policy("fcfs")
    with progress_bar(policy):
        assert warmed == [(policy,)]


@pytest.mark.usefixtures("warmed")
def test_a_pipe_gets_the_messages_and_no_bar(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress_bar() as show:
        show(1.0, 2.0, "")
        show(2.0, 2.0, "instance 2: [bold] is no markup")
    assert capsys.readouterr() == ("", "instance 2: [bold] is no markup\n")


@pytest.mark.usefixtures("warmed")
def test_a_long_message_stays_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as show:
        show(1.0, 2.0, message := "word " * 100 + "end")
    assert capsys.readouterr().err == f"{message}\n"


@pytest.mark.usefixtures("warmed")
def test_a_terminal_shows_the_percentage_and_is_cleared_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with progress_bar() as show:
        show(3.0, 4.0, "")
    # rich draws the last state when it stops, then erases the line (transient).
    text = terminal.getvalue()
    assert "simulating" in text
    assert "75 %" in text
    assert text.rindex("\x1b[2K") > text.rindex("75 %")
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("warmed")
def test_the_bar_is_removed_if_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(ZeroDivisionError), progress_bar():
        raise ZeroDivisionError
    # The cursor was hidden for the bar; it must be visible again.
    text = terminal.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


@pytest.mark.usefixtures("warmed")
def test_a_next_part_of_the_work_begins_at_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar() as show:
        show(90.0, 100.0, "first part")
        show(1.0, 50.0, "second part")
    assert "  2 %" in terminal.getvalue()


class _Pipe(io.StringIO):
    """A stream that tells when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def test_slow_work_is_announced_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = _Pipe()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(progress, "_SILENT_S", 0.0)
    with said_if_slow("compiling"):
        assert pipe.written.wait(60.0)
    assert pipe.getvalue() == "penstock: compiling\n"


@pytest.mark.parametrize(("stream", "silent_s"), [(_Pipe, 3600.0), (_Terminal, 0.0)])
def test_fast_work_and_a_terminal_need_no_line(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], silent_s: float
) -> None:
    monkeypatch.setattr(sys, "stderr", written := stream())
    monkeypatch.setattr(progress, "_SILENT_S", silent_s)
    before = threading.active_count()
    with said_if_slow("compiling"):
        pass
    assert threading.active_count() == before
    assert written.getvalue() == ""
