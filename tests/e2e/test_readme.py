# SPDX-License-Identifier: MIT
"""The README is short and complete; `test_sessions.py` runs its sessions."""

import re
from pathlib import Path

from support.sessions import sessions

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_it_shows_simulation_and_live_control() -> None:
    commands = [
        step.command
        for session in sessions(ROOT / "README.md")
        if "not run" not in session.marks
        for step in session.steps
    ]
    assert len(commands) >= 5
    for start in ("penstock compare", "penstock place"):
        assert any(command.startswith(start) for command in commands), start


def test_commands_to_set_up_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make ([a-z-]+)", README, flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150
