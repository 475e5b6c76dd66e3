# SPDX-License-Identifier: MIT
"""The command of the Lustre driver. The tool is a script that records its calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.staging.drivers.lustre import Lustre
from support.tools import RecordedTools, install_tools

JOB = Path("/fs/job")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedTools:
    return install_tools(tmp_path / "tools", monkeypatch, "lfs")


@pytest.mark.parametrize(
    ("targets", "layout"),
    [
        (["0"], "--stripe-count 1 --ost 0"),
        (["4", "7"], "--stripe-count 2 --ost 4,7"),
        (["7", "4", "7"], "--stripe-count 2 --ost 7,4"),
    ],
)
def test_new_files_are_striped_over_the_osts(
    tools: RecordedTools, targets: list[str], layout: str
) -> None:
    Lustre(Path("/fs")).assign(JOB, targets)
    assert tools.calls == [f"lfs setstripe {layout} /fs/job"]


@pytest.mark.parametrize("index", ["OST0", "-1", "", "1.0", "\u00b2", "\u0663"])
def test_an_ost_is_named_by_its_index(tools: RecordedTools, index: str) -> None:
    with pytest.raises(InputError, match=r"is not the index of an OST \(`lfs osts /fs"):
        Lustre(Path("/fs")).assign(JOB, ["0", index])
    assert tools.calls == []


def test_the_message_of_the_tool_is_quoted(tools: RecordedTools) -> None:
    tools.fail("no such OST")
    with pytest.raises(InputError, match=r"/fs/job: lfs setstripe .*: no such OST"):
        Lustre(Path("/fs")).assign(JOB, ["99"])


def test_sub_folders_go_to_the_targets_as_well(
    tools: RecordedTools, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    (job / "a").mkdir(parents=True)
    Lustre(tmp_path).assign(job, ["3"])
    command = "lfs setstripe --stripe-count 1 --ost 3"
    assert tools.calls == [f"{command} {job}", f"{command} {job}/a"]
