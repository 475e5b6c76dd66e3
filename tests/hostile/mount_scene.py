# SPDX-License-Identifier: MIT
"""A mount for all users that promises something to B, and B who writes there.

Needs root.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hostile.attacker import VICTIM
from support.mounts import Mounted
from support.users import as_user
from support.waiting import LIMIT_S

__all__ = ["PROMISED", "MountVictim", "mount_scene", "mount_victim"]

#: What B is promised, and gets at most (bytes/s). It has one request at a time, and so
#: waits for one of A each time: it could use no more than half of the limit.
PROMISED = 3e6
#: Files that A can look at.
FILES = 14_433
#: A rule that favours a program says whose: the name alone can be forged.
_PROMISES = f"""
default = "others"

[applications.b]
throughput = "{PROMISED} B/s"
bandwidth = "{PROMISED} B/s"
latency = "1 s"

[applications.others]
throughput = "1 MB/s"
latency = "10 s"
operations = "1000/s"

[[rules]]
application = "b"
user = {VICTIM}
program = "dd"
"""


@dataclass(frozen=True)
class MountVictim:
    """What B has met at a mount."""

    start_s: float
    """Time to create a file."""
    write_s: float
    """Time to write."""
    share: float
    """Rate at which it wrote, as a part of the promise."""


@contextmanager
def mount_scene() -> Iterator[Mounted]:
    """Yield a mount of 8 MB/s with many files."""
    home = Path(tempfile.mkdtemp(prefix="penstock-hostile-"))
    home.chmod(0o711)
    mounted = Mounted(home)
    mounted.backing.chmod(0o777)
    for number in range(FILES):
        (mounted.backing / f"f{number}").touch()
    (home / "promises.toml").write_text(_PROMISES)
    options = [f"--slo={home / 'promises.toml'}", "--limit=8 MB/s"]
    try:
        yield mounted.start(*options)
    finally:
        mounted.end()
        shutil.rmtree(home)


def mount_victim(mounted: Mounted, mebibytes: int = 6) -> MountVictim:
    """Let B create a file and write to it; return what it has met."""
    path = mounted.point / f"b{time.monotonic_ns()}"

    def create() -> float:
        begun_s = time.monotonic()
        path.touch()
        return time.monotonic() - begun_s

    start_s = as_user(VICTIM, create)
    done = subprocess.run(
        ["dd", "if=/dev/zero", f"of={path}", "bs=64k", f"count={16 * mebibytes}"],
        user=VICTIM,
        group=VICTIM,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    )
    write = re.search(r"copied, (\S+) s", done.stderr)
    assert write, done.stderr
    write_s = float(write[1])
    return MountVictim(start_s, write_s, mebibytes * 2**20 / write_s / PROMISED)
