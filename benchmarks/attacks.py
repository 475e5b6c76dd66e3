# SPDX-License-Identifier: MIT
"""What a user B notices while a user A attacks the daemon of their node, or a mount.

``python benchmarks/attacks.py [--rows ATTACK...] [--json FILE]`` (as root, 3 minutes)

Every attack of ``tests/hostile/attacker.py`` runs against a real ``penstock serve
--users all``, or a real ``penstock mount``. Once the daemon knows the attacker, B joins
and writes. Printed are B's share of the bandwidth, or of what a mount promises; how
long B took to join, or to create a file; the processor time of the daemon as a share of
one core, its open files and memory, the growth of its log; and how long after the
attack the daemon has forgotten it and B has joined and written as before.

Times on a busy machine are those of the machine: the rows ``none`` and ``mount``, which
have no attack, say how busy it is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hostile.attacker import (
    ATTACKS,
    FURTHER_ATTACKS,
    MOUNT_ATTACKS,
    SHARED_PLACES,
    VICTIM,
)
from hostile.mount_scene import PROMISED, mount_scene, mount_victim
from hostile.recording import free_port, record_node
from hostile.scene import BANDWIDTH, attack, scene, socket_of, status, victim
from penstock.live.staging.rules import Staging
from penstock.live.wire.curve import make_keys
from support.daemons import Daemon
from support.mounts import Mounted

#: How long the daemon may take to know an attacker, or to forget one (s).
_KNOWN_S = 10.0
#: How long a mount is attacked before B begins (s).
_MOUNT_S = 2.0
#: Rows without an attack: on a daemon, and on a mount.
_QUIET = ("none", "mount")
_ROWS = ("none", *ATTACKS, *FURTHER_ATTACKS, "mount", *MOUNT_ATTACKS)


@dataclass(frozen=True)
class Seen:
    """What B has met."""

    share: float
    start_s: float
    late_s: float
    """Time that writing took beyond that of its share."""
    controlled: bool


@dataclass(frozen=True)
class Row:
    """The figures of one attack."""

    attack: str
    share: float
    start_s: float
    daemon_cores: float
    descriptors: int
    memory_bytes: int
    log_bytes: int
    recovery_s: float
    controlled: bool


def main() -> int:
    """Run the attacks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=_ROWS, default=_ROWS)
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("needs root, to act as two other users")
    print(_HEAD)
    rows = []
    for number, kind in enumerate(arguments.rows):
        on_mount = kind in MOUNT_ATTACKS or kind == "mount"
        rows.append((_mount_row if on_mount else _daemon_row)(kind, 65_001 + number))
        print(_line(rows[-1]), flush=True)
    if arguments.json:
        text = json.dumps([asdict(row) for row in rows], indent=1)
        Path(arguments.json).write_text(text + "\n")
    return 0


_HEAD = (
    "attack    controlled  share  start [ms]  daemon [cores]  files  "
    "memory [MB]  log [kB]  recovery [s]"
)


def _line(row: Row) -> str:
    return (
        f"{row.attack:<9} {row.controlled!s:>10}  {row.share:5.3f}  "
        f"{1e3 * row.start_s:10.0f}  {row.daemon_cores:14.2f}  {row.descriptors:5d}  "
        f"{row.memory_bytes / 1e6:11.0f}  {row.log_bytes / 1e3:8.1f}  "
        f"{row.recovery_s:12.2f}"
    )


# --- Attacks on a daemon --------------------------------------------------------------


def _daemon_row(kind: str, user: int) -> Row:
    with _prepared(kind) as (daemon, variables):
        assert daemon.process is not None  # noqa: S101 - for the type checker

        def write(job: str, mebibytes: int) -> Seen:
            met = victim(daemon, job, mebibytes, variables)
            is_whole = (daemon.data / job).stat().st_size == mebibytes * 2**20
            late_s = met.write_s - mebibytes * 2**20 / BANDWIDTH
            controlled = is_whole and not met.complaint
            return Seen(met.share, met.start_s, late_s, controlled)

        if kind in _QUIET:
            return _measured(kind, daemon.process.pid, lambda: write("b", 16))
        with attack(socket_of(daemon), kind, user):
            _wait_until_known(daemon, user)
            row = _measured(kind, daemon.process.pid, lambda: write("b", 16))
        recovery_s = _forget_s(daemon)
        after = write("after", 1)
        recovery_s += after.start_s + max(after.late_s, 0.0)
        log_bytes = len(daemon.log)
        return replace(row, recovery_s=recovery_s, log_bytes=log_bytes)


