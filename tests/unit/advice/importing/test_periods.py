# SPDX-License-Identifier: MIT
"""Periods: FTIO is asked about jobs with enough bursts, and is quiet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from penstock.advice.importing import periods
from penstock.advice.importing.periods import with_periods
from penstock.advice.logs.record import Burst, LoggedJob
from penstock.errors import InputError
from unit.advice.importing.records import record


def _regular(count: int) -> LoggedJob:
    bursts = [Burst(20.0 * k + 5.0, 20.0 * k + 7.0, 1e9, 2.0) for k in range(count)]
    return record(*bursts, run_s=20.0 * count)


def test_without_ftio_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periods, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"penstock\[ftio\]"):
        with_periods([_regular(5)])


def test_a_clear_frequency_becomes_a_period(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def frequency(operations: Sequence[tuple[float, ...]], end: float) -> float:
        print("FTIO is talking")
        asked.append((len(operations), end))
        return 0.05 if len(operations) < 10 else 0.0

    monkeypatch.setattr(periods, "find_spec", lambda _: True)
    monkeypatch.setattr(periods, "dominant_frequency", frequency)
    few, clear, unclear = with_periods([_regular(3), _regular(5), _regular(12)])
    assert asked == [(5, 100.0), (12, 240.0)]
    assert [few.period_s, clear.period_s, unclear.period_s] == [0.0, 20.0, 0.0]
    assert clear.notes == ("FTIO finds a period of 20 s",)
    assert "talking" not in capfd.readouterr().err


def _binned(is_exact: bool) -> LoggedJob:
    """Return a job with two bins every 20 s; the third pair comes 2 s early."""
    begins = [20.0 * k + (-2.0 if k == 2 else 0.0) for k in range(4)]
    bursts = [
        Burst(begin + part, begin + part + 1.0, 10.0, 0.5, is_exact)
        for begin in begins
        for part in (5.0, 7.0)
    ]
    return record(*bursts, run_s=80.0)


@pytest.mark.parametrize(("is_exact", "operations"), [(False, 4), (True, 8)])
def test_the_bins_of_one_period_are_one_operation(
    is_exact: bool, operations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(periods, "find_spec", lambda _: True)
    monkeypatch.setattr(periods, "dominant_frequency", lambda *_: 0.05)
    (job,) = with_periods([_binned(is_exact)])
    assert len(job.bursts) == operations
    assert (job.volume_bytes, job.io_s) == (80.0, 4.0)
    assert (job.bursts[0].begin_s, job.bursts[-1].end_s) == (5.0, 68.0)


@pytest.mark.skipif(find_spec("ftio") is None, reason="ftio-hpc is not installed")
@pytest.mark.filterwarnings("ignore")
def test_ftio_finds_the_period_of_a_regular_job() -> None:
    (job,) = with_periods([_regular(12)])
    assert job.period_s == pytest.approx(20.0, rel=0.1)


def test_text_that_python_holds_back_is_not_lost(tmp_path: Path) -> None:
    """Standard output is a file, so Python writes it late."""
    program = """
from penstock.advice.importing.periods import _quiet
print("before")
with _quiet():
    print("FTIO is talking")
print("after")
"""
    path = tmp_path / "out"
    with path.open("w") as stream:
        command = [sys.executable, "-c", program]
        environment = os.environ | {"PYTHONUNBUFFERED": ""}
        subprocess.run(command, stdout=stream, timeout=60, check=True, env=environment)
    assert path.read_text() == "before\nafter\n"


def test_bins_show_no_period_shorter_than_two_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bins = [Burst(6.4 * k, 6.4 * (k + 1), 1e9, 5.0, is_exact=False) for k in range(8)]
    monkeypatch.setattr(periods, "find_spec", lambda _: True)
    monkeypatch.setattr(periods, "dominant_frequency", lambda *_: 1.0 / 6.4)
    (job,) = with_periods([record(*bins, run_s=60.0)])
    assert (job.period_s, len(job.bursts)) == (0.0, 8)
    assert job.notes[-1] == "it is not used: a period must be at least two bins long"
