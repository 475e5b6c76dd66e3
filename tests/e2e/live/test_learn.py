# SPDX-License-Identifier: MIT
"""Nothing is configured: a lone program is free, and two learn what they can share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.bench.accuracy.learn import LearningScene
from penstock.bench.testbed import limited_mount, running_daemon
from penstock.live.wire.messages import JobStatus
from support.mounts import why_no_mounts
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())

LIMIT = 4e6
#: This machine may be busy: beliefs are compared with a wide bound.
FACTOR = 1.6


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[LearningScene]:
    """Return a daemon without settings, and a mount with a limit."""
    with ExitStack() as stack:
        mount = stack.enter_context(limited_mount(tmp_path, LIMIT))
        daemon = stack.enter_context(running_daemon(tmp_path / "s"))
        daemon.await_ready()
        yield LearningScene(tmp_path / "s", mount)


def job(scene: LearningScene, name: str) -> JobStatus | None:
    """Return the status of a job; None if it does not exist."""
    jobs = {line.job_name: line for line in scene.status().jobs}
    return jobs.get(name)


def has_moved(scene: LearningScene, name: str, moved_bytes: float) -> bool:
    line = job(scene, name)
    return line is not None and line.moved_bytes > moved_bytes


def believes(scene: LearningScene, bandwidth: float) -> bool:
    known = scene.status().bandwidth
    return known is not None and bandwidth / FACTOR < known < bandwidth * FACTOR


@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_lone_program_is_never_held_up(scene: LearningScene, kind: str) -> None:
    with scene.job("a", kind):
        until(lambda: has_moved(scene, "a", 2 * LIMIT))
        line = job(scene, "a")
        assert line is not None
        assert (line.grant, line.held_up_s) == (None, 0.0)


@pytest.mark.parametrize("kinds", [("write", "write"), ("read", "write")])
def test_two_programs_share_what_a_limit_that_changes_leaves(
    scene: LearningScene, kinds: tuple[str, str]
) -> None:
    with scene.job("a", kinds[0]):
        until(lambda: has_moved(scene, "a", LIMIT))
        with scene.job("b", kinds[1]):
            until(lambda: has_moved(scene, "b", LIMIT))
            assert all(line.grant is not None for line in scene.status().jobs)
            until(lambda: believes(scene, LIMIT))
            scene.mount.set_limit(LIMIT / 4.0)
            until(lambda: believes(scene, LIMIT / 4.0))
            scene.mount.set_limit(2.0 * LIMIT)
            until(lambda: believes(scene, 2.0 * LIMIT))
            assert job(scene, "a").held_up_s > 0.0  # type: ignore[union-attr]
        # The other one has ended: the first one is free again.
        until(lambda: job(scene, "b") is None)
        until(lambda: job(scene, "a").grant is None)  # type: ignore[union-attr]
