# SPDX-License-Identifier: MIT
"""Slurm accounting: text and JSON give the same jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.advice.logs.record import LoggedJob, Skipped
from penstock.advice.logs.slurm import read_slurm
from penstock.errors import InputError

HEADER = (
    "JobIDRaw|JobName|User|Account|NNodes|NTasks|Start|End|"
    "TRESUsageInTot|TRESUsageOutTot"
)
BEGIN = "2024-05-01T10:00:00"
END = "2024-05-01T11:00:00"


def _text(path: Path, *lines: str, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def _read(path: Path) -> list[LoggedJob | Skipped]:
    return list(read_slurm(path, 0.05))


def test_the_bytes_of_a_job_are_those_of_its_steps(tmp_path: Path) -> None:
    path = _text(
        tmp_path / "s.txt",
        f"7|climate|ann|geo|64||{BEGIN}|{END}||",
        f"7.batch|batch||geo|1|1|{BEGIN}|{END}|cpu=1,fs/disk=1000|fs/disk=24",
        f"7.0|model||geo|64|64|{BEGIN}|{END}|fs/disk=2K,mem=5|fs/disk=0",
    )
    (job,) = _read(path)
    assert isinstance(job, LoggedJob)
    assert (job.name, job.user, job.group, job.nodes) == ("climate-7", "ann", "geo", 64)
    assert job.log_bytes == 1000 + 24 + 2048
    assert job.run_s == 3600.0
    assert job.start_s == datetime.fromisoformat(BEGIN).timestamp()
    (burst,) = job.bursts
    assert (burst.io_s, burst.is_exact) == (0.0, False)


def test_mean_volumes_times_tasks(tmp_path: Path) -> None:
    header = "JobID|NTasks|Start|Elapsed|AveDiskRead|AveDiskWrite"
    path = _text(
        tmp_path / "s.txt",
        f"9||{BEGIN}|1-00:00:10||",
        f"9.0|4|{BEGIN}|1-00:00:10|1.5M|512K",
        header=header,
    )
    (job,) = _read(path)
    assert isinstance(job, LoggedJob)
    assert job.log_bytes == 4 * (1.5 * 2**20 + 512 * 2**10)
    assert job.run_s == 86410.0
    assert not job.knows_nodes


def test_bytes_that_are_not_counted_are_unknown_and_not_zero(tmp_path: Path) -> None:
    path = _text(tmp_path / "s.txt", f"7|a|ann||2|{BEGIN}|{END}", header=_short())
    (job,) = _read(path)
    assert isinstance(job, LoggedJob)
    assert job.log_bytes is None
    assert job.bursts == ()


@pytest.mark.parametrize("end", ["\r", "\x1c", "\x85", "\u2028"])
def test_the_name_of_a_job_adds_no_job(tmp_path: Path, end: str) -> None:
    forged = f"a{end}8|b"
    path = _text(
        tmp_path / "s.txt",
        f"7|{forged}|ann||2|{BEGIN}|{END}\n9|c|ann||2|{BEGIN}|{END}",
        header=_short(),
    )
    skipped, job = _read(path)
    assert isinstance(skipped, Skipped)
    assert "a name contains |" in skipped.reason
    assert isinstance(job, LoggedJob)
    assert job.job_id == "9"


def _short() -> str:
    return "JobID|JobName|User|Account|NNodes|Start|End"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"7|a|ann||2|{BEGIN}|Unknown", "not ended"),
        ("7|a|ann||2|None|None", "not run"),
        (f"7|a|ann||2|{END}|{BEGIN}", "ends before it begins"),
    ],
)
def test_jobs_that_are_skipped(line: str, reason: str, tmp_path: Path) -> None:
    (item,) = _read(_text(tmp_path / "s.txt", line, header=_short()))
    assert isinstance(item, Skipped)
    assert reason in item.reason


def test_a_job_without_io_is_skipped(tmp_path: Path) -> None:
    line = f"7|a|ann||2|1|{BEGIN}|{END}|fs/disk=0|fs/disk=0"
    (item,) = _read(_text(tmp_path / "s.txt", line))
    assert isinstance(item, Skipped)
    assert item.reason == "the job has no I/O"


def _document() -> dict[str, object]:
    start = int(datetime(2024, 5, 1, 10, tzinfo=UTC).timestamp())
    usage = [{"type": "fs", "name": "disk", "count": 500}, {"type": "cpu", "count": 9}]
    return {
        "meta": {"Slurm": {}},
        "jobs": [
            {
                "job_id": 7,
                "name": "climate",
                "user": "ann",
                "account": "geo",
                "allocation_nodes": 64,
                "time": {"start": {"set": True, "number": start}, "end": start + 60},
                "steps": [
                    {"tres": {"requested": {"total": usage}, "consumed": {}}},
                    {"tres": {"consumed": {"total": usage}}},
                ],
            }
        ],
    }


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(_document()))
    (job,) = _read(path)
    assert isinstance(job, LoggedJob)
    assert (job.name, job.nodes, job.run_s) == ("climate-7", 64, 60.0)
    assert job.log_bytes == 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("JobName|Start\na|b\n", "no column JobID"),
        ('{"jobs": 5}', "not a document of sacct"),
        ('{"jobs": [', "not a document of sacct"),
        ('{"jobs": ["\udcff"]}', "not a document of sacct"),
    ],
)
def test_a_file_of_something_else_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=message):
        _read(path)


@pytest.mark.parametrize("line", ["7|x", "7|yesterday|x|1", "7|1|5|0x"])
def test_a_bad_line_is_named_and_the_others_are_read(line: str, tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text(f"JobID|Start|End|NNodes\n6|1|5|1\n{line}\n8|1|5|2\n")
    bad, *jobs = _read(path)
    assert isinstance(bad, Skipped)
    assert bad.source == f"{path}: line 3"
    assert [job.job_id for job in jobs if isinstance(job, LoggedJob)] == ["6", "8"]


def test_a_bad_job_of_a_document_is_named_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.json"
    good = {"job_id": 2, "time": {"start": 1, "end": 5}}
    path.write_text(json.dumps({"jobs": [{"job_id": 1}, good, 5]}))
    *bad, job = _read(path)
    assert [item.source for item in bad] == [f"{path}: jobs[0]", f"{path}: jobs[2]"]
    assert isinstance(job, LoggedJob)
    assert job.job_id == "2"
