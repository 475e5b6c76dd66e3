# SPDX-License-Identifier: MIT
"""``penstock new-policy``: what it writes works as it is, and replaces nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import main

ROOT = Path(__file__).parents[4]
FILES = [
    "README.md",
    "penstock_most_nodes.py",
    "pyproject.toml",
    "test_penstock_most_nodes.py",
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_writes_four_files_and_says_what_to_do_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-policy", "most-nodes"]) == 0
    assert _names(tmp_path) == ["penstock-most-nodes"]
    assert _names(tmp_path / "penstock-most-nodes") == FILES
    printed = capsys.readouterr().out
    assert "cd penstock-most-nodes\n" in printed
    assert "penstock compare --policy most-nodes\n" in printed


def test_the_policy_does_not_call_itself_a_template(tmp_path: Path) -> None:
    assert main(["new-policy", "most-nodes", "-o", "a/b"]) == 0
    text = (tmp_path / "a" / "b" / "penstock_most_nodes.py").read_text()
    assert text.startswith('"""Serve the application with the most nodes first.\n')
    assert "template" not in text
    assert "How to use" not in text
    assert "SPDX" not in text
    assert "@kernel\ndef allocate(view: View, rates: Floats) -> float:" in text


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert main(["new-policy", "most-nodes", "-o", "mine"]) == 0
    assert _names(tmp_path / "mine") == FILES


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_nothing_is_overwritten(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "mine"
    if kind == "file":
        taken.write_text("mine")
    elif kind == "folder":
        taken.mkdir()
        (taken / "README.md").write_text("mine")
    else:
        taken.symlink_to("nowhere")
    assert main(["new-policy", "most-nodes", "-o", "mine"]) == 2
    assert "mine: this exists already; nothing was written" in capsys.readouterr().err
    assert _names(tmp_path) == ["mine"]
    if kind == "folder":
        assert _names(taken) == ["README.md"]
        assert (taken / "README.md").read_text() == "mine"


@pytest.mark.parametrize(
    "name",
    [
        *("", "Mine", "my policy", "my_policy", "-", "1st", "a--b", "a-", "../x"),
        *("x" * 41, "a\n", "é", "mine.py"),
    ],
)
def test_names_that_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-policy", "--", name]) == 2
    message = capsys.readouterr().err
    assert message.startswith("penstock: NAME: ")
    assert "is not a name for a policy (write lower-case words" in message
    assert _names(tmp_path) == []


@pytest.mark.parametrize("name", ["fcfs", "set-10", "help"])
def test_names_of_penstock_itself_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-policy", name]) == 2
    assert "is taken by penstock itself" in capsys.readouterr().err
    assert _names(tmp_path) == []


def test_its_tests_pass_and_it_is_found_by_its_name_once_installed(
    tmp_path: Path,
) -> None:
    setuptools = pytest.importorskip("setuptools", reason="builds the package")
    if int(setuptools.__version__.split(".")[0]) < 71:
        pytest.skip("needs setuptools 71 or newer, which builds wheels itself")
    assert main(["new-policy", "most-nodes"]) == 0
    package, site = tmp_path / "penstock-most-nodes", tmp_path / "site"
    path = os.pathsep.join([str(site), *filter(None, sys.path)])

    def run(*words: str, cwd: Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "6 passed" in run("pytest", "-q", "-p", "no:cacheprovider", cwd=package)
    options = ("--no-deps", "--no-build-isolation", "--target", str(site))
    run(
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        *options,
        ".",
        cwd=package,
    )
    three = str(ROOT / "examples" / "three.json")
    table = run(
        *("penstock", "compare", three, "--no-bound"),
        *("--policy", "most-nodes:patience=0.5"),
        cwd=tmp_path,
    )
    assert "\nmost-nodes:patience=0.5 " in table


def test_the_current_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-policy", "most-nodes", "-o", "."]) == 2
    assert "this is the current folder (name a folder" in capsys.readouterr().err
    assert _names(tmp_path) == []


def test_the_folder_has_the_permissions_of_a_new_folder(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        assert main(["new-policy", "most-nodes"]) == 0
    finally:
        os.umask(mask)
    assert (tmp_path / "penstock-most-nodes").stat().st_mode & 0o777 == 0o750


def test_a_full_disk_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    folder = tmp_path / "mine"
    assert main(["new-policy", "mine", "-o", str(folder)]) == 2
    assert capsys.readouterr().err.startswith(
        f"penstock: {folder}: cannot write the package: No space left on device (free"
    )
    assert list(tmp_path.iterdir()) == []
