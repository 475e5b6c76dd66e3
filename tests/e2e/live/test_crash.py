# SPDX-License-Identifier: MIT
"""Killed at any moment, nothing that was acknowledged is lost, and nothing is torn.

A program writes to staged files and is killed; so are drainers, while it runs and
afterwards. Then all is drained. Every call that had answered must be in the files as if
there had been no staging; the one that had not answered may be there, byte by byte, or
not. That is more than is promised for what was neither synced nor closed: a kill of
processes does not take memory.

Every trial prints its seed. ``PENSTOCK_CRASH_SEED`` repeats one.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.live.drain import State, drain_folder
from penstock.live.drainers import drain_beside
from penstock.live.page import LEASE_MAX_S, Page
from support.jobs import LIMIT_S, compiled
from support.stages import Stage

FILES = ("a", "b")
TURNS = 120
DATA_BYTES = 40000
_MASK = 2**64 - 1


# --- What the program does ------------------------------------------------------------


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


@dataclass
class File:
    """What a file must hold; `other` where the last call had not answered."""

    content: bytearray = field(default_factory=bytearray)
    other: bytearray | None = None
    place: int = 0
    is_open: bool = False

    def put(self, at: int, data: bytes) -> None:
        """Write, and fill a hole with zeros."""
        missing = at + len(data) - len(self.content)
        self.content += bytes(max(0, missing))
        self.content[at : at + len(data)] = data

    def resize(self, size: int) -> None:
        """Truncate or extend."""
        del self.content[size:]
        self.content += bytes(size - len(self.content))


def _data_of(turn: int, size: int) -> bytes:
    period = bytes((turn * 31 + i * 7 + 1) % 256 for i in range(256))
    return (period * (size // 256 + 1))[:size]


def _act(draws: Draws, turn: int, file: File, answer: int | None) -> None:
    """Do to the model what a call with this answer did; None: it may have succeeded."""
    kind, size, place = draws(16), 1 + draws(DATA_BYTES - 1), draws(200000)
    if not file.is_open:
        kind = 15
    if answer is not None and answer < 0:
        return
    done = size if answer is None else answer
    if kind < 8:
        file.put(file.place, _data_of(turn, done))
        file.place += done
    elif kind < 12:
        file.put(place, _data_of(turn, done))
    elif kind == 12:
        file.place = place
    elif kind == 13:
        file.resize(place)
    elif kind == 15:
        file.place, file.is_open = 0, True


def _expected(seed: int, answers: list[int]) -> list[File]:
    """Return the files after these answers, and where one more call may show."""
    draws, made = Draws(seed), [File() for _ in FILES]
    for turn, answer in enumerate([*answers, None]):
        file = made[draws(len(FILES))]
        before = bytearray(file.content)
        _act(draws, turn, file, answer)
        if answer is None:
            file.content, file.other = before, file.content
    return made


def _agrees(found: bytes, file: File) -> bool:
    """Say whether every byte is that of the content or of the other."""
    if found == file.content or file.other is None:
        return found == file.content
    sizes = sorted((len(file.content), len(file.other)))
    if not sizes[0] <= len(found) <= sizes[1]:
        return False
    old = bytes(file.content).ljust(len(found), b"\0")
    new = bytes(file.other).ljust(len(found), b"\0")
    return all(byte in pair for byte, *pair in zip(found, old, new, strict=False))


# --- Trials ---------------------------------------------------------------------------


@pytest.fixture(scope="session")
def crasher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program of ``crasher.c``."""
    return compiled(tmp_path_factory.mktemp("crasher") / "crasher", "crasher.c")


def _read_answers(program: subprocess.Popen[bytes], wanted: int) -> bytes:
    """Read answers until there are enough, or the program ends or falls silent."""
    assert program.stdout is not None
    told = b""
    while len(told) < 8 * wanted:
        if not select.select([program.stdout], [], [], LIMIT_S)[0]:
            break
        piece = os.read(program.stdout.fileno(), 8 * wanted - len(told))
        if not piece:
            break
        told += piece
    return told


