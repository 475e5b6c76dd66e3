# SPDX-License-Identifier: MIT
"""A staging strategy with its parameters set, whose answers are checked.

The contract of a strategy: one order for every application, each with at least one
target, no target twice, and a positive drain rate; and a wake-up in the future.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.errors import PolicyError
from penstock.registry import BoundPlugin
from penstock.staging.limits import self_interference
from penstock.staging.situation import Situation, StagingOrder, StagingPlan

__all__ = ["Strategy"]


@dataclass(frozen=True)
class Strategy(BoundPlugin):
    """A strategy as the simulator and the controller run it."""

    KIND = "strategy"

    def decide(self, situation: Situation) -> StagingPlan:
        """Return an order for every application, and when to ask again.

        Raises
        ------
        InputError
            If the strategy cannot serve the situation (more applications than targets).
        PolicyError
            If the strategy fails or breaks its contract.
        """
        plan = self.call(situation)
        self._check(plan, situation)
        return plan  # type: ignore[no-any-return]

    def warnings(self, situation: Situation, plan: StagingPlan) -> list[str]:
        """Return warnings about `plan`: see `penstock.staging.limits`."""
        return [f"{self.title}: {w}" for w in self_interference(situation, plan)]

    def _check(self, plan: Any, situation: Situation) -> None:
        if not isinstance(plan, StagingPlan) or len(plan.orders) != len(
            situation.applications
        ):
            raise self._broken("no order for every application")
        if not plan.wake_s > situation.now_s:
            raise self._broken(f"asks to be woken at {plan.wake_s} s, not after now")
        for a, order in zip(situation.applications, plan.orders, strict=True):
            self._check_order(a.name, order, situation.target_count)

    def _check_order(self, name: str, order: StagingOrder, targets: int) -> None:
        valid = {r for r in order.targets if 0 <= r < targets}
        if not len(order.targets) == len(valid) > 0:
            raise self._broken(
                f"{name!r} gets {list(order.targets)}, not different targets of 0 to "
                f"{targets - 1}"
            )
        if not order.drain_bytes_per_s > 0:
            raise self._broken(
                f"{name!r} may drain at {order.drain_bytes_per_s} bytes/s"
            )

    def _broken(self, what: str) -> PolicyError:
        return PolicyError(what, where=self.title)
