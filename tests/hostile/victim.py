# SPDX-License-Identifier: MIT
"""A user who writes a file under control.

``python -m hostile.victim UID FOLDER DATA JOB MIB``

The process is started by root, gives up all privileges, joins the daemon in FOLDER as
`penstock run` does, prints how long that took (s) and becomes ``dd``. If it is not
controlled, it says so and writes nevertheless.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from hostile.attacker import CALL_BYTES, become
from penstock.errors import PenstockError
from penstock.live.node.launch.execute import execute_program
from penstock.live.node.launch.shim import shim_environment
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import AttachProcess


def main() -> None:
    """Join the daemon, then write."""
    user, folder, data, job, mebibytes = sys.argv[1:]
    library = Path(folder).parent / "libpenstock.so"
    os.chdir(data)
    become(int(user))
    begun_s = time.monotonic()
    try:
        with Client(Path(folder) / "agent.sock") as client:
            reply = client.ask(AttachProcess(job, folder=data))
        prefixes = [Path(prefix) for prefix in reply.prefixes]
        environment = shim_environment(Path(reply.page), prefixes, library=library)
    except PenstockError as error:
        environment = dict(os.environ)
        sys.stderr.write(f"not controlled: {error}\n")
    sys.stderr.write(f"started in {time.monotonic() - begun_s:.4f} s\n")
    sys.stderr.flush()
    blocks = int(mebibytes) * 2**20 // CALL_BYTES
    words = ["dd", "if=/dev/zero", f"of={job}", f"bs={CALL_BYTES}", f"count={blocks}"]
    execute_program(words, environment)


if __name__ == "__main__":
    main()
