# SPDX-License-Identifier: MIT
"""Kill programs and drainers at any moment: no acknowledged byte is lost or torn.

A program writes to staged files and is killed; so are drainers, while it runs and
afterwards. Then all is drained. Every call that had answered must be in the files as if
there had been no staging; the one that had not answered may be there, byte by byte, or
not. That is more than is promised for what was neither synced nor closed: a kill of
processes does not take memory.
"""

from __future__ import annotations

import random
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.live.staging.drain import JournalState, drain_folder
from penstock.native.files import shim_path
from support.crashes import (
    FILES,
    Draws,
    answers_in,
    data_of,
    drain_with_accidents,
    killed,
    killed_while_moved,
    seeds,
)
from support.journals import HandMadeJournal, applied
from support.stages import Stage
from support.waiting import LIMIT_S


@dataclass
class File:
    """The expected content; `other` is the content if the last call took effect."""

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


def _act(draws: Draws, turn: int, file: File, answer: int | None) -> None:
    """Apply a call to the model; answer None: the call may have succeeded."""
    kind, size, place = draws.act(is_open=file.is_open)
    if answer is not None and answer < 0:
        return
    done = size if answer is None else answer
    if kind < 8:
        file.put(file.place, data_of(turn, done))
        file.place += done
    elif kind < 12:
        file.put(place, data_of(turn, done))
    elif kind == 12:
        file.place = place
    elif kind == 13:
        file.resize(place)
    elif kind == 15:
        file.place, file.is_open = 0, True


def _expected(seed: int, answers: list[int]) -> list[File]:
    """Return the files after these answers, and after one more call that may count."""
    draws, made = Draws(seed), [File() for _ in FILES]
    for turn, answer in enumerate([*answers, None]):
        file = made[draws(len(FILES))]
        before = bytearray(file.content)
        _act(draws, turn, file, answer)
        if answer is None:
            file.content, file.other = before, file.content
    return made


def _agrees(data: bytes, file: File) -> bool:
    """Return True if every byte is that of the content or of the alternative."""
    if data == file.content or file.other is None:
        return data == file.content
    sizes = sorted((len(file.content), len(file.other)))
    if not sizes[0] <= len(data) <= sizes[1]:
        return False
    old = bytes(file.content).ljust(len(data), b"\0")
    new = bytes(file.other).ljust(len(data), b"\0")
    return all(byte in pair for byte, *pair in zip(data, old, new, strict=False))


# --- Trials ---------------------------------------------------------------------------


def _trial(stage: Stage, crasher: Path, seed: int, *, on_disk: bool) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    durable = chance.choice(["file", "journal"]) if on_disk else "file"
    answers = killed(stage, crasher, seed, chance, durable=durable)
    drain_with_accidents(stage, chance)
    for report in stage.drain():
        assert report.state is JournalState.DRAINED, report
    _check(stage, seed, answers)


def _check(stage: Stage, seed: int, answers: list[int]) -> None:
    """Check the content of the files, and that no journal is left."""
    for name, file in zip(FILES, _expected(seed, answers), strict=True):
        path = stage.folder / name
        data = path.read_bytes() if path.exists() else b""
        assert _agrees(data, file), f"seed {seed}: {name} after {len(answers)} calls"
    assert stage.left_over() == []
    assert stage.drain() == []


def _trials(
    stage: Stage, crasher: Path, seeds: list[int], *, on_disk: bool = False
) -> None:
    for seed in seeds:
        stage.empty()
        _trial(stage, crasher, seed, on_disk=on_disk)


def test_nothing_is_lost_by_kills(memory_stage: Stage, crasher: Path) -> None:
    _trials(memory_stage, crasher, seeds(1, 40))


