# SPDX-License-Identifier: MIT
"""A user who fills the disk with its pages keeps nobody else from being controlled."""

from __future__ import annotations

import os
from statistics import median

import pytest

from hostile.scene import attack, scene, socket_of, status, victim
from penstock.live.node.budgets import Holding
from support.waiting import until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to act as two other users"
)

ATTACKER = 65_040


def test_a_disk_full_of_pages_costs_nobody_else_anything() -> None:
    with scene(is_small=True) as daemon:

        def free_part() -> float:
            disk = os.statvfs(daemon.home)
            return disk.f_bavail / disk.f_blocks

        def is_known() -> bool:
            told = {(each.user, each.what) for each in status(daemon).throttled}
            return (ATTACKER, str(Holding.BYTES)) in told

        with attack(socket_of(daemon), "fill", ATTACKER):
            until(is_known)
            until(lambda: free_part() < 0.01)
            seen = [victim(daemon, f"job{number}", 4) for number in range(4)]
        assert [each.complaint for each in seen] == [""] * 4
        assert all(median(each.granted) > 0.9 for each in seen)
        until(lambda: not status(daemon).jobs)
        until(lambda: free_part() > 0.9)
        assert len(daemon.log) < 20_000
