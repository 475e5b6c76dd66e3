# SPDX-License-Identifier: MIT
"""Ratios of programs under control, their intervals and their table."""

from __future__ import annotations

import math
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.bench import BenchSettings
from penstock.bench.cost import harmless
from penstock.bench.cost.harmless import Ratios, measure, median_interval, table
from penstock.bench.cost.harmless_programs import PROGRAMS, BenchProgram

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # Ranks from tables of the sign test at 95 %.
    [(1, 1, 1), (2, 1, 2), (5, 1, 5), (6, 1, 6), (9, 2, 8), (15, 4, 12), (25, 8, 18)],
)
def test_the_interval_of_a_median_has_the_ranks_of_the_sign_test(
    count: int, low: int, high: int
) -> None:
    values = [float(value) for value in range(1, count + 1)]
    random.Random(1).shuffle(values)
    assert median_interval(values) == (low, high)


def test_the_interval_contains_the_median_in_95_of_100_cases() -> None:
    numbers = random.Random(2)
    samples = [[numbers.random() for _ in range(11)] for _ in range(2000)]
    intervals = [median_interval(sample) for sample in samples]
    assert sum(low <= 0.5 <= high for low, high in intervals) >= 0.94 * len(samples)


def test_a_program_is_slower_only_beyond_the_noise() -> None:
    assert Ratios("a", "disk cold", [1.03, 1.05, 1.04], [1.0] * 3).is_slower
    assert not Ratios("a", "disk cold", [1.01, 1.5, 1.4], [1.0] * 3).is_slower


def test_noise_is_the_difference_of_plain_runs_that_follow() -> None:
    assert Ratios("a", "b", [1.0] * 3, [1.0, 1.1, 1.1]).noise == pytest.approx(0.05)
    assert Ratios("a", "b", [1.0], [1.0]).noise == 0.0


def test_the_table_has_a_column_for_each_place_and_marks_slow_programs() -> None:
    results = [
        Ratios("cp", "tmpfs cached", [1.0, 1.01], [1.0, 1.0]),
        Ratios("cp", "ext4 cold", [2.0, 2.0], [1.0, 1.0]),
        Ratios("dd", "ext4 cold", [0.99], [1.0]),
    ]
    assert table(results).splitlines() == [
        "| program | tmpfs cached | ext4 cold |",
        "|---|---|---|",
        "| cp | 1.005 (1.000 to 1.010) | **2.000 (2.000 to 2.000)** |",
        "| dd |  | 0.990 (0.990 to 0.990) |",
    ]


def test_folders_on_one_type_of_file_system_are_all_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("memory", "disk", "storage")]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setattr(harmless, "_DISK", folders[1])
    settings = BenchSettings(1, folders[0], storage=folders[2])
    places = harmless._places(settings)
    assert [place.folder for place in places] == folders
    assert len({place.kind for place in places}) == 1
    assert len({str(place) for place in places}) == 3


def test_a_folder_that_is_named_twice_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    monkeypatch.setattr(harmless, "_DISK", link)
    assert len(harmless._places(BenchSettings(1, tmp_path, storage=tmp_path))) == 1


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Return a folder with a short path, because it will hold a socket."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@needs_gcc
def test_programs_are_measured_under_control(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = BenchProgram("absent", ("absent",), ("no-such-program",))
    two = [program for program in PROGRAMS if program.name in {"cp", "cat"}]
    monkeypatch.setattr(harmless, "PROGRAMS", [*two, absent])
    monkeypatch.setattr(harmless, "_DISK", short_folder)
    monkeypatch.setattr("penstock.bench.cost.harmless_programs._DATA_BYTES", 1 << 20)
    monkeypatch.setattr("penstock.bench.cost.harmless_programs._LINES", 100)
    monkeypatch.setattr(harmless, "_MEMORY", ())
    output = short_folder / "output"
    output.mkdir()
    rows = list(measure(BenchSettings(1, short_folder, output=output)))
    names = [row.name for row in rows]
    assert names[:3] == [
        "first start, with a private daemon",
        "start of penstock run",
        "library, in every process",
    ]
    assert sum(name.endswith((" cached: cp", " cold: cat")) for name in names) == 2
    assert names[-1] == "skipped: absent (needs no-such-program)"
    assert all(math.isfinite(row.value) for row in rows)
    assert (output / "harmless.md").read_text().count("\n") == 4
    # Neither files nor the daemon remain.
    assert list(short_folder.iterdir()) == [output]
    assert not [
        path
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if _uses(path, short_folder)
    ]


def _uses(cmdline: Path, folder: Path) -> bool:
    """Return True if the arguments of a process name a folder."""
    try:
        return str(folder).encode() in cmdline.read_bytes()
    except OSError:  # The process has ended.
        return False
