# SPDX-License-Identifier: MIT
"""The command of the BeeGFS driver. The tool is a script that records its calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.staging.drivers.beegfs import BeeGfs
from support.tools import RecordedTools, install_tools

ROOT = Path("/fs")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedTools:
    return install_tools(tmp_path / "tools", monkeypatch, "beegfs-ctl")


@pytest.mark.parametrize(
    ("directory", "targets"),
    [("job", ["2"]), ("a/job", ["2", "2"]), ("--cfgFile=x", ["2"])],
)
def test_the_path_is_relative_to_the_mount_point(
    tools: RecordedTools, directory: str, targets: list[str]
) -> None:
    BeeGfs(ROOT).assign(ROOT / directory, targets)
    assert tools.calls == [
        f"beegfs-ctl --setpattern --mount=/fs --storagepoolid=2 ./{directory}"
    ]


def test_a_directory_uses_one_pool_only(tools: RecordedTools) -> None:
    with pytest.raises(InputError, match=r"2 storage pools for .*make a pool for each"):
        BeeGfs(ROOT).assign(ROOT / "job", ["1", "2"])
    assert tools.calls == []


@pytest.mark.parametrize("name", ["one", "-1", "", "\u00b2"])
def test_a_pool_is_named_by_its_number(tools: RecordedTools, name: str) -> None:
    with pytest.raises(InputError, match="is not the identifier of a storage pool"):
        BeeGfs(ROOT).assign(ROOT / "job", [name])
    assert tools.calls == []


def test_the_message_of_the_tool_is_quoted(tools: RecordedTools) -> None:
    tools.fail("Unknown storage pool")
    with pytest.raises(InputError, match=r"/fs/job: beegfs-ctl .*: Unknown storage po"):
        BeeGfs(ROOT).assign(ROOT / "job", ["9"])


def test_sub_folders_go_to_the_targets_as_well(
    tools: RecordedTools, tmp_path: Path
) -> None:
    (tmp_path / "job" / "a").mkdir(parents=True)
    BeeGfs(tmp_path).assign(tmp_path / "job", ["3"])
    paths = [call.rpartition(" ")[2] for call in tools.calls]
    assert paths == ["./job", "./job/a"]
