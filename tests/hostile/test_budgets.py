# SPDX-License-Identifier: MIT
"""One user attacks the daemon; another one keeps control, its share and its start."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hostile.attacker import ATTACKS
from hostile.scene import BANDWIDTH, attack, descriptors, scene, status, victim
from support.daemons import Daemon
from support.waiting import until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to act as two other users"
)

#: Attacks that the daemon answers by throttling the attacker.
_THROTTLED = ("attach", "connect", "post", "ask", "start")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """Return a daemon that serves all users."""
    with scene() as daemon:
        yield daemon


def granted(daemon: Daemon, user: int) -> float:
    """Return what the jobs of a user that say they do I/O may draw (bytes/s)."""
    jobs = [job for job in status(daemon).jobs if job.user == user and job.active]
    return sum(job.grant or 0.0 for job in jobs)


@pytest.mark.parametrize(("number", "kind"), list(enumerate(ATTACKS)))
def test_an_attack_costs_nobody_else_anything(
    daemon: Daemon, number: int, kind: str
) -> None:
    user = 65_001 + number
    with attack(daemon, kind, user):
        if kind in _THROTTLED:
            # Root has a socket of its own, and sees who is throttled.
            until(lambda: user in {each.user for each in status(daemon).throttled})
        until(lambda: granted(daemon, user) < 0.05 * BANDWIDTH)
        seen = victim(daemon, kind)
        opened = descriptors(daemon)
    assert not seen.complaint
    assert seen.start_s < 2.0
    assert 0.8 < seen.share < 1.1
    assert opened < 500
    assert len(daemon.log) < 20_000


def test_after_the_attacks_the_daemon_has_forgotten_the_attackers(
    daemon: Daemon,
) -> None:
    until(lambda: not status(daemon).jobs)
    until(lambda: descriptors(daemon) < 40)
    assert victim(daemon, "last", 2).complaint == ""
