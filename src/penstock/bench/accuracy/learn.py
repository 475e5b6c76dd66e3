# SPDX-License-Identifier: MIT
"""What `bandwidth = learn` finds: two jobs on a mount whose limit nobody has told.

A daemon without any setting controls two programs (dd), two that write, two that read,
or one of each. From 10 s after the second one starts, the shares of the two and the
bandwidth that is believed are compared with the policy's shares and with the limit of
the mount. Then the limit is halved and doubled while the programs run.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.bench import BenchSettings, Measurement
from penstock.bench.testbed import (
    LimitedMount,
    clean_environment,
    high_priority,
    limited_mount,
    running_daemon,
    temporary_folder,
)
from penstock.live.ending import end_process
from penstock.live.settings import Settings
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import GetStatus, StatusDocument

__all__ = ["LearningScene", "measure"]

_LIMIT: Final = 12e6
#: Time from the start of the second job to the measurement, and its length (s).
_SETTLE_S: Final = 10.0
_OBSERVE_S: Final = 10.0
#: The first job is alone for this time (s).
_ALONE_S: Final = 2.0
_BLOCK_BYTES: Final = 256 << 10
#: Without control, a job with calls of this size gets more than the other one.
_LARGE_BLOCK_BYTES: Final = 1 << 20
#: Size of the files that are read: more than is read (bytes).
_FILE_BYTES: Final = 8 << 30
_SHARE_ERROR: Final = 0.02
_BELIEF_ERROR: Final = 0.05
#: Factors by which the limit is changed while the jobs run.
_CHANGES: Final = (1.0, 0.5, 2.0)
_PAIRS: Final = {
    "two writers": ("write", "write"),
    "two readers": ("read", "read"),
    "a reader and a writer": ("read", "write"),
    "two writers, calls of 1 MiB and 256 KiB": ("write large", "write"),
}


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield the shares and the learnt bandwidth of each pair of jobs."""
    for name, kinds in _PAIRS.items():
        yield from _measure_pair(settings.folder, name, kinds)


def _measure_pair(
    folder: Path, name: str, kinds: tuple[str, str]
) -> Iterator[Measurement]:
    with ExitStack() as stack:
        root = stack.enter_context(temporary_folder(folder))
        stack.enter_context(high_priority())
        mount = stack.enter_context(limited_mount(root, _LIMIT))
        daemon = stack.enter_context(running_daemon(root / "s"))
        daemon.await_ready()
        scene = LearningScene(root / "s", mount)
        stack.enter_context(scene.job("job1", kinds[0]))
        time.sleep(_ALONE_S)
        alone = scene.status().jobs[0]
        yield Measurement(
            f"{name}: the first one alone: held up", alone.held_up_s, "s", 0.0, 0.0
        )
        stack.enter_context(scene.job("job2", kinds[1]))
        for factor in _CHANGES:
            mount.set_limit(factor * _LIMIT)
            time.sleep(_SETTLE_S)
            yield from _compare(scene, f"{name}, limit x {factor:g}", factor * _LIMIT)


@dataclass(frozen=True)
class LearningScene:
    """A daemon and a mount on which jobs are started."""

    folder: Path
    """Folder of the daemon."""
    mount: LimitedMount

    @contextmanager
    def job(self, name: str, kind: str) -> Iterator[None]:
        """Run a program that reads or writes under ``penstock run`` in the block."""
        file = self.mount.point / name
        if kind == "read":
            with (self.mount.folder.parent / "backing" / name).open("wb") as stream:
                stream.truncate(_FILE_BYTES)
        reads, is_large = kind == "read", kind == "write large"
        ends = (file, "/dev/null") if reads else ("/dev/zero", file)
        block_bytes = _LARGE_BLOCK_BYTES if is_large else _BLOCK_BYTES
        command = [
            *(sys.executable, "-m", "penstock", "run", f"--folder={self.folder}"),
            *(f"--job={name}", "--", "dd", f"if={ends[0]}", f"of={ends[1]}"),
            *(f"bs={block_bytes}", "status=none"),
        ]
        process = subprocess.Popen(  # noqa: S603 - our own program
            command, env=clean_environment(), cwd=self.mount.point
        )
        try:
            yield
        finally:
            end_process(process)

    def status(self) -> StatusDocument:
        """Return the status of the daemon."""
        with Client(Settings(folder=str(self.folder)).socket) as client:
            reply = client.ask(GetStatus())
        assert isinstance(reply, StatusDocument)  # noqa: S101 - for the type checker
        return reply


def _compare(scene: LearningScene, name: str, limit: float) -> Iterator[Measurement]:
    """Yield shares and beliefs, as averages over `_OBSERVE_S`."""
    begin, moved = time.monotonic(), _moved(scene.status())
    beliefs = []
    while time.monotonic() - begin < _OBSERVE_S:
        time.sleep(0.1)
        status = scene.status()
        beliefs += [status.bandwidth] if status.bandwidth else []
    drawn = {
        job: moved_bytes - moved[job] for job, moved_bytes in _moved(status).items()
    }
    for job, drawn_bytes in sorted(drawn.items()):
        part = drawn_bytes / max(sum(drawn.values()), 1.0)
        yield Measurement(
            f"{name}: {job}: share / policy's share",
            part * len(drawn),
            "",
            1.0 - _SHARE_ERROR,
            1.0 + _SHARE_ERROR,
        )
    yield Measurement(
        f"{name}: learnt bandwidth / limit",
        sum(beliefs) / max(len(beliefs), 1) / limit,
        "",
        1.0 - _BELIEF_ERROR,
        1.0 + _BELIEF_ERROR,
    )
    elapsed = time.monotonic() - begin
    yield Measurement(
        f"{name}: drawn together / limit", sum(drawn.values()) / elapsed / limit, ""
    )


def _moved(status: StatusDocument) -> dict[str, float]:
    return {job.job_name: job.moved_bytes for job in status.jobs}
