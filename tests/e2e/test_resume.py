# SPDX-License-Identifier: MIT
"""A campaign that is interrupted, killed, or loses a worker, on real processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.campaigns import PIECES, Bench
from support.launchers import BACKGROUND
from support.waiting import processes_of, until

POOL = ("--jobs", "2")


def _finish(bench: Bench, kept: dict[str, int], expected: bytes) -> None:
    """Run the same command again: it computes the rest and nothing else."""
    assert 0 < len(kept) < PIECES
    bench.tell()
    bench.done(*POOL)
    after = bench.pieces()
    assert len(after) == PIECES
    assert kept.items() <= after.items()
    assert bench.table() == expected
    hidden = [p.name for p in bench.study.rglob(".*") if p.name != ".lock"]
    assert hidden == []


def test_a_worker_dies_then_nothing_is_left_to_do(
    bench: Bench, expected: bytes
) -> None:
    bench.tell("die")
    output = bench.done(*POOL)
    assert re.fullmatch(
        r"worker \d+ died \(Killed\) while computing piece 000[01]-00000\d of small: "
        r"trying it again",
        output,
    )
    assert bench.table() == expected
    before = bench.pieces()
    # This would kill the command if it computed anything again.
    bench.tell("die-always")
    assert bench.done("--jobs", "1") == ""
    assert bench.pieces() == before
    assert bench.table() == expected


def test_ctrl_c_keeps_what_is_done(bench: Bench, expected: bytes) -> None:
    bench.tell("slow")
    process = bench.start(*POOL)
    bench.wait_for_pieces(2)
    # To the whole process group, as a terminal does: workers must ignore the signal.
    os.killpg(process.pid, signal.SIGINT)
    status, output = bench.outcome(process)
    assert status == 130, output
    kept = bench.pieces()
    message = f"{len(kept)} of {PIECES} pieces are kept in out/studies/small"
    assert (
        output == f"{message}: run the same command again to resume penstock: stopped"
    )
    until(lambda: not processes_of(process.pid))
    _finish(bench, kept, expected)


def test_a_background_job_ignores_ctrl_c(bench: Bench, expected: bytes) -> None:
    bench.tell("slow")
    process = bench.start(*POOL, launcher=BACKGROUND)
    bench.wait_for_pieces(1)
    os.killpg(process.pid, signal.SIGINT)
    bench.tell()
    assert bench.outcome(process) == (0, "")
    assert bench.table() == expected


def test_a_run_that_is_killed_twice(bench: Bench, expected: bytes) -> None:
    bench.tell("slow")
    process = bench.start(*POOL)
    bench.wait_for_pieces(1)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=120)
    # Workers notice by themselves that the command has gone.
    until(lambda: not processes_of(process.pid))
    kept = bench.pieces()
    process = bench.start(*POOL)
    bench.wait_for_pieces(len(kept) + 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=120)
    assert kept.items() <= bench.pieces().items()
    (bench.study / "pieces" / ".0000-000000.parquet.abcd1234").write_bytes(b"half")
    _finish(bench, bench.pieces(), expected)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 120 kB; skip where that is not allowed."""
    place = tmp_path / "bench" / "out"
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=120k", "penstock-test", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a tmpfs: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk(bench: Bench, expected: bytes, tiny_disk: Path) -> None:
    (tiny_disk / "filler").write_bytes(bytes(80_000))
    status, output = bench.run("--jobs", "1")
    assert status == 2
    assert output.count("cannot write the file: No space left on device") == 1
    assert "pieces are kept" in output
    (tiny_disk / "filler").unlink()
    command = ["mount", "-o", "remount,size=16m", str(tiny_disk)]
    subprocess.run(command, check=True)
    _finish(bench, bench.pieces(), expected)
