# SPDX-License-Identifier: MIT
"""Darshan logs are read record by record; damaged ones are refused with a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.workloads.darshan_log import DarshanLog
from support.darshan_logs import (
    LOGS,
    dxt_record,
    need_darshan,
    posix_record,
    write_log,
)

DXT = LOGS / "mpi-io-test-dxt.darshan"


@pytest.fixture(autouse=True)
def _package() -> None:
    need_darshan()


def test_counters_of_a_real_log() -> None:
    with DarshanLog(DXT) as log:
        totals = {
            module: (
                sum(record.read_bytes for record in records),
                sum(record.written_bytes for record in records),
            )
            for module in ("POSIX", "MPI-IO", "STDIO")
            if (records := list(log.counters(module)))
        }
        assert log.job.processes == 32
        assert log.job.job_id == 4373053
    # As darshan-parser --total prints them.
    assert totals == {
        "POSIX": (2147483648, 2147486208),
        "MPI-IO": (2147483648, 2147483648),
        "STDIO": (0, 1625),
    }


def test_segments_and_names_of_a_real_log() -> None:
    with DarshanLog(DXT) as log:
        names = log.names()
        moved = 0
        for record in log.segments():
            assert record.file_id in names
            for segments in (record.reads, record.writes):
                moved += int(segments["length"].sum())
                assert (segments["end_time"] >= segments["start_time"]).all()
    assert moved == 2147483648 + 2147486208


def test_heatmap_of_a_real_log() -> None:
    with DarshanLog(LOGS / "dlio-worker.darshan") as log:
        moved = {h.module: int(h.read_bytes.sum()) for h in log.heatmaps()}
    assert moved == {"POSIX": 11227249031, "STDIO": 246}


def test_a_module_that_is_not_there_has_no_records() -> None:
    with DarshanLog(LOGS / "skew-autobench-ior.darshan") as log:
        assert "DXT_POSIX" not in log.modules
        assert list(log.segments()) == []
        assert list(log.heatmaps()) == []


def test_records_of_a_written_log(tmp_path: Path) -> None:
    counters = posix_record(7, rank=3, read=(10, 1.0, 2.0, 0.5))
    trace = dxt_record(7, rank=3, reads=[(0, 10, 1.0, 2.0)])
    path = write_log(tmp_path / "a.darshan", modules=[counters, trace], processes=4)
    with DarshanLog(path) as log:
        (record,) = log.counters("POSIX")
        ((_, rank, host, reads, writes),) = (
            r._replace(reads=r.reads.tolist()) for r in log.segments()
        )
    assert record.read_bytes == 10
    assert record.reading_s == (1.0, 2.0)
    assert (rank, host, len(writes)) == (3, "n1", 0)
    assert reads == [(0, 10, 1.0, 2.0)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"#!/bin/sh\n" * 50, "this is not a Darshan log"),
        (b"9.99\0\0\0\0" + (6567223).to_bytes(8, "little"), "version 9.99"),
    ],
)
def test_other_files_are_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "log.darshan"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason):
        DarshanLog(path)


def _read_everything(path: Path) -> None:
    with DarshanLog(path) as log:
        for module in ("POSIX", "MPI-IO", "STDIO"):
            list(log.counters(module))
        for module in ("DXT_POSIX", "DXT_MPIIO"):
            list(log.segments(module))


@pytest.mark.parametrize("part", [0.02, 0.3, 0.9])
def test_a_log_that_was_cut_off_is_refused(
    part: float, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = DXT.read_bytes()
    path = tmp_path / "cut.darshan"
    path.write_bytes(data[: int(part * len(data))])
    with pytest.raises(InputError, match="damaged"):
        _read_everything(path)
    # The library's own messages are not printed, and later ones are.
    assert capfd.readouterr().err == ""
    os.write(2, b"seen\n")
    assert capfd.readouterr().err == "seen\n"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with DarshanLog(DXT):
        pass
    path = tmp_path / "cut.darshan"
    path.write_bytes(DXT.read_bytes()[:400])
    with pytest.raises(InputError):
        DarshanLog(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
