# SPDX-License-Identifier: MIT
"""The real programs of the benchmark: each ends well and leaves its inputs alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from penstock.bench.cost import harmless_programs
from penstock.bench.cost.harmless_programs import (
    PROGRAMS,
    BenchProgram,
    forget_cached,
    make_inputs,
    missing_needs,
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make small inputs."""
    folder = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        for name, size in {
            "_DATA_BYTES": 16 << 20,
            "_LINES": 1000,
            "_SMALL_FILES": 20,
            "_ROWS": 100,
        }.items():
            patch.setattr(harmless_programs, name, size)
        make_inputs(folder)
    return folder


def _files(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files if "/out/" not in str(path)}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_ends_well_and_its_inputs_stay(
    program: BenchProgram, inputs: Path
) -> None:
    if missing := missing_needs(program):
        pytest.skip(f"needs {', '.join(missing)}")
    subprocess.run(["rm", "-rf", "out"], cwd=inputs, check=True)
    (inputs / "out").mkdir()
    before = _files(inputs)
    done = subprocess.run(
        program.words, cwd=inputs, capture_output=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert _files(inputs) == before


def test_there_are_thirty_programs_of_different_names() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) >= 30


def test_inputs_are_the_same_every_time_and_kept_when_they_leave_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harmless_programs, "_DATA_BYTES", 1 << 16)
    monkeypatch.setattr(harmless_programs, "_LINES", 10)
    contents = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        make_inputs(folder)
        forget_cached(folder)
        # An archive also contains times.
        contents.append(
            {
                path.removeprefix(str(folder)): data
                for path, data in _files(folder).items()
                if not path.endswith(".tar")
            }
        )
    assert contents[0] == contents[1]


def test_needs_that_are_missing_are_named() -> None:
    program = BenchProgram("a", ("a",), ("sh", "no-such-program", "python:no_module"))
    assert missing_needs(program) == ["no-such-program", "python:no_module"]
