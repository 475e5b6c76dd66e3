# SPDX-License-Identifier: MIT
"""No thread of a program keeps another one from the end of a drain."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.jobs import compiled
from support.stages import Stage

#: As in ``busy.c``.
_THREADS, _NUMBERS = 24, 375


@pytest.mark.parametrize("call", ["sync", "fork", "read"])
def test_threads_that_never_stop_to_write_hold_up_no_drain(
    memory_stage: Stage, tmp_path: Path, call: str
) -> None:
    busy = compiled(tmp_path / "busy", "busy.c")
    done = memory_stage.run(busy, call)
    assert (done.returncode, done.stderr) == (0, b"")
    rounds = [int(line) for line in done.stdout.split()]
    assert len(rounds) == _THREADS
    expected = [number.to_bytes(8, sys.byteorder) * _NUMBERS for number in rounds]
    if call == "read":
        shared = memory_stage.folder / "shared"
        assert shared.read_bytes() == b"".join(expected)
    else:
        for thread, data in enumerate(expected):
            own = memory_stage.folder / f"own{thread}"
            assert own.read_bytes() == data * 20
    assert memory_stage.left_over() == []
