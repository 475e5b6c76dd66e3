# SPDX-License-Identifier: MIT
"""Real programs: the same results with and without control, and expected counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.programs import PROGRAMS, input_bytes, missing, observe, prepare, seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_with_and_without_control(
    name: str, tmp_path: Path
) -> None:
    program = PROGRAMS[name]
    if needed := missing(program) or prepare(program, tmp_path):
        pytest.skip(f"needs {needed}")
    free = observe(program, tmp_path, "free")
    assert free.result.status == 0, free.result.errors
    controlled = observe(program, tmp_path, "control")
    assert controlled.result == free.result
    assert seen(controlled.written, controlled.left) == program.writes
    if program.reads:
        read = seen(controlled.read, input_bytes(program, tmp_path))
        assert read == program.sees_reads
    off = observe(program, tmp_path, "off")
    assert off.result == free.result
    assert off.written == off.read == 0
    assert observe(program, tmp_path, "vanished").result == free.result
