# SPDX-License-Identifier: MIT
"""Darshan logs: every byte once, the best source of times, honest bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.advice.logs.bursts import DEFAULT_GAP_S
from penstock.advice.logs.darshan import darshan_job, read_darshan
from penstock.errors import InputError
from penstock.workloads.darshan_log import DarshanLog
from support.darshan_logs import (
    LOGS,
    dxt_record,
    need_darshan,
    posix_record,
    write_log,
)

DATA = Path(__file__).parents[3] / "data"
REAL = {
    "skew-autobench-ior": "counters",
    "dlio-worker": "heatmap",
    "mpi-io-test-dxt": "dxt",
}


@pytest.fixture(autouse=True)
def _package() -> None:
    need_darshan()


def _counted(path: Path) -> int:
    """Add up POSIX and STDIO: in these logs every file of MPI-IO is one of POSIX."""
    with DarshanLog(path) as log:
        records = [r for m in ("POSIX", "STDIO") for r in log.counters(m)]
    return sum(record.read_bytes + record.written_bytes for record in records)


@pytest.mark.parametrize(("name", "detail"), REAL.items())
def test_bytes_are_those_of_the_counters_exactly(name: str, detail: str) -> None:
    path = LOGS / f"{name}.darshan"
    job = darshan_job(path, DEFAULT_GAP_S)
    assert job.detail == detail
    assert job.log_bytes == _counted(path)
    assert job.volume_bytes == job.log_bytes
    assert all(burst.end_s <= job.run_s * 1.01 + 1.0 for burst in job.bursts)


def test_every_source_of_times_gives_the_same_bytes() -> None:
    path = LOGS / "mpi-io-test-dxt.darshan"
    jobs = [darshan_job(path, DEFAULT_GAP_S), darshan_job(path, 0.05, ("counters",))]
    assert [job.detail for job in jobs] == ["dxt", "counters"]
    assert jobs[0].volume_bytes == jobs[1].volume_bytes
    # The bounds from the counters hold the exact time of DXT.
    assert jobs[1].io_low_s <= jobs[0].io_s <= jobs[1].io_high_s


def test_dxt_gives_the_union_of_all_accesses(tmp_path: Path) -> None:
    modules = [
        posix_record(7, rank=-1, written=(1000, 1.0, 3.0, 9.0)),
        dxt_record(7, rank=0, host="n1", writes=[(0, 600, 1.0, 1.5)]),
        dxt_record(7, rank=1, host="n2", writes=[(600, 400, 1.2, 1.7)]),
    ]
    job = darshan_job(write_log(tmp_path / "a.darshan", modules=modules), 0.05)
    (burst,) = job.bursts
    assert (burst.begin_s, burst.volume_bytes) == (1.0, 1000.0)
    assert job.io_s == pytest.approx(0.7)
    assert job.nodes == 2
    assert job.knows_nodes


def test_the_rest_of_a_trace_that_stopped_comes_from_the_counters(
    tmp_path: Path,
) -> None:
    modules = [
        posix_record(7, written=(1000, 1.0, 50.0, 5.0)),
        dxt_record(7, writes=[(0, 100, 1.0, 1.5)]),
    ]
    job = darshan_job(write_log(tmp_path / "a.darshan", modules=modules), 0.05)
    traced, rest = job.bursts
    assert (traced.volume_bytes, traced.is_exact) == (100.0, True)
    assert (rest.begin_s, rest.end_s, rest.volume_bytes) == (1.5, 50.0, 900.0)
    assert not rest.is_exact
    # The counters say 5 s, of which DXT saw 0.5 s.
    assert rest.io_s == pytest.approx(4.5)
    assert any("covers 10 %" in note for note in job.notes)


def test_io_time_from_counters_is_between_its_bounds(tmp_path: Path) -> None:
    modules = [
        posix_record(1, rank=0, read=(10, 0.0, 8.0, 2.0)),
        posix_record(2, rank=1, read=(10, 4.0, 9.0, 3.0)),
    ]
    path = write_log(tmp_path / "a.darshan", modules=modules, processes=2)
    job = darshan_job(path, 0.05)
    # The slower process spends 3 s; both together at most 5 s.
    assert (job.io_low_s, job.io_high_s) == (3.0, 5.0)
    assert job.io_s == pytest.approx(15**0.5)
    assert "one node per process" in " ".join(job.notes)


def test_the_time_in_io_is_not_longer_than_from_first_to_last_access(
    tmp_path: Path,
) -> None:
    modules = [
        posix_record(1, rank=0, read=(10, 1.0, 2.0, 0.5)),
        posix_record(2, rank=1, read=(10, 1.5, 2.5, 9.0)),
    ]
    path = write_log(tmp_path / "a.darshan", modules=modules, processes=2)
    assert darshan_job(path, 0.05).io_high_s == 1.5


def test_io_after_the_end_of_the_job_lengthens_it(tmp_path: Path) -> None:
    modules = [posix_record(1, read=(10, 90.0, 130.0, 40.0))]
    path = write_log(tmp_path / "a.darshan", modules=modules, run_s=100)
    job = darshan_job(path, 0.05)
    assert job.run_s == pytest.approx(130.0)
    assert any("after the end" in note for note in job.notes)


def test_io_too_short_for_the_clock_has_no_time(tmp_path: Path) -> None:
    modules = [posix_record(1, read=(10, 5.0, 5.0, 0.0))]
    job = darshan_job(write_log(tmp_path / "a.darshan", modules=modules), 0.05)
    assert (job.io_s, job.io_high_s, job.volume_bytes) == (0.0, 0.0, 10.0)
    assert [burst.begin_s for burst in job.bursts] == [5.0]


def test_a_clock_that_was_set_back(tmp_path: Path) -> None:
    modules = [posix_record(1, read=(10, 1.0, 2.0, 1.0))]
    path = write_log(tmp_path / "a.darshan", modules=modules, run_s=-50)
    job = darshan_job(path, 0.05)
    assert job.run_s >= 2.0
    assert any("set back" in note for note in job.notes)


def test_a_job_without_io_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the job has no I/O"):
        darshan_job(write_log(tmp_path / "a.darshan"), 0.05)


def test_a_heatmap_that_is_damaged_condemns_the_log(tmp_path: Path) -> None:
    data = (LOGS / "dlio-worker.darshan").read_bytes()
    path = tmp_path / "cut.darshan"
    path.write_bytes(data[:-200])
    assert next(iter(DarshanLog(path).counters("POSIX")))
    with pytest.raises(InputError, match="HEATMAP"):
        darshan_job(path, 0.05)


def test_dxt_of_a_newer_version_leaves_the_counters(tmp_path: Path) -> None:
    modules = [
        posix_record(7, written=(1000, 1.0, 3.0, 2.0)),
        dxt_record(7, writes=[(0, 1000, 1.0, 3.0)]),
    ]
    versions = {"DXT_POSIX": 99}
    path = write_log(tmp_path / "a.darshan", modules=modules, versions=versions)
    job = darshan_job(path, 0.05)
    assert (job.detail, job.volume_bytes) == ("counters", 1000.0)
    assert any("DXT" in note and "version" in note for note in job.notes)


def test_the_reader_yields_one_job() -> None:
    path = DATA / "hdf5_diagonal_write_half_flush_dxt.darshan"
    (job,) = read_darshan(path, 0.05)
    assert job.source == str(path)
