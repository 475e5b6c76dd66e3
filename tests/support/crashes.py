# SPDX-License-Identifier: MIT
"""Trials in which a program that stages and its drainers are killed.

``crasher.c`` draws what it does from a seed, and says what was answered; `Draws` draws
the same. Every trial prints its seed; ``PENSTOCK_CRASH_SEED`` repeats one.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import select
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.live.node.pages.page import LEASE_MAX_S, Page
from penstock.live.staging.drain import drain_folder
from penstock.live.staging.drain_process import NamedDrain
from penstock.live.staging.drainers import drain_beside
from support.parts import Redirected, moving
from support.stages import Stage
from support.waiting import LIMIT_S

__all__ = [
    "FILES",
    "Act",
    "Draws",
    "answers_in",
    "data_of",
    "drain_with_accidents",
    "killed",
    "killed_while_moved",
    "seeds",
]

FILES = ("a", "b")
TURNS = 120
_DATA_BYTES = 40000
_PLACES = 200000
_MASK = 2**64 - 1


class Act(NamedTuple):
    """Operations of ``crasher.c`` on an open file."""

    kind: int
    """Below 8: write; below 12: pwrite; lseek, ftruncate, fsync, close and open."""
    size: int
    place: int


class Draws:
    """The numbers that ``crasher.c`` draws."""

    def __init__(self, seed: int) -> None:
        self._state = (seed * 2654435761 + 88172645463325252) & _MASK

    def __call__(self, below: int) -> int:
        state = self._state
        state ^= state << 13 & _MASK
        state ^= state >> 7
        state ^= state << 17 & _MASK
        self._state = state
        return (state >> 11) % below

    def act(self, *, is_open: bool) -> Act:
        """Return the operation on the file that was drawn before."""
        kind, size, place = self(16), 1 + self(_DATA_BYTES - 1), self(_PLACES)
        return Act(kind if is_open else 15, size, place)


def data_of(turn: int, size: int) -> bytes:
    """Return the data that a turn writes."""
    period = bytes((turn * 31 + i * 7 + 1) % 256 for i in range(256))
    return (period * (size // 256 + 1))[:size]


# --- Kills ----------------------------------------------------------------------------


def killed(
    stage: Stage,
    crasher: Path,
    seed: int,
    chance: random.Random,
    *,
    durable: str = "file",
) -> list[int]:
    """Run the program, with or without drainers, kill it, and return its answers."""
    capacity = chance.choice([64 << 10, 256 << 10, 64 << 20])
    wanted = chance.randrange(TURNS + 1)
    with _page(stage, chance) as page, _drainers(stage, chance, page):
        environment = stage.environment(capacity, page=page.path, durable=durable)
        program = stage.start(*(crasher, seed, TURNS, *FILES), environment=environment)
        output = _read_answers(program, wanted)
        time.sleep(chance.random() * 0.002)
        return _kill(program, output)


def killed_while_moved(
    stage: Stage,
    crasher: Path,
    seed: int,
    chance: random.Random,
    *,
    durable: str = "file",
) -> tuple[list[int], int]:
    """Run the program while its storage targets change, and kill it.

    Return its answers, and the most parts that were seen at a time.
    """
    wanted = chance.randrange(TURNS + 1)
    with _page(stage, chance) as page:
        redirected = Redirected.make(stage, page)
        with moving(redirected, chance) as seen, _drainers(stage, chance, page):
            environment = redirected.environment(durable=durable)
            command = (crasher, seed, TURNS, *FILES)
            program = stage.start(*command, environment=environment)
            output = _read_answers(program, wanted)
            time.sleep(chance.random() * 0.002)
            answers = _kill(program, output)
        return answers, max(seen[0], len(redirected.parts()))


def answers_in(output: bytes) -> list[int]:
    """Return the answers that the program had written when it was killed."""
    return [word for (word,) in struct.iter_unpack("q", output[: len(output) // 8 * 8])]


def drain_with_accidents(stage: Stage, chance: random.Random) -> None:
    """Start drainers that are killed on the way."""
    for _ in range(chance.choice([0, 0, 1, 3])):
        with NamedDrain(stage.journals) as drain:
            pipe = drain._process.stdin
            assert pipe is not None
            for path in stage.journals.glob("*.journal"):
                pipe.write(os.fsencode(path.name) + b"\0")
            time.sleep(chance.random() * 0.006)


def seeds(first: int, count: int) -> list[int]:
    """Return seeds, or the one that the environment names."""
    given_seed = os.environ.get("PENSTOCK_CRASH_SEED")
    return [int(given_seed)] if given_seed else list(range(first, first + count))


def _read_answers(program: subprocess.Popen[bytes], wanted: int) -> bytes:
    """Read answers until there are enough, or the program ends or stops writing."""
    assert program.stdout is not None
    output = b""
    while len(output) < 8 * wanted:
        if not select.select([program.stdout], [], [], LIMIT_S)[0]:
            break
        piece = os.read(program.stdout.fileno(), 8 * wanted - len(output))
        if not piece:
            break
        output += piece
    return output


def _kill(program: subprocess.Popen[bytes], output: bytes) -> list[int]:
    program.kill()
    assert program.stdin is not None
    assert program.stdout is not None
    output += program.stdout.read()
    program.stdin.close()
    program.stdout.close()
    program.wait(timeout=LIMIT_S)
    return answers_in(output)


def _in_child(work: Callable[[], object]) -> int:
    """Do some work in a child that can be killed."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def _end(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@contextlib.contextmanager
def _drainers(stage: Stage, chance: random.Random, page: Page) -> Iterator[None]:
    """Run a process that drains repeatedly, if wanted, and kill it at the end."""
    kind = chance.choice(["none", "by hand", "beside"])
    with contextlib.ExitStack() as stack:
        if kind == "by hand":
            stack.callback(_end, _in_child(lambda: _drain_forever(stage)))
        elif kind == "beside":
            user_and_group = (os.geteuid(), os.getegid())
            process = drain_beside(page.path, stage.journals, *user_and_group)
            stack.callback(process.wait, LIMIT_S)
            stack.callback(process.kill)
            time.sleep(0.05)  # The process takes a moment to start.
        yield
        time.sleep(chance.random() * 0.003)


def _drain_forever(stage: Stage) -> None:
    while True:
        drain_folder(stage.journals)


@contextlib.contextmanager
def _page(stage: Stage, chance: random.Random) -> Iterator[Page]:
    """Make a page, sometimes with a limit."""
    with Page.create(stage.folder.parent / f"{chance.random()}.page") as page:
        page.renew(LEASE_MAX_S)
        page.grant(chance.choice([math.inf, 50e6]))
        yield page
