# SPDX-License-Identifier: MIT
"""Messages between the schedulers and the central allocator of credit.

Every scheduler sends a report in each period, and the allocator decides once per period
and sends every scheduler its rates, and what other storages have served. A message
takes a random time, and some are lost. A message that a later one has overtaken is
dropped, as in the live exchange. A scheduler or the allocator may fall silent for good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import NamedTuple, Protocol

from numpy.random import Generator

from penstock.qos import Credit, CreditScheduler, QosScheduler
from penstock.qos.credit.allocator import LEASE_S, PERIOD_S
from penstock.qos.credit.storages import StorageCredits

__all__ = ["CENTRAL", "Action", "CreditMember", "CreditMessages"]

#: Name of the allocator among those that may fall silent.
CENTRAL = "central"
#: What happens at a time (s); returns the scheduler that must be asked, if any.
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


class CreditMember(NamedTuple):
    """A scheduler that gets credit."""

    storage: str
    scheduler: QosScheduler
    credit: CreditScheduler
    """Keeps the rates of the scheduler."""


class CreditMessages:
    """Plans the reports of all schedulers, the decisions, and the rates.

    Parameters
    ----------
    members
        The schedulers by name.
    weights
        Application -> promised throughput.
    plan
        Called with a time (s) and what happens then.
    """

    def __init__(
        self,
        members: Mapping[str, CreditMember],
        weights: Mapping[str, float],
        network: _Network,
        random: Generator,
        plan: Callable[[float, Action], None],
    ) -> None:
        self._credits = StorageCredits()
        self._members = members
        self._weights = weights
        self._network = network
        self._random = random
        self._plan = plan
        #: Sender or receiver -> when the newest message that arrived was sent (s).
        self._newest_report_s: dict[str, float] = {}
        self._newest_rates_s: dict[str, float] = {}
        for index, name in enumerate(members):
            first_s = PERIOD_S * (index + 1) / len(members)
            plan(first_s, self._reporting(name))
        plan(PERIOD_S, self._decide)

    def _reporting(self, name: str) -> Action:
        """Return the action that sends a report, again in each period."""
        member = self._members[name]

        def report(now: float) -> None:
            if now >= self._network.silent_s.get(name, inf):
                return
            uses = member.credit.use(now)

            def deliver(later: float) -> None:
                if not _is_newer(self._newest_report_s, name, now):
                    return
                weights = self._weights
                self._credits.report(member.storage, name, weights, uses, later)

            self._send(now, deliver)
            self._plan(now + PERIOD_S, report)

        return report

    def _decide(self, now: float) -> None:
        """Decide, send the rates, and plan the next decision."""
        if now >= self._network.silent_s.get(CENTRAL, inf):
            return
        for storage in self._credits.storages:
            elsewhere = self._credits.served_elsewhere(storage)
            for name, credit in self._credits.decide(storage, now).items():
                self._send(now, self._delivery(name, credit, elsewhere, now))
        self._plan(now + PERIOD_S, self._decide)

    def _delivery(
        self,
        name: str,
        credit: Credit,
        elsewhere: Mapping[str, float],
        sent_s: float,
    ) -> Action:
        def deliver(later: float) -> str | None:
            if not _is_newer(self._newest_rates_s, name, sent_s):
                return None
            member = self._members[name]
            member.credit.set_credit(credit, LEASE_S, later)
            if elsewhere:
                member.scheduler.record_remote_service(CENTRAL, elsewhere, later)
            return name

        return deliver

    def _send(self, now: float, deliver: Action) -> None:
        lost, delay = self._random.random(2)
        if lost >= self._network.loss_share:
            self._plan(now + delay * self._network.max_delay_s, deliver)


def _is_newer(newest_s: dict[str, float], name: str, sent_s: float) -> bool:
    """Note a message; return False if one that was sent later has overtaken it."""
    if sent_s < newest_s.get(name, -inf):
        return False
    newest_s[name] = sent_s
    return True
