# SPDX-License-Identifier: MIT
"""One user attacks the daemon; another one keeps control, its share and its start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from statistics import median

import pytest

from hostile.attacker import ATTACKS, CALL_BYTES
from hostile.scene import (
    BANDWIDTH,
    Victim,
    attack,
    descriptors,
    scene,
    socket_of,
    status,
    victim,
)
from penstock.live.node.pages.page import CREDIT_S, SLACK_S
from support.daemons import Daemon
from support.waiting import until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to act as two other users"
)

#: Attacks that the daemon answers by throttling the attacker.
_THROTTLED = ("attach", "connect", "post", "ask", "start", "link")
#: What a job may have moved ahead of its grant, as a time (s): unused grant of the
#: operation, debt that is not slept, and the last call. It starts with all of that
#: credit if the machine stalls between the begin of its operation and its first write.
_AHEAD_S = CREDIT_S + SLACK_S + 2 * CALL_BYTES / BANDWIDTH
#: Attacks after which the daemon controls no job of the attacker.
_REFUSED = ("damage",)
#: B writes for several seconds: if a busy machine does not run B for 0.4 s at the
#: start, the daemon doubts B, whose grant then needs about 2 s to grow back.
_WRITTEN_MIB = 32
#: How often B writes until it is served as without an attack.
_TRIES = 5


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """Return a daemon that serves all users."""
    with scene() as daemon:
        yield daemon


def is_known(daemon: Daemon, user: int, kind: str) -> bool:
    """Return True if the daemon has dealt with an attacker."""
    now = status(daemon)
    if kind in _REFUSED:
        return all(job.user != user for job in now.jobs)
    grants = [job.grant or 0.0 for job in now.jobs if job.user == user and job.active]
    if kind in _THROTTLED:
        return user in {each.user for each in now.throttled}
    return bool(grants) and sum(grants) < 0.05 * BANDWIDTH


def has_its_share(seen: Victim) -> bool:
    """Return True if B had the bandwidth and no more."""
    is_limited = seen.share < 1.0 + _AHEAD_S / seen.write_s
    has_share = bool(seen.granted) and median(seen.granted) > 0.9
    return is_limited and has_share


@pytest.mark.parametrize(("number", "kind"), list(enumerate(ATTACKS)))
def test_an_attack_costs_nobody_else_anything(
    daemon: Daemon, number: int, kind: str
) -> None:
    user = 65_001 + number
    with attack(socket_of(daemon), kind, user):
        until(lambda: is_known(daemon, user, kind))
        # This machine may be busy, and B stalled. An attack that costs B something
        # does so each time. How much is measured in benchmarks/attacks.py.
        tries: list[Victim] = []
        while len(tries) < _TRIES and not (tries and has_its_share(tries[-1])):
            tries.append(victim(daemon, kind, _WRITTEN_MIB))
        opened = descriptors(daemon)
    # B was under control in each of them.
    assert [each.complaint for each in tries] == [""] * len(tries)
    assert has_its_share(tries[-1])
    # Links to removed pages count as jobs, and each of these costs a descriptor.
    assert opened < (1_500 if kind == "link" else 500)
    for each in daemon.data.glob("*.page"):
        each.unlink()
    assert len(daemon.log) < 20_000
    assert "not archived" not in daemon.log


def test_after_the_attacks_the_daemon_has_forgotten_the_attackers(
    daemon: Daemon,
) -> None:
    until(lambda: not status(daemon).jobs)
    until(lambda: descriptors(daemon) < 40)
    assert victim(daemon, "last", 2).complaint == ""
