# SPDX-License-Identifier: MIT
"""The origin of results: files that count, and files that do not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import penstock
from penstock.experiments.reproduction import Scale
from penstock.experiments.runners import origin
from penstock.experiments.runners.origin import (
    origin_of,
    showing_digest,
    source_digest,
)
from penstock.papers import get_figure

PACKAGE = Path(penstock.__file__).parent


def _write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Make a small package that has files of all kinds."""
    for name in (
        *("__init__.py", "policies/fcfs.py", "workloads/data/apex.csv"),
        *(
            "cli/live/run.py",
            "live/node/agent.py",
            "native/shim/shim.h",
            "mount/limits.py",
        ),
        "policies/__pycache__/fcfs.py",
    ):
        _write(tmp_path, name, "1")
    return tmp_path


def _digest(root: Path) -> str:
    source_digest.cache_clear()
    return source_digest(root)


@pytest.mark.parametrize(
    "name", ["__init__.py", "policies/fcfs.py", "workloads/data/apex.csv", "sim/new.py"]
)
def test_files_that_can_change_a_row_count(package: Path, name: str) -> None:
    before = _digest(package)
    assert _digest(package) == before
    _write(package, name, "2")
    assert _digest(package) != before


def test_a_file_counts_by_its_name(package: Path) -> None:
    before = _digest(package)
    (package / "policies/fcfs.py").rename(package / "policies/other.py")
    assert _digest(package) != before


@pytest.mark.parametrize(
    "name",
    [
        "cli/live/run.py",
        "live/node/agent.py",
        "mount/x.py",
        "policies/__pycache__/fcfs.py",
    ],
)
def test_files_that_cannot_change_a_row_do_not_count(package: Path, name: str) -> None:
    before = _digest(package)
    _write(package, name, "2")
    assert _digest(package) == before


@pytest.mark.parametrize("name", ["papers/p1/x.py", "experiments/output/page.py"])
def test_files_that_show_results_count_apart(package: Path, name: str) -> None:
    before, shown = _digest(package), showing_digest(package)
    _write(package, name, "2")
    showing_digest.cache_clear()
    assert _digest(package) == before
    assert showing_digest(package) != shown


@pytest.mark.parametrize(("name", "counts"), [("p1-table2", True), ("p1-fig2", False)])
def test_a_study_that_a_paper_declares_itself_depends_on_the_paper(
    monkeypatch: pytest.MonkeyPatch, name: str, counts: bool
) -> None:
    study = get_figure(name).study(Scale.SMOKE)
    assert not isinstance(study, tuple)
    before = origin_of(study)
    monkeypatch.setattr(origin, "showing_digest", lambda: "other")
    assert (origin_of(study) != before) is counts


def test_an_edited_policy_of_penstock_itself_is_other_code(tmp_path: Path) -> None:
    copy = tmp_path / "penstock"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("live", "*.pyc"))
    assert source_digest(copy) == source_digest()
    source_digest.cache_clear()
    with (copy / "policies" / "fcfs.py").open("a") as stream:
        stream.write("# other\n")
    assert source_digest(copy) != source_digest()
