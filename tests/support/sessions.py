# SPDX-License-Identifier: MIT
"""Console sessions of the documentation: find them, run them, compare the output.

A session is a ``console`` block. Lines that begin with ``$ `` are commands, which run
in one shell, one after the other; what follows is their standard output. A line
``...`` stands for any lines. A comment directly before the block says what is special:

    <!-- session: not run: takes minutes -->
    <!-- session: needs: gcc | numbers: vary | exact: 4 MiB/s -->
    <!-- session: continues -->

With ``numbers: vary`` any number stands for any other, and a command that changes
nothing is repeated until its output fits. The phrase after ``exact`` must appear as
often as shown. A block that ``continues`` runs in the shell of the block before it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.workloads.darshan_log import check_reader

__all__ = ["ROOT", "Session", "Step", "fits", "missing", "run_session", "sessions"]

ROOT: Final = Path(__file__).parents[2]

_BLOCK: Final = re.compile(
    r"(?:<!-- session: (?P<marks>.*?) -->\n+)?"
    r"^(?P<indent> *)```console\n(?P<text>.*?)^ *```$",
    flags=re.DOTALL | re.MULTILINE,
)
_QUANTITY: Final = re.compile(
    r"\d+(?:\.\d+)?(?:e-?\d+)?(?: ?(?:[KMG]iB|B|ns|us|ms|s|min|h|d)\b(?:/s)?)?%?"
)
#: Commands that change nothing: they are repeated until their output fits.
_LOOKS: Final = ("penstock ctl status", "penstock ctl explain", "penstock top --once")
_PATIENCE_S: Final = 30.0
_END: Final = "--- end of the output of command"


@dataclass(frozen=True)
class Step:
    """A command and the output that the page shows."""

    command: str
    shown: str

    @property
    def in_background(self) -> bool:
        """True if the shell does not wait for it."""
        return self.command.endswith("&")


@dataclass(frozen=True)
class Session:
    """A console block of a page, with the blocks that continue it."""

    page: str
    line: int
    marks: dict[str, str]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def sessions(path: Path) -> list[Session]:
    """Return the sessions of a Markdown file, in order."""
    text = path.read_text()
    blocks: list[Session] = []
    for block in _BLOCK.finditer(text):
        marks = _marks(block["marks"] or "")
        steps = tuple(_steps(_dedented(block["text"], len(block["indent"]))))
        if "continues" in marks:
            blocks[-1] = replace(blocks[-1], steps=blocks[-1].steps + steps)
        else:
            line = text.count("\n", 0, block.start()) + 1
            blocks.append(Session(str(path.relative_to(ROOT)), line, marks, steps))
    return blocks


def _marks(text: str) -> dict[str, str]:
    parts = (part.partition(":") for part in text.split("|") if part.strip())
    return {name.strip(): value.strip() for name, _, value in parts}


def _dedented(text: str, indent: int) -> str:
    return "".join(line[indent:] or "\n" for line in text.splitlines(keepends=True))


def _steps(text: str) -> list[Step]:
    """Return the commands of a block; a backslash continues a command."""
    steps = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
        steps.append(Step(command.rstrip(), shown))
    return steps


def missing(session: Session) -> str | None:
    """Return why a session cannot run here; None if it can."""
    for need in session.marks.get("needs", "").split(","):
        match need.strip():
            case "":
                continue
            case "fuse" if not Path("/dev/fuse").exists() or os.geteuid() != 0:
                return "needs FUSE, and root"
            case "gcc" if shutil.which("gcc") is None:
                return "needs gcc"
            case "darshan" if not _reads_darshan():
                return "needs the extra import, with the C library of Darshan"
            case "fuse" | "gcc" | "darshan":
                continue
            case other:
                raise ValueError(f"{session}: unknown need {other!r}")
    return None


def _reads_darshan() -> bool:
    try:
        check_reader()
    except InputError:
        return False
    return True


def fits(output: str, shown: str, *, vary: bool = False, exact: str = "") -> bool:
    """Return True if the output of a command is that of the page."""
    if exact and output.count(exact) != shown.count(exact):
        return False
    if vary:
        output, shown = _without_numbers(output), _without_numbers(shown)
    pattern = ".*".join(
        re.escape(part) for part in re.split(r"^\.\.\.\n", shown, flags=re.M)
    )
    return re.fullmatch(pattern, output, flags=re.DOTALL) is not None


def _without_numbers(text: str) -> str:
    return re.sub(r" +(?=\n|$)", "", re.sub(r" +", " ", _QUANTITY.sub("#", text)))


def run_session(session: Session, folder: Path) -> None:
    """Run all commands in an empty folder; raise `AssertionError` if one differs."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "scripts").symlink_to(ROOT / "scripts")
    with _Shell(folder) as shell:
        for step in session.steps:
            _check(shell, session, step)


def _check(shell: _Shell, session: Session, step: Step) -> None:
    vary, exact = "numbers" in session.marks, session.marks.get("exact", "")
    output = shell.run(step.command)
    deadline = time.monotonic() + _PATIENCE_S
    while vary and step.command.startswith(_LOOKS) and time.monotonic() < deadline:
        if fits(output, step.shown, vary=True, exact=exact):
            return
        time.sleep(0.1)
        output = shell.run(step.command)
    if step.in_background:
        shell.wait_for(step.command)
    assert fits(output, step.shown, vary=vary, exact=exact), (
        f"{session}: $ {step.command}\n--- shown\n{step.shown}--- printed\n{output}"
    )


class _Shell:
    """A shell that runs one command after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / ".stderr"

    def __enter__(self) -> _Shell:
        programs = str(Path(sys.executable).parent)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-m"],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=kept
                | {
                    "PATH": f"{programs}:{os.environ['PATH']}",
                    "PENSTOCK_FOLDER": str(self._folder / ".run"),
                    "PENSTOCK_NODE": "laptop",
                    "COLUMNS": "80",
                },
            )
        return self

    def __exit__(self, *_: object) -> None:
        # Every background command is a process group of its own (bash -m).
        assert self._process.stdin is not None
        self._process.stdin.write("kill $(jobs -p) 2>/dev/null; wait\n")
        self._process.stdin.close()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def run(self, command: str) -> str:
        """Return the standard output of a command that succeeds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\necho {_END} $?\n")
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            before, end, status = line.partition(_END)
            lines.append(before)
            if end:
                assert self._may_fail(command) or status.strip() == "0", (
                    f"$ {command}\nstatus {status}{self._log.read_text()}"
                )
                return "".join(lines)
        raise AssertionError(f"$ {command}\nended the shell")

    @staticmethod
    def _may_fail(command: str) -> bool:
        """Return True if a command is repeated, because the daemon may still start."""
        return command.startswith(_LOOKS)

    def wait_for(self, command: str) -> None:
        """Wait until a daemon answers, or a job has begun its I/O."""
        job = re.search(r"penstock run .*--job[ =](\S+)", command)
        if job is None and "penstock serve" not in command:
            return
        wanted = f'"job": "{job[1]}"' if job else '"policy"'
        deadline = time.monotonic() + _PATIENCE_S
        while wanted not in self.run("penstock ctl status --json -"):
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.1)
