# SPDX-License-Identifier: MIT
"""Programs of all kinds with staged writes: same bytes, same output, same status."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.programs import PROGRAMS, missing, observe, prepare

#: Programs whose writes all go through a journal.
STAGED = {
    *("dd", "tar", "python, buffered", "python, unbuffered", "C program"),
    *("fio sync", "fio psync", "fio vsync"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_with_staged_writes(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    if needed := missing(program) or prepare(program, tmp_path):
        pytest.skip(f"needs {needed}")
    free = observe(program, tmp_path, "free")
    staged = observe(program, tmp_path, "staged")
    assert staged.result == free.result
    left = [path.name for path in (tmp_path / "journals").iterdir()]
    assert set(left) <= {"shim.log"}
    if name in STAGED:
        assert staged.staged >= staged.left
