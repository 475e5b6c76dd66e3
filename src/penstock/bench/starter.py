# SPDX-License-Identifier: MIT
"""Waits for the release of an application, enters its job and becomes it.

The interpreter is started beforehand: what that takes is no part of the application,
and the controller counts its age from the release on, as the model does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from penstock.live.node.run import controlled_environment, execute_program
from penstock.live.settings import Settings

__all__ = ["main"]


def main(words: Sequence[str]) -> None:
    """Say "ready", read the release (monotonic, ns), wait for it, become the program.

    Parameters
    ----------
    words
        Folder of the daemon, name of the job, its nodes, and the program with its
        arguments; the release becomes the first of them.
    """
    folder, job, nodes, program, *rest = words
    settings = Settings(folder=folder)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    release = sys.stdin.readline().strip()
    if release:
        time.sleep(max(int(release) * 1e-9 - time.monotonic(), 0.0))
        environment = controlled_environment(settings, job, nodes=int(nodes))
        execute_program([program, release, *rest], environment)


if __name__ == "__main__":
    main(sys.argv[1:])
