# SPDX-License-Identifier: MIT
"""Recorder traces: every byte once, from the layer that moves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.advice.logs.record import LoggedJob, Skipped
from penstock.advice.logs.recorder import is_recorder_folder, read_recorder
from penstock.errors import InputError

RANK_0 = """\
0.100000 0.900000 MPI_File_write_at 0 0 ( 0x1 0 0x2 4096 MPI_BYTE 0x3 )
0.200000 0.800000 pwrite64 1 1 ( /scratch/out 0x7f 4096 0 )
2.000000 2.500000 fwrite 0 1 ( 0x7f 8 100 0x5 )
3.000000 3.000100 close 0 1 ( /scratch/out )
"""
RANK_1 = """\
0.300000 0.700000 read 0 1 ( /scratch/in 0x7f 1000 )
4.000000 4.100000 writev 0 1 ( /scratch/out 0x7f 3 )
"""


def _trace(folder: Path, **files: str) -> Path:
    (folder / "_text").mkdir(parents=True)
    for name, text in files.items():
        (folder / "_text" / f"{name.removeprefix('r')}.txt").write_text(text)
    return folder


def test_a_trace(tmp_path: Path) -> None:
    folder = _trace(tmp_path / "n1-ann-flash-77-1234.5", r0=RANK_0, r1=RANK_1)
    (job,) = read_recorder(folder, 0.05)
    assert isinstance(job, LoggedJob)
    assert (job.name, job.user, job.nodes) == ("flash", "ann", 2)
    # Neither the call of MPI-IO above pwrite64 nor that of close counts.
    assert job.log_bytes == 4096 + 800 + 1000
    assert [b.begin_s for b in job.bursts] == [0.2, 2.0]
    assert job.io_s == pytest.approx(1.1)
    assert job.run_s == 4.1
    assert "1 calls do not tell their size" in " ".join(job.notes)


def test_folders_of_recorder_are_recognised(tmp_path: Path) -> None:
    folder = _trace(tmp_path / "a", r0=RANK_0)
    (tmp_path / "b").mkdir()
    assert is_recorder_folder(folder)
    assert is_recorder_folder(folder / "_text")
    assert not is_recorder_folder(tmp_path / "b")
    (tmp_path / "b" / "recorder.mt").touch()
    assert is_recorder_folder(tmp_path / "b")


def test_a_trace_that_is_not_converted_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "recorder.mt").touch()
    with pytest.raises(InputError, match="recorder2text"):
        list(read_recorder(tmp_path, 0.05))


def test_a_bad_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    folder = _trace(tmp_path / "a", r0=RANK_0 + "hello\n")
    bad, job = read_recorder(folder, 0.05)
    assert isinstance(bad, Skipped)
    assert bad.source.endswith("0.txt: line 5")
    assert isinstance(job, LoggedJob)


def test_a_trace_without_io_is_skipped(tmp_path: Path) -> None:
    folder = _trace(tmp_path / "a", r0="0.1 0.2 close 0 1 ( f )\n")
    (item,) = read_recorder(folder, 0.05)
    assert isinstance(item, Skipped)
