# SPDX-License-Identifier: MIT
"""Every console session of the documentation is run, and prints what the page says."""

import re
from pathlib import Path

import pytest

from support.sessions import ROOT, Session, fits, missing, run_session, sessions

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
SESSIONS = [
    session
    for page in PAGES
    if "_build" not in page.parts
    for session in sessions(page)
]


@pytest.mark.parametrize("session", SESSIONS, ids=str)
def test_session(session: Session, tmp_path: Path) -> None:
    reason = session.marks.get("not run")
    if reason is None:
        reason = missing(session)
    if reason is not None:
        pytest.skip(reason)
    run_session(session, tmp_path)


@pytest.mark.parametrize("session", SESSIONS, ids=str)
def test_session_is_marked_in_a_way_that_is_understood(session: Session) -> None:
    assert set(session.marks) <= {"not run", "needs", "numbers", "exact"}
    assert session.marks.get("not run", "a reason"), "why is it not run?"
    assert session.steps, "a session has commands ($ ...); use `sh` or `text`"


def test_most_sessions_are_run() -> None:
    run = [session for session in SESSIONS if "not run" not in session.marks]
    assert len(run) >= 10
    assert len(run) >= len(SESSIONS) / 2


def test_a_block_may_continue_the_session_before_it() -> None:
    first, *others = sessions(ROOT / "docs" / "tutorial" / "first-live-run.md")
    assert not others
    commands = [step.command for step in first.steps]
    assert commands[0].startswith("penstock serve")
    assert "penstock ctl off" in commands


def test_a_session_is_read_from_a_page(tmp_path: Path) -> None:
    page = ROOT / "README.md"
    first = sessions(page)[0]
    assert first.page == "README.md"
    assert re.match(
        r"\s*(<!--|```console)", page.read_text().splitlines()[first.line - 1]
    )


@pytest.mark.parametrize(
    ("output", "shown", "vary", "exact"),
    [
        ("a\nb\n", "a\nb\n", False, ""),
        ("a\nb\nc\nd\n", "a\n...\nd\n", False, ""),
        ("a\nb\n", "...\n", False, ""),
        ("drawn 3.9 MiB/s  90%\n", "drawn 12 KiB/s   5%\n", True, ""),
        (
            "granted 4 MiB/s, drawn 3 B\n",
            "granted 4 MiB/s, drawn 9 s\n",
            True,
            "4 MiB/s",
        ),
    ],
)
def test_output_that_fits(output: str, shown: str, vary: bool, exact: str) -> None:
    assert fits(output, shown, vary=vary, exact=exact)


@pytest.mark.parametrize(
    ("output", "shown", "vary", "exact"),
    [
        ("a\nb\n", "a\n", False, ""),
        ("a 1\n", "a 2\n", False, ""),
        ("a\nc\n", "a\n...\nd\n", False, ""),
        ("yield 0.5\n", "lost 0.5\n", True, ""),
        ("granted 3 MiB/s\n", "granted 4 MiB/s\n", True, "4 MiB/s"),
    ],
)
def test_output_that_differs(output: str, shown: str, vary: bool, exact: str) -> None:
    assert not fits(output, shown, vary=vary, exact=exact)