def _kill(program: subprocess.Popen[bytes], told: bytes) -> list[int]:
    program.kill()
    assert program.stdin is not None
    assert program.stdout is not None
    told += program.stdout.read()
    program.stdin.close()
    program.stdout.close()
    program.wait(timeout=LIMIT_S)
    return [word for (word,) in struct.iter_unpack("q", told[: len(told) // 8 * 8])]


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
    """Drain all the time, or not, in a process that is killed in the end."""
    kind = chance.choice(["none", "by hand", "beside"])
    with contextlib.ExitStack() as stack:
        if kind == "by hand":
            stack.callback(_end, _in_child(lambda: _drain_forever(stage)))
        elif kind == "beside":
            ours = (os.geteuid(), os.getegid())
            process = drain_beside(page.path, stage.journals, *ours)
            stack.callback(process.wait, LIMIT_S)
            stack.callback(process.kill)
            time.sleep(0.05)  # It takes a moment to start.
        yield
        time.sleep(chance.random() * 0.003)


def _drain_forever(stage: Stage) -> None:
    while True:
        drain_folder(stage.journals)


def _drain_with_accidents(stage: Stage, chance: random.Random) -> None:
    """Drain; some drainers are killed on the way."""
    for _ in range(chance.choice([0, 0, 1, 3])):
        child = _in_child(stage.drain)
        time.sleep(chance.random() * 0.004)
        _end(child)
    for found in stage.drain():
        assert found.state is State.DRAINED, found


@contextlib.contextmanager
def _page(stage: Stage, chance: random.Random) -> Iterator[Page]:
    """Make a page, sometimes with a limit."""
    with Page.create(stage.folder.parent / f"{chance.random()}.page") as page:
        page.renew(LEASE_MAX_S)
        page.grant(chance.choice([math.inf, 50e6]))
        yield page


def _trial(stage: Stage, crasher: Path, seed: int, *, on_disk: bool) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    capacity = chance.choice([64 << 10, 256 << 10, 64 << 20])
    wanted = chance.randrange(TURNS + 1)
    durable = chance.choice(["file", "journal"]) if on_disk else "file"
    with _page(stage, chance) as page, _drainers(stage, chance, page):
        environment = stage.environment(capacity, page=page.path, durable=durable)
        program = stage.start(*(crasher, seed, TURNS, *FILES), environment=environment)
        told = _read_answers(program, wanted)
        time.sleep(chance.random() * 0.002)
        answers = _kill(program, told)
    _drain_with_accidents(stage, chance)
    _check(stage, seed, answers)


def _check(stage: Stage, seed: int, answers: list[int]) -> None:
    """Compare the files with what must be in them; nothing is left to be drained."""
    for name, file in zip(FILES, _expected(seed, answers), strict=True):
        path = stage.folder / name
        found = path.read_bytes() if path.exists() else b""
        assert _agrees(found, file), f"seed {seed}: {name} after {len(answers)} calls"
    assert stage.left_over() == []
    assert stage.drain() == []


def _seeds(first: int, count: int) -> list[int]:
    asked = os.environ.get("PENSTOCK_CRASH_SEED")
    return [int(asked)] if asked else list(range(first, first + count))


@pytest.fixture
def memory_stage(tmp_path: Path) -> Iterator[Stage]:
    """Return a folder whose files are staged in memory."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - where memory is
        pytest.skip("needs /dev/shm")
    journals = Path("/dev/shm") / f"penstock-test-{os.getpid()}-{time.monotonic_ns()}"  # noqa: S108
    journals.mkdir(mode=0o700)
    made = Stage(tmp_path / "staged", journals)
    made.folder.mkdir()
    yield made
    shutil.rmtree(journals)


def _trials(
    stage: Stage, crasher: Path, seeds: list[int], *, on_disk: bool = False
) -> None:
    for seed in seeds:
        stage.empty()
        _trial(stage, crasher, seed, on_disk=on_disk)


def test_nothing_is_lost_by_kills(memory_stage: Stage, crasher: Path) -> None:
    _trials(memory_stage, crasher, _seeds(1, 40))


def test_nothing_is_lost_by_kills_with_journals_on_disk(
    stage: Stage, crasher: Path
) -> None:
    _trials(stage, crasher, _seeds(101, 10), on_disk=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_nothing_is_lost_by_a_thousand_kills(
    memory_stage: Stage, crasher: Path, part: int
) -> None:
    _trials(memory_stage, crasher, _seeds(1000 + 100 * part, 100))


# --- A kill at a certain call ---------------------------------------------------------

#: What the library calls on the way of a record, and of a journal.
CALLS = ("pwritev", "fcntl", "lseek", "ftruncate", "close", "openat", "renameat2")
CALLS += ("unlinkat", "fallocate", "munmap", "readlinkat", "rt_sigprocmask")
FEW_TURNS = 30


def _killed_at(stage: Stage, crasher: Path, call: str, when: int, seed: int) -> bool:
    """Kill the program when it makes a call for the n-th time; False: it made fewer."""
    stage.empty()
    small = random.Random(f"{call}{when}").random() < 0.5
    environment = stage.environment(64 << 10 if small else 64 << 20)
    shown = {key: environment[key] for key in environment if "PENSTOCK" in key}
    shown["LD_PRELOAD"] = environment["LD_PRELOAD"]
    done = subprocess.run(
        [
            *("strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}"),
            *("-e", f"inject={call}:signal=KILL:when={when}"),
            *(word for key in shown for word in ("-E", f"{key}={shown[key]}")),
            *(crasher, str(seed), str(FEW_TURNS), *FILES),
        ],
        cwd=stage.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
        timeout=LIMIT_S,
    )
    whole = done.stdout[: len(done.stdout) // 8 * 8]
    stage.drain()
    _check(stage, seed, [word for (word,) in struct.iter_unpack("q", whole)])
    assert done.returncode in (0, -signal.SIGKILL)
    return done.returncode != 0


@pytest.mark.parametrize("call", CALLS)
def test_nothing_is_lost_by_a_kill_at_any_call(
    memory_stage: Stage, crasher: Path, call: str
) -> None:
    probe = ["strace", "-o", "/dev/null", "true"]
    if shutil.which("strace") is None or subprocess.run(probe, check=False).returncode:
        pytest.skip("needs strace, and the right to trace")
    kills, when = 0, 1
    while _killed_at(memory_stage, crasher, call, when, seed=3):
        kills += 1
        when += 1 + when // 8
    assert kills > 0 or call == "ftruncate"
