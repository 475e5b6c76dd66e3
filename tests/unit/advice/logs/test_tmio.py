# SPDX-License-Identifier: MIT
"""TMIO traces: one job per file, on a clock of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.advice.logs.record import LoggedJob, Skipped
from penstock.advice.logs.tmio import read_tmio
from support.darshan_logs import LOGS


def _line(kind: str, *rows: tuple[float, float, float]) -> str:
    begin, end, rate = (list(column) for column in zip(*rows, strict=True))
    bandwidth = {"t_ind_s": begin, "t_ind_e": end, "b_ind": rate}
    return json.dumps({kind: {"number_of_ranks": 2, "bandwidth": bandwidth}}) + "\n"


def test_a_real_trace() -> None:
    path = LOGS / "tmio_8ranks.jsonl"
    (job,) = read_tmio(path, 0.05)
    assert isinstance(job, LoggedJob)
    assert (job.name, job.nodes, job.clock) == ("tmio_8ranks", 8, str(path))
    # The trace itself says 329 bytes four times, rounded to three digits.
    assert job.volume_bytes == pytest.approx(4 * 329, rel=0.01)


def test_lines_add_up(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        _line("read_sync", (1.0, 2.0, 100.0))
        + _line("write_async_t", (1.5, 2.5, 10.0), (9.0, 9.5, 4.0))
        + _line("write_async_b", (0.0, 9.0, 1e9))
    )
    (job,) = read_tmio(path, 0.05)
    assert isinstance(job, LoggedJob)
    assert job.log_bytes == 112
    assert [(b.begin_s, b.volume_bytes) for b in job.bursts] == [(1.0, 110), (9.0, 2)]
    assert job.run_s == 9.5


def test_a_trace_without_io_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"read_sync": {"bandwidth": {}}}\n\n')
    (item,) = read_tmio(path, 0.05)
    assert isinstance(item, Skipped)


@pytest.mark.parametrize("line", ['{"read_sync": {', "[1]", '{"read_sync": 5}'])
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = _line("read_sync", (1.0, 2.0, 100.0))
    path.write_text(f"\n{line}\n{good}{good[:20]}")
    bad, cut, job = read_tmio(path, 0.05)
    assert isinstance(bad, Skipped)
    assert isinstance(cut, Skipped)
    assert [bad.source, cut.source] == [f"{path}: line 2", f"{path}: line 4"]
    assert isinstance(job, LoggedJob)
