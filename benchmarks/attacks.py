# SPDX-License-Identifier: MIT
"""What a user B notices while a user A attacks the daemon of their node.

``python benchmarks/attacks.py [ATTACK...] [--json FILE]`` (as root)

Every attack of ``tests/hostile/attacker.py`` runs against a real ``penstock serve
--users all``. Once the daemon knows the attacker, B joins and writes 16 MiB. Printed
are B's share of the bandwidth relative to a run without an attack, how long B took to
join, the processor time of the daemon as a share of one core, its open files and
memory, the growth of its log, and how long after the attack B joins as before.

Times on a busy machine are those of the machine: the run without an attack says how
busy it is.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hostile.attacker import ATTACKS
from hostile.scene import BANDWIDTH, attack, descriptors, scene, status, victim
from support.daemons import Daemon

#: How long the daemon may take to know an attacker (s).
_KNOWN_S = 10.0


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
    parser.add_argument("attacks", nargs="*", default=list(ATTACKS))
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("needs root, to act as two other users")
    print(_HEAD)
    rows = [_row("none")]
    for number, kind in enumerate(arguments.attacks):
        rows.append(_row(kind, 65_001 + number))
    if arguments.json:
        text = json.dumps([asdict(row) for row in rows], indent=1)
        Path(arguments.json).write_text(text + "\n")
    return 0


_HEAD = (
    "attack    controlled  share  start [ms]  daemon [cores]  files  "
    "memory [MB]  log [kB]  recovery [s]"
)


def _row(kind: str, user: int = 0) -> Row:
    with scene(lease="5 s") as daemon:
        if kind == "none":
            row = _measure(daemon, kind)
        else:
            with attack(daemon, kind, user):
                _wait_until_known(daemon, user)
                row = _measure(daemon, kind)
            row = Row(**asdict(row) | {"recovery_s": _recovery_s(daemon)})
    print(
        f"{row.attack:<9} {row.controlled!s:>10}  {row.share:5.3f}  "
        f"{1e3 * row.start_s:10.0f}  {row.daemon_cores:14.2f}  {row.descriptors:5d}  "
        f"{row.memory_bytes / 1e6:11.0f}  {row.log_bytes / 1e3:8.1f}  "
        f"{row.recovery_s:12.2f}",
        flush=True,
    )
    return row


def _measure(daemon: Daemon, kind: str) -> Row:
    begun_s, used_s = time.monotonic(), _processor_s(daemon)
    seen = victim(daemon, "b")
    used_s, elapsed_s = _processor_s(daemon) - used_s, time.monotonic() - begun_s
    return Row(
        kind,
        seen.share,
        seen.start_s,
        used_s / elapsed_s,
        descriptors(daemon),
        _memory_bytes(daemon),
        len(daemon.log),
        0.0,
        not seen.complaint,
    )


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


def _recovery_s(daemon: Daemon) -> float:
    """Return how long after the attack B joins as before and no attacker is left."""
    begun_s = time.monotonic()
    while status(daemon).jobs and time.monotonic() - begun_s < _KNOWN_S:
        time.sleep(0.02)
    victim(daemon, "after", 1)
    return time.monotonic() - begun_s - 2**20 / BANDWIDTH


def _stat(daemon: Daemon, name: str) -> str:
    assert daemon.process is not None  # noqa: S101 - for the type checker
    return Path(f"/proc/{daemon.process.pid}/{name}").read_text()


def _processor_s(daemon: Daemon) -> float:
    fields = _stat(daemon, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_bytes(daemon: Daemon) -> int:
    lines = _stat(daemon, "status").splitlines()
    line = next(line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