def test_nothing_is_lost_by_kills_with_journals_on_disk(
    stage: Stage, crasher: Path
) -> None:
    _trials(stage, crasher, seeds(101, 10), on_disk=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_nothing_is_lost_by_a_thousand_kills(
    memory_stage: Stage, crasher: Path, part: int
) -> None:
    _trials(memory_stage, crasher, seeds(1000 + 100 * part, 100))


# --- Redirected files -----------------------------------------------------------------


def _redirected_trials(
    stage: Stage, crasher: Path, seeds: list[int], *, on_disk: bool = False
) -> int:
    """Kill programs while their storage targets change; return how often parts were."""
    trials_with_parts = 0
    for seed in seeds:
        print(f"seed {seed}")
        stage.empty()
        chance = random.Random(seed)
        durable = chance.choice(["file", "journal"]) if on_disk else "file"
        answers, parts = killed_while_moved(
            stage, crasher, seed, chance, durable=durable
        )
        trials_with_parts += parts > 0
        drain_with_accidents(stage, chance)
        for report in stage.drain():
            assert report.state is JournalState.DRAINED, report
        _check(stage, seed, answers)
        assert list((stage.folder.parent / "parts").glob("*/.*")) == []
    return trials_with_parts


def test_nothing_is_lost_by_kills_of_redirected_streams(
    memory_stage: Stage, crasher: Path
) -> None:
    assert _redirected_trials(memory_stage, crasher, seeds(1, 40)) > 10


def test_nothing_is_lost_by_kills_of_redirected_streams_with_journals_on_disk(
    stage: Stage, crasher: Path
) -> None:
    assert _redirected_trials(stage, crasher, seeds(101, 10), on_disk=True) > 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(7))
def test_nothing_is_lost_by_many_kills_of_redirected_streams(
    memory_stage: Stage, crasher: Path, part: int
) -> None:
    _redirected_trials(memory_stage, crasher, seeds(1000 + 100 * part, 100))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_nothing_is_lost_by_many_kills_of_redirected_streams_with_journals_on_disk(
    stage: Stage, crasher: Path, part: int
) -> None:
    _redirected_trials(stage, crasher, seeds(1700 + 100 * part, 100), on_disk=True)


# --- A kill at a certain call ---------------------------------------------------------

#: System calls of the library while it writes a record or a journal.
CALLS: tuple[str, ...] = (
    "pwritev",
    "fcntl",
    "lseek",
    "ftruncate",
    "close",
    "openat",
    "renameat2",
)
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
    stage.drain()
    _check(stage, seed, answers_in(done.stdout))
    assert done.returncode in (0, -signal.SIGKILL)
    return done.returncode != 0


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("call", CALLS)
def test_nothing_is_lost_by_a_kill_at_any_call(
    memory_stage: Stage, crasher: Path, call: str
) -> None:
    kills, when = 0, 1
    while _killed_at(memory_stage, crasher, call, when, seed=3):
        kills += 1
        when += 1 + when // 8
    assert kills > 0 or call == "ftruncate"


#: System calls of a process that drains a journal by name.
DRAIN_CALLS: tuple[str, ...] = (
    "openat",
    "fcntl",
    "pwritev",
    "fdatasync",
    "unlinkat",
    "munmap",
)
DRAIN_CALLS += ("mmap", "read", "write", "close", "newfstatat", "fstat")


def _drainer_killed_at(journals: Path, strace: str, call: str, when: int) -> bool:
    """Kill a drainer when it makes a call for the n-th time; False: it made fewer."""
    return _drain_with(journals, strace, call, f"signal=KILL:when={when}")


