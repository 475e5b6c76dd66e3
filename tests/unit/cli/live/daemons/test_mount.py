# SPDX-License-Identifier: MIT
"""What ``penstock mount`` says about running mounts; nothing is mounted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli.live.daemons import mount
from penstock.mount import points
from penstock.mount.control import ApplicationState, SchedulerStatus


def application(name: str, operations: int, waiting: int) -> ApplicationState:
    return ApplicationState(
        name=name,
        throughput_bytes_per_s=1e6,
        latency_s=0.05,
        queued=1,
        p95_s=None,
        bytes_per_s=0.0,
        requests=2,
        moved_bytes=3,
        windows=4,
        kept_windows=2,
        operations=operations,
        queued_operations=waiting,
    )


def test_metadata_operations_of_applications_are_shown() -> None:
    applications = [application("a", 1234, 0), application("b", 56, 7)]
    status = SchedulerStatus(
        *("sfq", 4.0, 1, "", applications, {}),
        metadata_depth=8,
        metadata_outstanding=3,
    )
    first, head, *rows, last = mount.scheduler_lines(status)
    assert first == "sfq: 1 under way, depth 4"
    assert head.split()[-1] == "operations"
    assert [row.split("50%")[1].strip() for row in rows] == ["1234", "56 (7 queued)"]
    assert last == "metadata: 3 under way, depth 8"


@pytest.mark.parametrize(
    ("owner", "remedy"),
    [(0, "(run as root)"), (7654321, "(run as 7654321, or as root)")],
)
def test_a_mount_of_another_user_cannot_be_unmounted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    owner: int,
    remedy: str,
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        f"43 22 0:60 / /mnt/user rw - fuse.penstock /data rw,user_id={owner}\n"
    )
    monkeypatch.setattr(points, "_MOUNTS", table)
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    assert main(["mount", "--unmount", "--force", "/mnt/user"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "/mnt/user: cannot be unmounted: user " in said
    assert remedy in said
    assert "fuser" not in said
