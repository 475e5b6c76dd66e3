# SPDX-License-Identifier: MIT
"""``penstock top`` into a pipe: frames until the reader closes it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from contextlib import contextmanager
from penstock.cli import main
from penstock.cli.live import top

@contextmanager
def frame_maker(*_, **__):
    yield lambda: "a frame"

top._frame_maker = frame_maker
sys.exit(main(["top", "--every", "50 ms"]))
"""


def test_frames_are_printed_until_the_reader_closes_the_pipe() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as penstock:
        assert penstock.stdout is not None
        assert penstock.stderr is not None
        assert penstock.stdout.readline() == b"a frame\n"
        assert penstock.stdout.readline() == b"a frame\n"
        penstock.stdout.close()
        assert penstock.wait(120) == 0
        assert penstock.stderr.read() == b""
