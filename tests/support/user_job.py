# SPDX-License-Identifier: MIT
"""Start a program under control as another user, who has no access to this checkout.

``python -m support.user_job UID SOCKET LIBRARY JOB PROGRAM...``
"""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from penstock.live.node.launch.execute import execute_program
from penstock.live.node.launch.shim import shim_environment
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import AttachProcess, PageAssigned

__all__: list[str] = []


def main() -> None:
    """Become the user, attach to the daemon, and execute the program."""
    user, socket, library, job, *program = sys.argv[1:]
    entry = pwd.getpwuid(int(user))
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    with Client(Path(socket)) as client:
        reply = client.ask(AttachProcess(job, folder=str(Path.cwd())))
    assert isinstance(reply, PageAssigned), reply
    prefixes = [Path(prefix) for prefix in reply.prefixes]
    environment = shim_environment(Path(reply.page), prefixes, library=Path(library))
    execute_program(program, environment)


if __name__ == "__main__":
    main()
