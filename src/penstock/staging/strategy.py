# SPDX-License-Identifier: MIT
"""A strategy ready to decide: its function and its parameters; answers are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from penstock.errors import PenstockError, PolicyError, reason_of
from penstock.registry import Lookup, labelled, parameter_values
from penstock.staging.limits import self_interference
from penstock.staging.situation import Situation, StagingOrder, StagingPlan

__all__ = ["Strategy"]


@dataclass(frozen=True)
class Strategy:
    """A strategy with its parameters set: what simulator and controller run."""

    name: str
    """As in the table, or the dotted name of a user's own."""
    label: str
    """`name` with the parameters that are not at their default."""
    coordinate: Callable[..., Any] = field(repr=False)
    settings: Mapping[str, float] = field(repr=False)

    @classmethod
    def bind(cls, found: Lookup) -> Self:
        """Return the strategy that was found, its parameters set."""
        values = parameter_values(f"strategy {found.name}", found.declared, found.given)
        label = labelled(found.name, found.declared, values)
        return cls(found.name, label, found.function, values)

    def decide(self, situation: Situation) -> StagingPlan:
        """Return an order for every application, and when to ask again.

        Raises
        ------
        InputError
            If the strategy cannot serve the situation (more applications than targets).
        PolicyError
            If it fails, or answers what cannot be done.
        """
        try:
            plan = self.coordinate(situation, **self.settings)
        except PenstockError:
            raise
        except Exception as error:
            raise PolicyError(
                f"strategy {self.label} failed: {reason_of(error)}"
            ) from error
        self._check(plan, situation)
        return plan  # type: ignore[no-any-return]

    def warnings(self, situation: Situation, plan: StagingPlan) -> list[str]:
        """Return what speaks against `plan`: see `penstock.staging.limits`."""
        return [
            f"strategy {self.label}: {w}" for w in self_interference(situation, plan)
        ]

    def _check(self, plan: Any, situation: Situation) -> None:
        if not isinstance(plan, StagingPlan) or len(plan.orders) != len(
            situation.applications
        ):
            raise self._broken("no order for every application")
        if not plan.wake > situation.now:
            raise self._broken(f"asks to be woken at {plan.wake}, not after now")
        for a, order in zip(situation.applications, plan.orders, strict=True):
            self._check_order(a.name, order, situation.targets)

    def _check_order(self, name: str, order: StagingOrder, targets: int) -> None:
        lawful = {r for r in order.targets if 0 <= r < targets}
        if not len(order.targets) == len(lawful) > 0:
            raise self._broken(
                f"{name!r} gets {list(order.targets)}, not different targets of 0 to "
                f"{targets - 1}"
            )
        if not order.drain_rate > 0:
            raise self._broken(f"{name!r} may drain at {order.drain_rate} bytes/s")

    def _broken(self, what: str) -> PolicyError:
        return PolicyError(f"strategy {self.label}: {what}")
