# SPDX-License-Identifier: MIT
"""The commands of the MooseFS driver. The tools are scripts that record their calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.staging.drivers.moosefs import MooseFs
from support.tools import RecordedTools, install_tools

ROOT, JOB = Path("/fs"), Path("/fs/job")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedTools:
    names = ("mfsscadmin", "mfssetsclass")
    return install_tools(tmp_path / "tools", monkeypatch, *names)


def test_a_storage_class_is_made_for_the_labels(tools: RecordedTools) -> None:
    MooseFs(ROOT).assign(JOB, ["B", "A", "B"])
    assert tools.calls == [
        "mfsscadmin /fs list",
        "mfsscadmin /fs create -m s A+B penstock_AB",
        "mfssetsclass penstock_AB /fs/job",
    ]


def test_a_storage_class_that_exists_is_used(tools: RecordedTools) -> None:
    tools.answer("1 : default\n2 : penstock_AB\n")
    MooseFs(ROOT).assign(JOB, ["A", "B"])
    assert tools.calls == ["mfsscadmin /fs list", "mfssetsclass penstock_AB /fs/job"]


def test_a_class_whose_name_begins_the_same_is_another_class(
    tools: RecordedTools,
) -> None:
    tools.answer("penstock_AB\n")
    MooseFs(ROOT).assign(JOB, ["A"])
    assert "mfsscadmin /fs create -m s A penstock_A" in tools.calls


@pytest.mark.parametrize("label", ["AB", "a", "", "1", "\u00c4"])
def test_a_label_is_one_capital_letter(tools: RecordedTools, label: str) -> None:
    with pytest.raises(InputError, match=r"is not the label .*single letters, A to Z"):
        MooseFs(ROOT).assign(JOB, [label])
    assert tools.calls == []


def test_a_class_can_be_made_before_a_folder_gets_it(tools: RecordedTools) -> None:
    """The daemon makes it, and a process of the user assigns the folder."""
    driver = MooseFs(ROOT)
    driver.prepare(["B", "A"])
    assert tools.calls == [
        "mfsscadmin /fs list",
        "mfsscadmin /fs create -m s A+B penstock_AB",
    ]
    assert driver.for_user("ann") is driver


def test_sub_folders_go_to_the_targets_as_well(
    tools: RecordedTools, tmp_path: Path
) -> None:
    """New ones inherit them; those that are there already are assigned."""
    job = tmp_path / "job"
    (job / "a" / "b").mkdir(parents=True)
    (job / "file").touch()
    (job / "link").symlink_to(tmp_path)
    tools.answer("penstock_A\n")
    MooseFs(tmp_path).assign(job, ["A"])
    assert tools.calls[1:] == [
        f"mfssetsclass penstock_A {job}",
        f"mfssetsclass penstock_A {job}/a {job}/a/b",
    ]
