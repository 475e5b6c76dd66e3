# SPDX-License-Identifier: MIT
"""Staging and every wrapped call: the same answers and bytes, nothing left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.jobs import Job
from support.stages import Stage, files, scenes_of

#: Scenes that wait for a grant that this test does not give.
_LEFT_OUT = {"handler", "longjmp", "cancel"}


@pytest.mark.parametrize("capacity", [64 << 10, 64 << 20], ids=["small", "large"])
@pytest.mark.parametrize("scene", sorted(scenes_of("calls.c") - _LEFT_OUT))
def test_a_call_answers_as_without_staging(
    stage: Stage, calls: Path, scene: str, capacity: int
) -> None:
    plain = stage.run(calls, scene, environment={})
    left = files(stage.folder)
    stage.empty()
    done = stage.run(calls, scene, environment=stage.environment(capacity))
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)
    assert files(stage.folder) == left
    assert stage.left_over() == []


@pytest.mark.parametrize("scene", ["write", "fork", "stdio_write", "stdio_text"])
def test_a_scene_is_staged_at_all(
    stage: Stage, job: Job, calls: Path, scene: str
) -> None:
    """What is compared above would be equal without staging too."""
    environment = stage.environment(page=job.page.path)
    assert stage.run(calls, scene, environment=environment).returncode == 0
    staged = job.page.staged
    assert staged.absorbed_bytes > 0
    assert staged.refused == 0
