# SPDX-License-Identifier: MIT
"""How processes are killed without waiting for ever.

A process that is inside a system call of a file system whose servers do not answer
(state "D" of ``ps``) ends only when the call returns. It is abandoned: nobody waits for
it any more, and it is reaped when it has ended.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from typing import Any, Final

__all__ = ["KILL_S", "end_process"]

#: A killed process that has not ended after this time is abandoned (s).
KILL_S: Final = 5.0
#: Abandoned processes. They are kept so that they can be reaped later.
_ABANDONED: Final[list[subprocess.Popen[Any]]] = []


def end_process(process: subprocess.Popen[Any]) -> bool:
    """Kill a process, wait for its end for `KILL_S` at most, and close its pipes.

    Returns False if the process could not be killed and is abandoned.
    """
    _ABANDONED[:] = [each for each in _ABANDONED if each.poll() is None]
    process.kill()
    try:
        process.wait(KILL_S)
    except subprocess.TimeoutExpired:
        _ABANDONED.append(process)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    return process.returncode is not None
