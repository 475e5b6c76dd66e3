# SPDX-License-Identifier: MIT
"""Also on a full file system, data acknowledged by fsync or close are in the file.

As in ``test_crash.py``, but drains fail with ENOSPC at any moment. What was written and
not acknowledged by fsync, close or ftruncate may be there, byte by byte, or not: the
program was told of an error, or was killed before. Afterwards there is room again; what
was not put aside is drained, and the same must hold.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from penstock.live.staging.drain import JournalState
from support.crashes import (
    FILES,
    Draws,
    data_of,
    drain_with_accidents,
    killed,
    seeds,
)
from support.stages import Stage

_ROOM = "160k"
_MUCH_ROOM = "8m"
_LARGEST = 8_000_000
"""No file is larger (bytes)."""


class Patch:
    """Bytes that may be at a place of a file."""

    def __init__(self, at: int, data: bytes) -> None:
        self.place = slice(at, at + len(data))
        self.data = np.frombuffer(data, np.uint8)
        self.holds = np.ones(len(data), bool)
        """Where they have not been overwritten for sure."""

    def forget(self, place: slice) -> None:
        """Drop this patch where other data are certain."""
        begin, end = (max(at - self.place.start, 0) for at in (place.start, place.stop))
        self.holds[begin:end] = False


@dataclass
class File:
    """What a file may hold."""

    sure: npt.NDArray[np.uint8] = field(
        default_factory=lambda: np.zeros(_LARGEST, np.uint8)
    )
    """What was acknowledged, and zeros where nothing was."""
    lost: list[Patch] = field(default_factory=list)
    """What was written without ever being acknowledged: it may be there."""
    written: list[Patch] = field(default_factory=list)
    """What was written since the last acknowledgement."""
    least: int = 0
    most: int = 0
    """The size is between these."""
    place: int = 0
    is_open: bool = False

    def write(self, at: int, data: bytes) -> None:
        """Record a write that is not yet acknowledged."""
        if data:
            self.written.append(Patch(at, data))
            self.most = max(self.most, at + len(data))

    def acknowledge(self) -> None:
        """Record that all written data are in the file."""
        for patch in self.written:
            self.sure[patch.place] = patch.data
            self.least = max(self.least, patch.place.stop)
            for old in self.lost:
                old.forget(patch.place)
        self.written.clear()

    def doubt(self) -> None:
        """Record that written data may be lost, completely or in part."""
        self.lost += self.written
        self.written.clear()

    def resize(self, size: int) -> None:
        """Truncate or extend."""
        self.acknowledge()
        self.sure[size:] = 0
        for old in self.lost:
            old.forget(slice(size, _LARGEST))
        self.least = self.most = size

    def allows(self, data: bytes) -> bool:
        """Return True if the file may have this content."""
        bytes_there = np.zeros(_LARGEST, np.uint8)
        bytes_there[: len(data)] = np.frombuffer(data, np.uint8)
        possible = bytes_there == self.sure
        possible[self.least :] |= bytes_there[self.least :] == 0
        for patch in [*self.lost, *self.written]:
            same = bytes_there[patch.place] == patch.data
            possible[patch.place] |= patch.holds & same
        return self.least <= len(data) <= self.most and bool(possible.all())


def _act(draws: Draws, turn: int, file: File, answer: int | None) -> None:
    """Apply a call to the model; answer None: the call may have succeeded."""
    kind, size, place = draws.act(is_open=file.is_open)
    failed = answer is not None and answer < 0
    done = size if answer is None else max(answer, 0)
    if kind < 8:
        file.write(file.place, data_of(turn, done))
        file.place += done
    elif kind < 12:
        file.write(place, data_of(turn, done))
    elif kind == 12 and not failed:
        file.place = place
    elif kind == 13 and answer == 0:
        file.resize(place)
    elif kind == 13 and answer is None:
        file.doubt()
        file.least, file.most = min(file.least, place), max(file.most, place)
    elif kind in (14, 15) and answer == 0:
        file.acknowledge()
    elif kind == 15 and failed:
        file.doubt()
    if kind == 15:
        file.place, file.is_open = 0, not failed


def _expected(seed: int, answers: list[int]) -> list[File]:
    draws, made = Draws(seed), [File() for _ in FILES]
    for turn, answer in enumerate([*answers, None]):
        _act(draws, turn, made[draws(len(FILES))], answer)
    return made


@pytest.fixture
def full(memory_stage: Stage) -> Iterator[Stage]:
    """Return a folder on a file system that is soon full, with journals in memory."""
    if os.geteuid() != 0 or not _mounted(memory_stage.folder, _ROOM):
        pytest.skip("needs the right to mount")
    yield memory_stage
    subprocess.run(["umount", "-l", memory_stage.folder], check=True, timeout=120)


def _mounted(folder: Path, size: str, *options: str) -> bool:
    words = ",".join([*options, f"size={size}", "mode=700"])
    command = ["mount", "-t", "tmpfs", "-o", words, "none", str(folder)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    return done.returncode == 0


def _trial(stage: Stage, crasher: Path, seed: int) -> int:
    """Return how many calls had failed."""
    print(f"seed {seed}")
    for path in [*stage.folder.iterdir(), *stage.journals.iterdir()]:
        path.unlink()
    assert _mounted(stage.folder, _ROOM, "remount")
    chance = random.Random(seed)
    answers = killed(stage, crasher, seed, chance)
    drain_with_accidents(stage, chance)
    expected = _expected(seed, answers)
    _check(stage, expected, seed)
    assert _mounted(stage.folder, _MUCH_ROOM, "remount")
    assert {report.state for report in stage.drain()} <= {JournalState.DRAINED}
    _check(stage, expected, seed)
    assert all(name.endswith(".failed") for name in stage.left_over())
    return sum(answer < 0 for answer in answers)


def _check(stage: Stage, expected: list[File], seed: int) -> None:
    for name, file in zip(FILES, expected, strict=True):
        path = stage.folder / name
        data = path.read_bytes() if path.exists() else b""
        assert file.allows(data), f"seed {seed}: {name}"


def test_nothing_acknowledged_is_lost_on_a_full_file_system(
    full: Stage, crasher: Path
) -> None:
    assert sum(_trial(full, crasher, seed) for seed in seeds(1, 15)) > 0


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_many_trials_on_a_full_file_system(
    full: Stage, crasher: Path
) -> None:
    assert sum(_trial(full, crasher, seed) for seed in seeds(5000, 300)) > 0
