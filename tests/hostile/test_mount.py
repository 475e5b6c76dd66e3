# SPDX-License-Identifier: MIT
"""A user cannot take the descriptors of a mount from another one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.mounts import Mounted, why_no_mounts
from support.users import as_user
from support.waiting import LIMIT_S, until

_REASON = why_no_mounts()
pytestmark = pytest.mark.skipif(bool(_REASON), reason=f"no real mounts: {_REASON}")

ATTACKER, VICTIM = 65_024, 65_025
#: A user id of the attacker's containers.
CONTAINER = 300_000
#: Limit of the descriptors of the mount: a quarter is what one user may open.
LIMIT = 800


#: ``penstock`` where the first word is the file of subordinate user ids.
_PENSTOCK = """
import sys
from pathlib import Path
from penstock.cli import main
from penstock.live.wire import subordinates
users = subordinates.SubordinateUsers(Path(sys.argv[1]))
subordinates._of_this_machine = lambda: users
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture
def mounted() -> Iterator[Mounted]:
    """Return a mount for all users that has few descriptors."""
    home = Path(tempfile.mkdtemp(prefix="penstock-hostile-"))
    home.chmod(0o711)
    mounted = Mounted(home)
    mounted.backing.chmod(0o777)
    for number in range(LIMIT):
        (mounted.backing / f"f{number}").write_text(str(number))
    words = ["mount", "--background", str(mounted.backing), str(mounted.point)]
    words += ["--folder", str(home / "run")]
    script = f'ulimit -n {LIMIT}; exec "$@"'
    (home / "subuid").write_text(f"{ATTACKER}:{CONTAINER}:65536\n")
    python = [sys.executable, "-c", _PENSTOCK, str(home / "subuid")]
    try:
        subprocess.run(
            ["sh", "-c", script, "sh", *python, *words],
            check=True,
            timeout=LIMIT_S,
        )
        mounted.pid = mounted.status()["pid"]
        yield mounted
    finally:
        mounted.end()
        shutil.rmtree(home)


#: Becomes a user, opens files until one is refused, keeps them until its input ends.
_OPENS = """
import errno, os, sys
user, folder, most = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
kept, reason = [], ""
try:
    while len(kept) < most:
        kept.append(os.open(f"{folder}/f{len(kept)}", os.O_RDONLY))
except OSError as error:
    reason = errno.errorcode[error.errno]
print(len(kept), reason, flush=True)
sys.stdin.read()
"""


@contextmanager
def open_files(mounted: Mounted, user: int, most: int) -> Iterator[tuple[int, str]]:
    """Open files as a user; yield how many, and the name of the error if there was one.

    They are closed at the end of the block.
    """
    words = [sys.executable, "-c", _OPENS, str(user), str(mounted.point), str(most)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        count, _, reason = process.stdout.readline().partition(" ")
        yield int(count), reason.strip()


def test_who_opens_too_many_files_is_refused_and_others_are_not(
    mounted: Mounted,
) -> None:
    with open_files(mounted, ATTACKER, LIMIT) as (count, reason):
        assert (count, reason) == (LIMIT // 4, "ENFILE")
        with open_files(mounted, VICTIM, LIMIT // 8) as attempt:
            assert attempt == (LIMIT // 8, "")

    def is_forgotten() -> bool:
        with open_files(mounted, ATTACKER, LIMIT // 8) as attempt:
            return attempt == (LIMIT // 8, "")

    # The kernel reports closed files a moment later.
    until(is_forgotten)


def test_containers_open_files_in_the_budget_of_their_owner(mounted: Mounted) -> None:
    with (
        open_files(mounted, ATTACKER, LIMIT // 8) as attempt,
        open_files(mounted, CONTAINER, LIMIT // 16) as first,
        open_files(mounted, CONTAINER + 1, LIMIT) as second,
    ):
        assert (attempt, first) == ((LIMIT // 8, ""), (LIMIT // 16, ""))
        assert second == (LIMIT // 16, "ENFILE")


def test_who_looks_at_all_files_keeps_nobody_from_opening_one(mounted: Mounted) -> None:
    def look() -> int:
        names = [mounted.point / f"f{number}" for number in range(LIMIT)]
        # An extended attribute makes the mount open the file.
        return sum(not os.listxattr(name) for _ in range(3) for name in names)

    assert as_user(ATTACKER, look) == 3 * LIMIT
    with open_files(mounted, VICTIM, LIMIT // 8) as attempt:
        assert attempt == (LIMIT // 8, "")
