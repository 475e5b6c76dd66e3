# SPDX-License-Identifier: MIT
"""CSV files of intervals: many jobs, one clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.advice.importing.sources import LogFile, find_logs
from penstock.advice.logs.intervals_csv import read_csv
from penstock.advice.logs.record import Burst, LoggedJob, Skipped
from penstock.errors import InputError


def _read(path: Path, text: str) -> list[LoggedJob | Skipped]:
    path.write_text(text)
    return list(read_csv(path, 0.05))


def test_two_jobs(tmp_path: Path) -> None:
    climate, fusion, idle = _read(
        tmp_path / "a.csv",
        "job,begin,end,bytes,nodes,user,group\n"
        "climate,10,100,0,64,ann,geo\n"
        "climate,20,22,500,64,ann,geo\n"
        "fusion,15,16,7,,,\n"
        "climate,60,62,500,64,ann,geo\n"
        "idle,0,5,0,,,\n",
    )
    assert isinstance(climate, LoggedJob)
    assert isinstance(fusion, LoggedJob)
    assert (climate.start_s, climate.run_s, climate.nodes) == (10.0, 90.0, 64)
    assert climate.bursts == (Burst(10.0, 12.0, 500, 2), Burst(50.0, 52.0, 500, 2))
    assert (climate.user, climate.group, fusion.nodes) == ("ann", "geo", 1)
    assert climate.clock == fusion.clock == str(tmp_path / "a.csv")
    assert isinstance(idle, Skipped)


def test_large_times_are_seconds_since_1970(tmp_path: Path) -> None:
    text = "job,begin,end,bytes\na,1700000000,1700000001,5\n"
    (job,) = _read(tmp_path / "a.csv", text)
    assert isinstance(job, LoggedJob)
    assert job.clock == ""


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,2,1,5", "from 2 s to 1 s"),
        ("a,1,nan,5", "from 1 s to nan s"),
        ("a,1,2,-5", "-5 bytes"),
        ("a,1,2,many", "line 3"),
        (",1,2,5", "job ''"),
        ("a,1", "line 3"),
    ],
)
def test_mistakes_have_a_line(row: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    bad, job = _read(path, f"job,begin,end,bytes\na,0,1,5\n{row}\na,3,4,6\n")
    assert isinstance(bad, Skipped)
    assert message in f"{bad.source} {bad.reason}"
    assert bad.source == f"{path}: line 3"
    assert isinstance(job, LoggedJob)
    assert job.log_bytes == 11


def test_a_field_that_is_too_long_is_a_bad_line(tmp_path: Path) -> None:
    text = f"job,begin,end,bytes\n{'a' * 200_000},0,1,5\nb,3,4,6\n"
    bad, job = _read(tmp_path / "a.csv", text)
    assert isinstance(bad, Skipped)
    assert isinstance(job, LoggedJob)
    assert job.name == "b"


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column end, bytes"):
        _read(tmp_path / "a.csv", "job,begin\n")


def test_a_byte_order_mark_is_not_part_of_a_column(tmp_path: Path) -> None:
    path = tmp_path / "excel.csv"
    path.write_text("\ufeffjob,begin,end,bytes\na,0,1,5\n", encoding="utf-8")
    (job,) = read_csv(path, 0.05)
    assert isinstance(job, LoggedJob)
    (found,) = find_logs([str(path)], "auto")
    assert isinstance(found, LogFile)
    assert found.format == "csv"
