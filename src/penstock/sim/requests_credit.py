# SPDX-License-Identifier: MIT
"""Messages between the schedulers of client nodes and the central allocator of credit.

Every node sends a report in each period, and the allocator decides once per period and
sends every node its rates. A message takes a random time, and some are lost. A node or
the allocator may fall silent for good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Protocol

from numpy.random import Generator

from penstock.qos import CreditAllocator, CreditScheduler
from penstock.qos.credit import LEASE_S, PERIOD_S

__all__ = ["CENTRAL", "CreditMessages"]

#: Name of the allocator among those that may fall silent.
CENTRAL = "central"
#: What happens at a time (s); returns the node whose scheduler must be asked, if any.
Action = Callable[[float], str | None]


class _Network(Protocol):
    """How messages travel."""

    @property
    def max_delay_s(self) -> float:
        """A message takes a uniform random time up to this."""

    @property
    def loss_share(self) -> float:
        """Fraction of the messages that are lost."""

    @property
    def silent_s(self) -> Mapping[str, float]:
        """Sender -> from when it sends nothing."""


class CreditMessages:
    """Plans the reports of all nodes, the decisions, and the rates that are sent.

    Parameters
    ----------
    stages
        Node -> its scheduler, which keeps rates.
    weights
        Application -> promised throughput.
    plan
        Called with a time (s) and what happens then.
    """

    def __init__(
        self,
        stages: Mapping[str, CreditScheduler],
        weights: Mapping[str, float],
        network: _Network,
        random: Generator,
        plan: Callable[[float, Action], None],
    ) -> None:
        self.allocator = CreditAllocator()
        self._stages = stages
        self._weights = weights
        self._network = network
        self._random = random
        self._plan = plan
        for index, node in enumerate(stages):
            first_s = PERIOD_S * (index + 1) / len(stages)
            plan(first_s, self._reporting(node))
        plan(PERIOD_S, self._decide)

    def _reporting(self, node: str) -> Action:
        """Return the action that sends a report of a node, again in each period."""

        def report(now: float) -> None:
            if now >= self._network.silent_s.get(node, inf):
                return
            uses = self._stages[node].use(now)

            def deliver(later: float) -> None:
                self.allocator.report(node, self._weights, uses, later)

            self._send(now, deliver)
            self._plan(now + PERIOD_S, report)

        return report

    def _decide(self, now: float) -> None:
        """Decide, send the rates, and plan the next decision."""
        if now >= self._network.silent_s.get(CENTRAL, inf):
            return
        for node, rates in self.allocator.decide(now).items():
            self._send(now, self._delivery(node, rates))
        self._plan(now + PERIOD_S, self._decide)

    def _delivery(self, node: str, rates: Mapping[str, float]) -> Action:
        def deliver(later: float) -> str:
            self._stages[node].set_rates(rates, LEASE_S, later)
            return node

        return deliver

    def _send(self, now: float, deliver: Action) -> None:
        lost, delay = self._random.random(2)
        if lost >= self._network.loss_share:
            self._plan(now + delay * self._network.max_delay_s, deliver)
