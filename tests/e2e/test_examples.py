# SPDX-License-Identifier: MIT
"""Every example is run, and prints what the file beside it says."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("[0-9]*.py"))
#: An example that needs more than penstock -> the command that it needs.
NEEDS = {"06_live_control": "gcc"}


def test_examples_are_numbered_without_a_gap() -> None:
    numbers = [int(path.name.partition("_")[0]) for path in EXAMPLES]
    assert len(numbers) >= 6
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_prints_its_output_file(path: Path, tmp_path: Path) -> None:
    needed = NEEDS.get(path.stem)
    if needed and shutil.which(needed) is None:
        pytest.skip(f"{path.name} needs {needed}")
    copy = tmp_path / "examples"
    shutil.copytree(FOLDER, copy)
    done = subprocess.run(
        [sys.executable, path.name],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == path.with_suffix(".out").read_text()
    assert done.stderr == ""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short_and_says_what_it_shows(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 80
    assert '"""' in text.splitlines()[1]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_documentation_shows_the_example(path: Path) -> None:
    pages = [page.read_text() for page in (FOLDER.parent / "docs").rglob("*.md")]
    for name in (path.name, path.with_suffix(".out").name):
        assert any(f"examples/{name}" in page for page in pages), name
