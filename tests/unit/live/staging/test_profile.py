# SPDX-License-Identifier: MIT
"""The bandwidth on 1, 2, ... targets is measured on files that are removed again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.staging import profile
from penstock.live.staging.drivers.directories import Directories
from penstock.live.staging.drivers.driver import PlacedInFolder
from penstock.live.staging.profile import ProfileTask, measure_profile

TASK = ProfileTask(volume_bytes=4 << 20, streams=4, repeats=2)
NAMES = ("a", "b", "c")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with three targets."""
    for name in NAMES:
        (tmp_path / "targets" / name).mkdir(parents=True)
    return tmp_path / "targets"


class OneFolder(PlacedInFolder):
    """A driver that notes what it was asked for."""

    def __init__(self) -> None:
        self.assigned: list[tuple[str, ...]] = []

    def check(self, targets: Sequence[str]) -> None:
        """Accept all names."""

    def assign(self, directory: Path, targets: Sequence[str]) -> None:
        """Note the targets; the directory must exist."""
        assert directory.is_dir()
        self.assigned.append(tuple(targets))


def test_every_number_of_targets_is_measured_in_turn(tmp_path: Path) -> None:
    driver = OneFolder()
    rates = measure_profile(driver, tmp_path, NAMES, TASK)
    assert len(rates) == 3
    assert min(rates) > 0.0
    assert driver.assigned == [("a",), ("a", "b"), ("a", "b", "c")] * 2
    assert list(tmp_path.iterdir()) == []


def test_the_median_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = iter([5.0, 50.0, 1.0, 90.0, 7.0, 60.0])
    monkeypatch.setattr(profile, "_write_rate", lambda *_: next(measured))
    task = ProfileTask(repeats=3)
    assert measure_profile(OneFolder(), tmp_path, NAMES[:2], task) == [5.0, 60.0]


def test_plain_directories_are_written_through_their_links(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[set[str]] = []
    write = profile._write

    def watch(path: Path, blocks: int) -> None:
        write(path, blocks)
        written[-1].add(path.resolve().parent.name)

    def measured(folder: Path, number: int, task: ProfileTask) -> float:
        written.append(set())
        return write_rate(folder, number, task)

    write_rate = profile._write_rate
    monkeypatch.setattr(profile, "_write", watch)
    monkeypatch.setattr(profile, "_write_rate", measured)
    measure_profile(Directories(root), root, NAMES, TASK)
    assert written == [{"a"}, {"a", "b"}, {"a", "b", "c"}] * 2
    # Nothing is left behind, neither in the targets nor beside them.
    assert sorted(path.name for path in root.rglob("*")) == list(NAMES)


def test_a_root_that_is_missing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot make a folder"):
        measure_profile(OneFolder(), tmp_path / "missing", NAMES, TASK)


def test_a_target_that_cannot_be_written_is_reported(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, blocks: int) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(profile, "_write", full)
    with pytest.raises(InputError, match="cannot write: No space left on device"):
        measure_profile(Directories(root), root, NAMES, TASK)
