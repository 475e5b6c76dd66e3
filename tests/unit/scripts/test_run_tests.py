# SPDX-License-Identifier: MIT
"""A few failed tests are repeated alone; anything worse is red at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from run_tests import MOST_REPEATED

SCRIPT = Path(__file__).parents[3] / "scripts" / "run_tests.py"
#: Fails in its first run only, in whatever process.
FAILS_ONCE = """
import os
from pathlib import Path

import pytest

@pytest.mark.parametrize("number", range(COUNT))
def test_once(number):
    seen = Path(__file__).with_name(f"seen{number}")
    if not seen.exists():
        seen.touch()
        ACT

def test_always_good():
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of tests that no setting of penstock reaches."""
    (tmp_path / "pytest.ini").touch()
    return tmp_path


def _run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout


def _write(folder: Path, act: str, count: int = 1) -> None:
    text = FAILS_ONCE.replace("COUNT", str(count)).replace("ACT", act)
    (folder / "test_toy.py").write_text(text)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_few_that_pass_alone_are_named(folder: Path, workers: str) -> None:
    _write(folder, "assert False", 2)
    status, output = _run(folder, "-n", workers)
    assert status == 0
    lines = output.splitlines()
    named = [line for line in lines if line.startswith("failed beside other tests")]
    assert sorted(named) == [
        f"failed beside other tests, passed alone: test_toy.py::test_once[{number}]"
        for number in range(2)
    ]
    (closing,) = (line for line in lines if " passed in " in line)
    assert "2 failed, 1 passed in " in closing


def test_one_that_fails_alone_too_is_red(folder: Path) -> None:
    (folder / "test_toy.py").write_text("def test_never(): assert 0 == 1\n")
    status, output = _run(folder)
    assert status == 1
    assert "passed alone" not in output
    # Both failures are shown.
    assert output.count("assert 0 == 1") >= 2


@pytest.mark.parametrize(
    ("act", "count", "arguments"),
    [
        ("assert False", MOST_REPEATED + 1, ()),
        ("os._exit(3)", 1, ("-n", "1")),
        ("pytest.exit('enough', 1)", 1, ()),
    ],
    ids=["too-many", "crash", "exit"],
)
def test_what_is_worse_is_red_at_once(
    folder: Path, act: str, count: int, arguments: tuple[str, ...]
) -> None:
    _write(folder, act, count)
    status, output = _run(folder, *arguments)
    assert status != 0
    assert "repeating" not in output


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_file_that_cannot_be_collected_is_red_at_once(
    folder: Path, workers: str
) -> None:
    _write(folder, "assert False")
    (folder / "test_broken.py").write_text("import no_such_module\n")
    options = ("--continue-on-collection-errors", "-n", workers)
    status, output = _run(folder, *options)
    assert status != 0
    assert "repeating" not in output


def test_nothing_is_repeated_if_all_pass(folder: Path) -> None:
    _write(folder, "pass")
    status, output = _run(folder)
    assert status == 0
    assert "repeating" not in output
    assert output.splitlines()[-1].startswith("=")
