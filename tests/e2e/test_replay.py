# SPDX-License-Identifier: MIT
"""``penstock replay``: real processes make the accesses of a trace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.darshan_logs import need_darshan

_LOG = Path(__file__).parents[1] / "data" / "hdf5_diagonal_write_half_flush_dxt.darshan"


def _replay(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock", "replay", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def _write_trace(path: Path) -> Path:
    path.write_text(
        "process,file,operation,offset,size,start,end\n"
        "0,/fs/x/data,write,0,3000000,0.1,0.2\n"
        "0,/fs/x/data,write,5000000,1,0.3,0.4\n"
        "7,/fs/y/data,read,100,2000,0.0,0.1\n"
    )
    return path


def test_bytes_and_times(tmp_path: Path) -> None:
    trace = _write_trace(tmp_path / "trace.csv")
    result = tmp_path / "result.json"
    done = _replay(trace, tmp_path / "files", "--json", result)
    assert done.returncode == 0, done.stderr
    first, second = json.loads(result.read_text())["processes"]
    assert (first["process"], first["written"], first["read"]) == (0, 3_000_001, 0)
    assert (second["process"], second["written"], second["read"]) == (7, 0, 2000)
    assert first["traced_io_s"] == pytest.approx(0.2)
    # Work is waited for: 0.1 s before, and 0.1 s between the two writes.
    assert first["duration_s"] >= 0.2 + first["io_s"] - 1e-3
    # Two files of one name are two files.
    sizes = sorted(p.stat().st_size for p in (tmp_path / "files").iterdir())
    assert sizes == [2100, 5_000_001]


def test_a_darshan_log(tmp_path: Path) -> None:
    need_darshan()
    result = tmp_path / "result.json"
    done = _replay(_LOG, tmp_path / "files", "--speed", "20", "--json", result)
    assert done.returncode == 0, done.stderr
    processes = json.loads(result.read_text())["processes"]
    assert len(processes) == 10
    assert sum(p["written"] for p in processes) == 15_930
    assert sum(p["read"] for p in processes) == 2_627_610


def test_mistakes(tmp_path: Path) -> None:
    trace = _write_trace(tmp_path / "trace.csv")
    for arguments, message in (
        (
            (trace, tmp_path / "f", "--speed", "0"),
            "speed: '0' is not a positive number",
        ),
        ((tmp_path / "no.csv", tmp_path / "f"), "No such file"),
        ((trace, trace / "f"), "Not a directory"),
    ):
        done = _replay(*arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_full_file_system_is_reported(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "process,file,operation,offset,size,start,end\n"
        f"3,big,write,{2**62},10,0,0\n"  # beyond what a file can hold
    )
    done = _replay(trace, tmp_path / "files")
    assert done.returncode == 2
    where = f"{trace}: process 3: write of big at {2**62}"
    assert done.stderr == f"penstock: {where}: File too large\n"
