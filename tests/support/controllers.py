# SPDX-License-Identifier: MIT
"""Controllers for tests of live control: interpreted, with a few jobs."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.live.control.rates.controller import Controller

__all__ = ["B", "controller_with", "decide"]

#: The bandwidth that the jobs share (bytes/s).
B = 100.0


def controller_with(policy: str, *job_keys: str, lend: bool = True) -> Controller:
    """Return an interpreted controller with jobs that can each use all of B."""
    controller = Controller(policy, B, lend=lend, compiled=False)
    for job_key in job_keys:
        controller.register(job_key, 0.0)
    return controller


def decide(controller: Controller, now: float) -> Mapping[str, float]:
    """Decide without a fault; return the rates that change."""
    decision = controller.decide(now)
    assert decision.wake > now
    assert not decision.fault
    return decision.rates
