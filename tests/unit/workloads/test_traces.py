# SPDX-License-Identifier: MIT
"""Traces: CSV files and Darshan logs in, every mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.workloads.traces import COLUMNS, read_trace
from support.darshan_logs import need_darshan

_LOG = Path(__file__).parents[2] / "data" / "hdf5_diagonal_write_half_flush_dxt.darshan"
_HEADER = ",".join(COLUMNS)


def _trace(path: Path, *lines: str) -> Path:
    path.write_text("\n".join([_HEADER, *lines]) + "\n")
    return path


def test_csv(tmp_path: Path) -> None:
    trace = read_trace(
        _trace(
            tmp_path / "t.csv",
            "1,a,write,0,10,2.0,2.5",
            "0,b,read,5,7,0.5,0.75",
            "1,a,write,10,10,1.0,1.5",
        )
    )
    assert [a.start for a in trace.by_process()[1]] == [1.0, 2.0]
    assert trace.sizes() == {"b": 12}


def test_a_real_darshan_log() -> None:
    need_darshan()
    trace = read_trace(_LOG)
    moved = {"read": 0, "write": 0}
    for access in trace.accesses:
        moved[access.operation] += access.size
    # Sums of the segments that darshan-dxt-parser prints.
    assert moved == {"read": 2_627_610, "write": 15_930}
    assert sorted(trace.by_process()) == list(range(10))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0,a,append,0,1,0,1", "operation 'append' is unknown"),
        ("-1,a,read,0,1,0,1", "process -1 is negative"),
        ("0,,read,0,1,0,1", "the file name is empty"),
        ("0,a,read,-4,1,0,1", "1 bytes at offset -4 are not in any file"),
        ("0,a,read,9223372036854775807,1,0,1", "1 bytes at offset"),
        ("0,a,read,0,1,2,1", "from 2 s to 1 s"),
        ("0,a,read,0,1,0,inf", "from 0 s to inf s"),
        ("0,a,read,0,many,0,1", "not a number"),
        ("0,a,read", "has 3 of 7 columns"),
    ],
)
def test_mistakes_have_a_line(tmp_path: Path, line: str, message: str) -> None:
    path = _trace(tmp_path / "t.csv", "0,a,read,0,1,0,1", line)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert f"{path}: line 3" in str(caught.value)
    assert message in str(caught.value)


def test_a_file_that_is_not_a_trace_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"No such file .* \(check its name"):
        read_trace(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="the trace is empty"):
        read_trace(_trace(tmp_path / "empty.csv"))
    (tmp_path / "t.csv").write_text("process,file\n0,a\n")
    with pytest.raises(InputError, match="no column operation, offset, size"):
        read_trace(tmp_path / "t.csv")
    need_darshan()
    (tmp_path / "t.darshan").write_bytes(b"nonsense" * 100)
    with pytest.raises(InputError, match="not a Darshan log"):
        read_trace(tmp_path / "t.darshan")
    assert capfd.readouterr().err == ""
