# SPDX-License-Identifier: MIT
"""A job of a real Slurm gets its AdminComment: ``-m support.slurm_comment FOLDER``.

Slurm's database is not there. A script that notes its arguments stands for the command
that changes it; it is mounted over the command, in the mount namespace of this Slurm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from support.daemons import Daemon
from support.users import NOBODY
from support.waiting import until


def note_arguments_of(command: str, folder: Path) -> Path:
    """Mount a script over a command; return the file that gets its arguments."""
    script, notes = folder / "noting", folder / "arguments"
    script.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{notes}\n")
    script.chmod(0o755)
    place = shutil.which(command, path="/usr/sbin:/usr/bin:/sbin:/bin")
    assert place is not None
    subprocess.run(["mount", "--bind", script, place], check=True, timeout=30)
    return notes


def main() -> None:
    """Run a job that writes 4 MB, and wait for its comment."""
    folder = Path(sys.argv[1])
    notes = note_arguments_of("sacctmgr", folder)
    with closing(Daemon(folder / "n1", node="n1", users="all")) as daemon:
        os.chown(daemon.data, NOBODY, NOBODY)
        daemon.start()
        write = "echo $SLURM_JOB_ID; dd if=/dev/zero of=file bs=1M count=4 2>/dev/null"
        done = subprocess.run(
            ["srun", "sh", "-c", write],
            user=NOBODY,
            group=NOBODY,
            extra_groups=(),
            cwd=daemon.data,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        job = done.stdout.strip()
        until(lambda: notes.exists() and "=I/O" in notes.read_text(), 60.0)
        *options, comment = notes.read_text().splitlines()
        expected = ["--immediate", "modify", "job", "where", f"jobid={job}", "set"]
        assert options == expected, options
        sys.stdout.write(f"{comment}\n")


if __name__ == "__main__":
    main()