def _drain_with(journals: Path, strace: str, call: str, what: str) -> bool:
    """Let something happen to a call of a drainer; return whether it was killed."""
    variables = {
        "LD_PRELOAD": str(shim_path()),
        "PENSTOCK_STAGING": str(journals),
        "PENSTOCK_DRAIN": "30000",
        "PENSTOCK_DRAIN_NAMED": "1",
    }
    done = subprocess.run(
        [
            *(strace, "-qq", "-o", "/dev/null", "-e", f"trace={call}"),
            *("-e", f"inject={call}:{what}"),
            *(word for key in variables for word in ("-E", f"{key}={variables[key]}")),
            "true",
        ],
        input=b"1-2.journal\0",
        capture_output=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode in (0, -signal.SIGKILL)
    return done.returncode != 0


@pytest.mark.parametrize("call", DRAIN_CALLS)
def test_nothing_is_lost_by_a_kill_of_a_drainer_at_any_call(
    tmp_path: Path, strace: str, call: str
) -> None:
    """Some kills come before the journal is opened: the loader makes calls too."""
    kills, when = 0, 1
    while True:
        made = HandMadeJournal(tmp_path / f"{when}", checked=True)
        made.change(durable=1)
        writes = [(place * 700, bytes([place + 1]) * 1000) for place in range(3)]
        for offset, data in writes:
            made.append(offset, data)
        if not _drainer_killed_at(made.folder, strace, call, when):
            break
        reports = drain_folder(made.folder)
        assert [report.state for report in reports] in ([], [JournalState.DRAINED])
        assert made.file.read_bytes() == applied(writes)
        assert made.left_over() == []
        kills, when = kills + 1, when + 1
    assert kills > 0
    assert made.file.read_bytes() == applied(writes)
    assert made.left_over() == []


#: System calls of a process that merges a part by name.
MERGE_CALLS = ("statx", "fsync", "fcntl", "pwritev", "openat", "close", "unlinkat")


def _merge_killed_at(
    folder: Path, strace: str, call: str, when: int
) -> HandMadeJournal:
    """Kill a merge when it makes a call for the n-th time."""
    made = HandMadeJournal(folder)
    for place in range(3):
        made.append(place * 700, bytes([place + 1]) * 1000)
    (folder / "target").mkdir()
    made.move_to_part(folder / "target" / "part")
    _drainer_killed_at(made.folder, strace, call, when)
    return made


@pytest.mark.parametrize("call", MERGE_CALLS)
def test_merges_that_are_killed_at_any_call_lose_and_overwrite_nothing(
    tmp_path: Path, strace: str, call: str
) -> None:
    """The part is away after the kill; while it is, the file is written, or not."""
    kept, when = 0, 1
    while when < 80:
        for newer in (b"", b"newer" * 600):
            folder = tmp_path / f"{when}-{len(newer)}"
            made = _merge_killed_at(folder, strace, call, when)
            (folder / "target").rename(folder / "away")
            drain_folder(made.folder)
            was_merged = made.left_over() == []
            if newer:
                made.file.write_bytes(newer)
            (folder / "away").rename(folder / "target")
            reports = drain_folder(made.folder)
            if was_merged or not newer:
                assert {each.state for each in reports} <= {JournalState.DRAINED}
                assert made.left_over() == []
            else:
                assert [each.state for each in reports] == [JournalState.KEPT]
                assert made.path.name not in made.left_over()
                kept += 1
            assert made.file.read_bytes() == (newer or applied(made.writes))
        when += 1 + when // 4
    assert kept > 0 or call == "unlinkat"


@pytest.mark.parametrize(
    ("call", "error"), [("pwritev", "ENOSPC"), ("pwritev", "EDQUOT"), ("fsync", "EIO")]
)
def test_a_merge_that_stops_never_overwrites_what_is_written_then(
    tmp_path: Path, strace: str, call: str, error: str
) -> None:
    """Also a file whose time of change cannot be found out is not merged into."""
    for newer in (b"", b"newer" * 600):
        made = HandMadeJournal(tmp_path / f"{len(newer)}")
        for place in range(3):
            made.append(place * 700, bytes([place + 1]) * 1000)
        made.move_to_part(tmp_path / f"{len(newer)}" / "part")
        assert not _drain_with(made.folder, strace, call, f"error={error}")
        assert made.file.read_bytes() == b""
        assert made.left_over() == [made.path.name]
        if newer:
            made.file.write_bytes(newer)
        (report,) = drain_folder(made.folder)
        state = JournalState.KEPT if newer else JournalState.DRAINED
        assert report.state == state
        assert made.file.read_bytes() == (newer or applied(made.writes))
