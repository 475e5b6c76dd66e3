# SPDX-License-Identifier: MIT
"""The README is short and complete; `test_sessions.py` runs its sessions."""

import re
import subprocess
import sys
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
    live = ("penstock serve", "penstock run", "penstock ctl status")
    for start in ("penstock compare", *live):
        assert any(command.startswith(start) for command in commands), start


def test_its_python_example_prints_what_it_shows() -> None:
    example = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    assert example
    done = subprocess.run(
        [sys.executable, "-c", example[1]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == example[2]


def test_commands_to_set_up_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make ([a-z-]+)", README, flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150
