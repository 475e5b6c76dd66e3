# SPDX-License-Identifier: MIT
"""Wait for the release of an application, join its job, and execute its program.

The interpreter starts before the release, so that its start-up time is not part of the
application and the controller counts the age from the release, as in the model.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from penstock.live.node.launch.execute import execute_program
from penstock.live.node.launch.run import JobClaims, controlled_environment
from penstock.live.settings import Settings

__all__ = ["main"]


def main(words: Sequence[str]) -> None:
    """Print "ready", read the release (monotonic clock, ns), wait, execute the program.

    Parameters
    ----------
    words
        Folder of the daemon, name of the job, its number of nodes, and the program
        with its arguments. The release is inserted as the first argument.
    """
    folder, job, nodes, program, *rest = words
    settings = Settings(folder=folder)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    release = sys.stdin.readline().strip()
    if release:
        time.sleep(max(int(release) * 1e-9 - time.monotonic(), 0.0))
        environment = controlled_environment(settings, job, JobClaims(int(nodes)))
        execute_program([program, release, *rest], environment)


if __name__ == "__main__":
    main(sys.argv[1:])
