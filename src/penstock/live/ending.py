# SPDX-License-Identifier: MIT
"""How processes are killed without waiting for ever.

A process that is inside a system call of a file system whose servers do not answer
(state "D" of ``ps``) ends only when the call returns. It is abandoned: nobody waits for
it any more. `subprocess` reaps it when a later process is started after its end.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any, Final, NamedTuple

__all__ = ["KILL_S", "Ending", "end_process"]

#: A killed process that has not ended after this time is abandoned (s).
KILL_S: Final = 5.0


class Ending(NamedTuple):
    """What became of a process that was killed."""

    is_abandoned: bool
    """True if it could not be killed."""
    printed: Any
    """All that `Popen.communicate` has read of its standard output, now and before."""


def end_process(process: subprocess.Popen[Any], *, with_group: bool = False) -> Ending:
    """Kill a process, wait for its end for `KILL_S` at most, and close its pipes.

    Parameters
    ----------
    with_group
        Kill all processes of its group. It is the first one in this group.
    """
    if with_group:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    try:
        printed = process.communicate(timeout=KILL_S)[0]
    except subprocess.TimeoutExpired as error:
        printed = error.output
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    # A child of its own may still have had its pipes.
    return Ending(process.poll() is None, printed)
