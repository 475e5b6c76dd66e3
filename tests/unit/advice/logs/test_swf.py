# SPDX-License-Identifier: MIT
"""The Standard Workload Format: jobs with times and nodes, nothing about I/O."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.advice.logs.record import LoggedJob, Skipped
from penstock.advice.logs.swf import read_swf

HEAD = "; UnixStartTime: 1700000000\n; MaxNodes: 10\n;  MaxProcs: 40\n"
JOB = "1 100 50 3600 16 -1 -1 16 7200 -1 1 3 4 -1 1 -1 -1 -1"


def _read(path: Path, text: str) -> list[LoggedJob | Skipped]:
    path.write_text(text)
    return list(read_swf(path, 0.05))


def test_a_job(tmp_path: Path) -> None:
    (job,) = _read(tmp_path / "a.swf", HEAD + JOB + "\n")
    assert isinstance(job, LoggedJob)
    assert job.start_s == 1700000150.0
    assert (job.run_s, job.nodes, job.user, job.group) == (3600.0, 4, "3", "4")
    assert (job.bursts, job.log_bytes, job.clock) == ((), None, "")


def test_without_a_start_time_the_clock_is_the_file_s_own(tmp_path: Path) -> None:
    (job,) = _read(tmp_path / "a.swf", JOB)
    assert isinstance(job, LoggedJob)
    assert job.clock == str(tmp_path / "a.swf")
    assert job.nodes == 16


def test_a_job_that_did_not_run_is_skipped(tmp_path: Path) -> None:
    text = JOB.replace("3600", "-1")
    (item,) = _read(tmp_path / "a.swf", text)
    assert isinstance(item, Skipped)
    assert item.reason == "the job did not run"


@pytest.mark.parametrize("line", ["1 2 3", JOB.replace("100", "x")])
def test_a_bad_line_is_named_and_the_others_are_read(line: str, tmp_path: Path) -> None:
    bad, job = _read(tmp_path / "a.swf", f"{HEAD}{line.strip()}\n{JOB}")
    assert isinstance(bad, Skipped)
    assert bad.source.endswith("a.swf: line 4")
    assert isinstance(job, LoggedJob)


def test_long_numbers_stay_whole(tmp_path: Path) -> None:
    line = JOB.replace("1 100", "1234567 100", 1).replace(" 3 4 ", " 1000001 1000002 ")
    other = line.replace("1234567", "1234568")
    first, second = _read(tmp_path / "a.swf", f"{HEAD}{line}\n{other}\n")
    assert isinstance(first, LoggedJob)
    assert isinstance(second, LoggedJob)
    assert (first.job_id, second.job_id) == ("1234567", "1234568")
    assert (first.name, second.name) == ("job-1234567", "job-1234568")
    assert (first.user, first.group) == ("1000001", "1000002")
    assert first.source.endswith("job 1234567")
