# SPDX-License-Identifier: MIT
"""Manual pages: every command has one, groff accepts it, and it says what help says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.cli import COMMANDS, main
from penstock.cli.description import Argument, Command, describe
from penstock.cli.manual import manual_page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "man1"
    assert main(["manual", "-o", str(path)]) == 0
    return path


def test_every_command_has_a_page(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert names == {"penstock.1", *(f"penstock-{name}.1" for name in COMMANDS)}


def test_pages_have_every_option_of_their_command(folder: Path) -> None:
    for command in describe().children:
        text = (folder / f"{'-'.join(command.path)}.1").read_text().replace("\\-", "-")
        for option in command.options:
            assert f".B {option.title}\n" in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_accepts_all_pages(folder: Path) -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-k", "-Tutf8", *sorted(folder.iterdir())],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man")
def test_man_shows_a_page(folder: Path) -> None:
    done = subprocess.run(
        ["man", "-l", str(folder / "penstock-ctl.1")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )
    assert "penstock-ctl - show and change live control" in done.stdout
    assert (
        "       explain JOB\n              explain the grant of a job\n" in done.stdout
    )


def test_texts_are_escaped() -> None:
    odd = Argument(("-x",), "A\\B", "'quoted' and ``code-x``", ())
    command = Command(
        ("penstock", "odd"),
        "do .this",
        ".dots\nare text\n\n    kept  as\n    it is",
        "penstock odd [-x A\\B]",
        (odd,),
        (),
        (),
    )
    page = manual_page(command)
    assert ".B \\-x A\\eB\n\\&'quoted' and \\fBcode\\-x\\fR\n" in page
    assert ".PP\n\\&.dots are text\n.PP\n.nf\n    kept  as\n    it is\n.fi\n" in page


def test_the_status_of_run_is_that_of_the_program(folder: Path) -> None:
    assert "The exit status of the program." in (folder / "penstock-run.1").read_text()
    assert ".B 130\n" in (folder / "penstock-compare.1").read_text()


def test_status_1_is_named_where_a_command_has_it(folder: Path) -> None:
    assert ".B 1\na goal was missed\n" in (folder / "penstock-bench.1").read_text()
    assert "cannot be controlled, or" in (folder / "penstock-check.1").read_text()
    assert ".B 1\n" not in (folder / "penstock-compare.1").read_text()