@contextmanager
def _prepared(kind: str) -> Iterator[tuple[Daemon, Mapping[str, str]]]:
    """Yield a daemon, and the environment of B, for an attack."""
    if kind == "replay":
        with _listening() as daemon:
            yield daemon, {}
        return
    if kind == "fill":
        with scene(is_small=True, lease="5 s") as daemon:
            yield daemon, {}
        return
    memory, *_ = places = [Path(f"{place}{VICTIM}") for place in SHARED_PLACES]
    with scene(lease="5 s") as daemon:
        try:
            # B wants to stage in the folder that A makes first.
            yield daemon, Staging(memory).environment() if kind == "squat" else {}
        finally:
            for place in places if kind == "squat" else ():
                shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _listening() -> Iterator[Daemon]:
    """Yield a daemon that listens to nodes, and leave a recording of one for A."""
    port = free_port()
    with TemporaryDirectory() as keys:
        make_keys(keys)
        address = f"tcp://127.0.0.1:{port}"
        with scene(lease="5 s", listen=address, keys=keys) as daemon:
            (daemon.data / "port").write_text(str(port))
            (daemon.data / "recorded").write_bytes(record_node(port, Path(keys)))
            yield daemon


def _wait_until_known(daemon: Daemon, user: int) -> None:
    """Wait until the daemon throttles the attacker or gives its jobs no share."""
    deadline_s = time.monotonic() + _KNOWN_S
    while time.monotonic() < deadline_s:
        time.sleep(0.2)
        now = status(daemon)
        grants = [each.grant or 0.0 for each in now.jobs if each.user == user]
        is_throttled = user in {each.user for each in now.throttled}
        has_claims = any(each.active for each in now.jobs if each.user == user)
        if is_throttled and not has_claims:
            return
        if has_claims and sum(grants) < 0.05 * BANDWIDTH:
            return


def _forget_s(daemon: Daemon) -> float:
    """Return how long the daemon has jobs of the attacker after the attack."""
    begun_s = time.monotonic()
    while status(daemon).jobs and time.monotonic() - begun_s < _KNOWN_S:
        time.sleep(0.02)
    return time.monotonic() - begun_s


# --- Attacks on a mount ---------------------------------------------------------------


def _mount_row(kind: str, user: int) -> Row:
    with mount_scene() as mounted:
        if kind in _QUIET:
            return _measured(kind, mounted.pid, lambda: _write(mounted, 6))
        with attack(mounted.point, kind, user):
            time.sleep(_MOUNT_S)
            row = _measured(kind, mounted.pid, lambda: _write(mounted, 6))
        begun_s = time.monotonic()
        after = _write(mounted, 1)
        spent_s = time.monotonic() - begun_s
        return replace(row, recovery_s=min(after.start_s + after.late_s, spent_s))


def _write(mounted: Mounted, mebibytes: int) -> Seen:
    met = mount_victim(mounted, mebibytes)
    late_s = max(met.write_s - mebibytes * 2**20 / PROMISED, 0.0)
    return Seen(met.share, met.start_s, late_s, controlled=True)


# --- The process that is attacked -----------------------------------------------------


def _measured(kind: str, pid: int, write: Callable[[], Seen]) -> Row:
    """Let B write, and return what it met and what the process took meanwhile."""
    begun_s, used_s = time.monotonic(), _processor_s(pid)
    seen = write()
    used_s, elapsed_s = _processor_s(pid) - used_s, time.monotonic() - begun_s
    return Row(
        kind,
        seen.share,
        seen.start_s,
        used_s / elapsed_s,
        len(os.listdir(f"/proc/{pid}/fd")),  # noqa: PTH208
        _memory_bytes(pid),
        0,
        0.0,
        seen.controlled,
    )


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
