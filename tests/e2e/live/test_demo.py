# SPDX-License-Identifier: MIT
"""``make demo-live``, shortened: its output, and that it leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.launchers import FOREGROUND
from support.mounts import why_no_mounts
from support.waiting import LIMIT_S, until

SCRIPT = Path(__file__).parents[3] / "scripts/demo-live.sh"
pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
    pytest.mark.skipif(
        bool(why_no_mounts()), reason=why_no_mounts() or "there are mounts"
    ),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder with a short name: the path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="p") as name:
        yield Path(name)


def _demo(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK")}
    environment |= {"PENSTOCK": f"{sys.executable} -m penstock", "COLUMNS": "80"}
    with log.open("wb") as stream:
        return subprocess.Popen(
            [*FOREGROUND, "sh", SCRIPT, "2"],
            env=environment | {"TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )


def _left(folder: Path) -> list[str]:
    """Return the files, mounts and processes that a demo has left behind."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return [
        *map(str, folder.iterdir()),
        *(line for line in mounts if str(folder) in line),
        *(line for line in _commands() if str(folder) in line),
    ]


def _commands() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # It may have ended meanwhile.
        with suppress(OSError):
            yield path.read_text(errors="replace").replace("\0", " ")


def test_the_demo_shows_both_policies_and_writers_outlive_the_controller(
    tmp_path: Path, folder: Path
) -> None:
    log = tmp_path / "log"
    assert _demo(folder, log).wait(LIMIT_S) == 0, log.read_text()
    text = log.read_text()
    assert "policy fair-share" in text
    assert "policy greedy-yield" in text
    # A terminal of 80 columns shows the names of all jobs.
    frame = text.partition("policy fair-share")[2].partition("==")[0]
    assert "climate" in frame
    assert "training" in frame
    assert "both have ended well" in text
    assert "Traceback" not in text
    until(lambda: not _left(folder))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_interrupted_cleans_up(
    tmp_path: Path, folder: Path, number: int
) -> None:
    log = tmp_path / "log"
    demo = _demo(folder, log)
    try:
        until(lambda: "two writers" in log.read_text() or demo.poll() is not None)
    finally:
        demo.send_signal(number)
        status = demo.wait(LIMIT_S)
    assert status == 128 + number, log.read_text()
    until(lambda: not _left(folder))
