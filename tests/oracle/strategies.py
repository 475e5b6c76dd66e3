# SPDX-License-Identifier: MIT
"""The strategies of bandwidth sharing (section 4) and IO-SETS (section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from oracle.best_next_event import BestNextEvent
from oracle.simulator import ZERO, Active, Decision, State, Strategy

__all__ = [
    "STRATEGIES",
    "EarliestDeadline",
    "ExclusiveFcfs",
    "FairShare",
    "Fcfs",
    "GreedyCom",
    "GreedyYield",
    "LookAheadGreedyYield",
    "PeriodicGreedyYield",
    "Set10",
    "SetFairShare",
    "SharePriority",
    "ShortOverLoss",
    "SoftDeadline",
    "make_strategy",
    "set_number",
    "share_among_sets",
]

#: A set of applications with its priority.
WeightedSet = tuple[Fraction, list[Active]]


def fill(order: Iterable[Active], bandwidth: Fraction) -> dict[int, Fraction]:
    """Give each its cap, or the rest, one after the other."""
    rates = {}
    for application in order:
        rates[application.index] = min(application.cap, bandwidth)
        bandwidth -= rates[application.index]
    return rates


def by_post_time(active: Iterable[Active]) -> list[Active]:
    """Return the applications by R_i."""
    return sorted(active, key=lambda a: (a.posted_at, a.index))


def by_yield(active: Iterable[Active]) -> list[Active]:
    """Return the applications by present yield."""
    return sorted(active, key=lambda a: (a.yield_now, a.index))


@dataclass(frozen=True)
class FairShare:
    """alpha_i = min(1, B / sum of b_j), for all."""

    def decide(self, state: State) -> Decision:
        """Give all the same fraction of their caps."""
        wanted = sum((a.cap for a in state.active), ZERO)
        alpha = min(Fraction(1), state.bandwidth / wanted)
        return {a.index: alpha * a.cap for a in state.active}, None


@dataclass(frozen=True)
class Fcfs:
    """Greedily by post time."""

    def decide(self, state: State) -> Decision:
        """Serve the oldest post first."""
        return fill(by_post_time(state.active), state.bandwidth), None


@dataclass(frozen=True)
class GreedyYield:
    """Greedily by present yield."""

    def decide(self, state: State) -> Decision:
        """Serve the lowest yield first."""
        return fill(by_yield(state.active), state.bandwidth), None


@dataclass(frozen=True)
class GreedyCom:
    """Greedily by the time that the operation still needs at full speed."""

    def decide(self, state: State) -> Decision:
        """Serve the shortest rest first."""
        order = sorted(state.active, key=lambda a: (a.time_at_cap, a.index))
        return fill(order, state.bandwidth), None


@dataclass(frozen=True)
class EarliestDeadline:
    """Greedily by what may still be lost, plus what the operation takes of the storage.

    Z A_i - lost_i + (b_i / B) V_i / B, Z the largest loss over age; of V_i / B only
    what lies before the end of the window counts.
    """

    def decide(self, state: State) -> Decision:
        """Serve the earliest deadline first."""
        worst = max((a.lost / a.age for a in state.active if a.age > 0), default=ZERO)
        left = state.window_end - state.time

        def key(a: Active) -> tuple[Fraction, int]:
            taken = min(a.remaining / state.bandwidth, left)
            share = a.cap / state.bandwidth
            return worst * a.age - a.lost + share * taken, a.index

        rates = fill(sorted(state.active, key=key), state.bandwidth)
        return rates, self.next_wake(state, rates)

    def next_wake(self, state: State, rates: dict[int, Fraction]) -> Fraction | None:
        """Return the next wake-up if one waits for one with b_i < B.

        It comes after a 200th of the time from the oldest release to the end.
        """
        got = [(a.cap, rates.get(a.index, ZERO)) for a in state.active]
        waits = any(rate < cap for cap, rate in got)
        capped = any(rate == cap < state.bandwidth for cap, rate in got)
        if not (waits and capped):
            return None
        oldest = max(a.age for a in state.active)
        return state.time + (state.window_end - state.time + oldest) / 200


@dataclass(frozen=True)
class ShortOverLoss:
    """Greedily by (V_i / b_i) / loss^exponent; a loss of 0 counts as 1e-12."""

    exponent: int = 16

    def decide(self, state: State) -> Decision:
        """Serve the smallest quotient first."""

        def key(a: Active) -> tuple[Fraction, int]:
            loss = a.lost / a.age if a.age > 0 else Fraction(1)
            weight = max(loss, Fraction(1, 10**12)) ** int(self.exponent)
            return a.time_at_cap / weight, a.index

        return fill(sorted(state.active, key=key), state.bandwidth), None


@dataclass(frozen=True)
class SoftDeadline:
    """Greedily by softness against urgency: `penstock.policies.beyond.soft_deadline`.

    All but the logarithms is exact. Equal applications have equal logarithms.
    """

    softness: Fraction | float = 0.5

    def decide(self, state: State) -> Decision:
        """Serve the smallest key first; the earliest deadline while no one has lost."""
        active = state.active
        worst = max((a.lost / a.age for a in active if a.age > 0), default=ZERO)
        oldest = max(a.age for a in active)
        left = state.window_end - state.time
        if worst == 0:
            return EarliestDeadline().decide(state)
        completed = [Fraction(len(a.iterations)) for a in active]
        rho = sum((n / (n + 1) for n in completed), ZERO) / (len(active) + 2)
        kappa = min(a.cap for a in active) / state.bandwidth
        weight = Fraction(self.softness) * rho * kappa * (1 - worst) ** 2
        weight *= 1 + min(Fraction(3), left / oldest)

        def key(a: Active) -> tuple[float, int]:
            taken = min(a.remaining / state.bandwidth, left)
            due = worst * a.age - a.lost + a.cap / state.bandwidth * taken
            urgency = 1 - due / (worst * oldest)
            pressing = urgency + max(ZERO, urgency) ** 3
            period = a.work_before + a.volume / a.cap
            if a.iterations:
                period = sum(a.iterations, ZERO) / len(a.iterations)
            burden = math.log(taken / a.nodes / oldest)
            burden -= 0.7 * math.log(max(period / oldest, Fraction(1e-300)))
            # Logarithms differ in the last bit only if their arguments differ.
            return round(float(weight) * burden - float(pressing), 12), a.index

        rates = fill(sorted(active, key=key), state.bandwidth)
        return rates, EarliestDeadline().next_wake(state, rates)


@dataclass(frozen=True)
class LookAheadGreedyYield:
    """Try each one first; keep the best minimum yield at the first completion.

    With the horizon "window", at the end of the window if that comes first.
    """

    horizon: Literal["completion", "window"] = "completion"

    def decide(self, state: State) -> Decision:
        """Return the first of the best tentative allocations."""
        greedy = by_yield(state.active)
        best: tuple[Fraction, dict[int, Fraction]] | None = None
        for first in greedy:
            order = [first, *(a for a in greedy if a is not first)]
            rates = fill(order, state.bandwidth)
            lowest = self.lowest_yield(state, rates)
            if best is None or lowest > best[0]:
                best = lowest, rates
        assert best is not None
        return best[1], None

    def lowest_yield(self, state: State, rates: dict[int, Fraction]) -> Fraction:
        """Return the minimum yield at the horizon under `rates`."""
        served = [a for a in state.active if rates[a.index] > 0]
        horizon = min(a.remaining / rates[a.index] for a in served)
        if self.horizon == "window":
            horizon = min(horizon, state.window_end - state.time)
        return min(a.yield_after(horizon, rates[a.index]) for a in state.active)


@dataclass(frozen=True)
class PeriodicGreedyYield:
    """GreedyYield, decided again every `delta` seconds.

    The clock "window" wakes at t_begin + k delta, k = 0, 1, ...; the clock
    "event" wakes delta after the last decision. The default delta is
    (t_end - t_begin) / E.
    """

    delta: Fraction | float | None = None
    clock: Literal["window", "event"] = "window"

    def decide(self, state: State) -> Decision:
        """Serve the lowest yield first, and ask for the next wake-up."""
        rates = fill(by_yield(state.active), state.bandwidth)
        return rates, self.next_wake(state)

    def next_wake(self, state: State) -> Fraction | None:
        """Return the next wake-up; None if there is no delta, E being 0."""
        if self.delta is not None:
            delta = Fraction(self.delta)
        elif state.dedicated_events:
            delta = (state.window_end - state.window_begin) / state.dedicated_events
        else:
            return None
        if self.clock == "event":
            return state.time + delta
        if state.time < state.window_begin:
            return state.window_begin
        passed = (state.time - state.window_begin) // delta
        return state.window_begin + (passed + 1) * delta


def set_number(omega: Fraction) -> int:
    """Return n = floor(log10(omega) + 1/2): the largest with 10^(2n-1) <= omega^2."""
    number = 0
    while _ten_to(2 * number - 1) > omega**2:
        number -= 1
    while _ten_to(2 * number + 1) <= omega**2:
        number += 1
    return number


def _ten_to(power: int) -> Fraction:
    return Fraction(10) ** power


def share_among_sets(
    sets: list[WeightedSet], bandwidth: Fraction
) -> dict[int, Fraction]:
    """Share by priority: extended algorithm (bandwidth sharing, section 4.2)."""
    rates: dict[int, Fraction] = {}
    while sets:
        total = sum((weight for weight, _ in sets), ZERO)
        limited, others = [], []
        for weight, members in sets:
            # beta_j <= alpha_j, both times the bandwidth left.
            if _caps(members) <= weight / total * bandwidth:
                limited.append((weight, members))
            else:
                others.append((weight, members))
        if not limited:
            for weight, members in sets:
                share = weight / total * bandwidth
                rates |= fill(by_post_time(members), share)
            break
        for _, members in limited:
            rates |= {a.index: a.cap for a in members}
            bandwidth -= _caps(members)
        sets = others
    return rates


def _caps(members: list[Active]) -> Fraction:
    return sum((a.cap for a in members), ZERO)


@dataclass(frozen=True)
class _IoSets:
    """Sets by omega; an application without an omega is in the initial set.

    The initial set is served before all others ("precedence"), or is one of
    them, with `initial_weight` ("weight"; "auto" means "weight" if the update is
    "post"). omega is "learnt" or "given"; it is learnt where none is given. It is
    learnt from completed iterations ("strict"); from the current one too if there
    are none ("completion"), or always ("post"). An omega of 0 has no logarithm: it
    is none.
    """

    initial: Literal["auto", "precedence", "weight"] = "auto"
    initial_weight: Fraction | float = 100
    update: Literal["completion", "post", "strict"] = "completion"
    period: Literal["learnt", "given"] = "learnt"

    def place(self, application: Active, number: int) -> tuple[object, Fraction]:
        """Return the key and the priority of the set of an application in S_n."""
        raise NotImplementedError

    def initial_key(self, application: Active) -> object:
        """Return the key of its initial set, where that one has a weight."""
        return "initial"

    def decide(self, state: State) -> Decision:
        """Serve the initial set if it has precedence, then share by priority."""
        rates: dict[int, Fraction] = {}
        left = state.bandwidth
        active = list(state.active)
        weighted = {"precedence": False, "weight": True, "auto": self.update == "post"}
        if not weighted[self.initial]:
            first = [a for a in active if self.omega(a) is None]
            active = [a for a in active if self.omega(a) is not None]
            rates = fill(by_post_time(first), left)
            left -= sum(rates.values(), ZERO)
        return rates | share_among_sets(self.sets(active), left), None

    def sets(self, active: list[Active]) -> list[WeightedSet]:
        """Return the sets of the applications, with their priorities."""
        sets: dict[object, WeightedSet] = {}
        for application in active:
            omega = self.omega(application)
            if omega is None:
                key = self.initial_key(application)
                weight = Fraction(self.initial_weight)
            else:
                key, weight = self.place(application, set_number(omega))
            sets.setdefault(key, (weight, []))[1].append(application)
        return list(sets.values())

    def omega(self, application: Active) -> Fraction | None:
        """Return the mean length of an iteration; None before the first iteration."""
        if self.period == "given" and application.period > 0:
            return application.period
        lengths = list(application.iterations)
        if application.current_iteration is not None and (
            self.update == "post" or (self.update == "completion" and not lengths)
        ):
            lengths.append(application.current_iteration)
        total = sum(lengths, ZERO)
        return total / len(lengths) if total > 0 else None


@dataclass(frozen=True)
class Set10(_IoSets):
    """Set S_n of priority 10^-n."""

    def place(self, application: Active, number: int) -> tuple[object, Fraction]:
        """Return S_n."""
        return number, _ten_to(-number)


@dataclass(frozen=True)
class SetFairShare(_IoSets):
    """The sets of Set-10, all of priority 1."""

    def place(self, application: Active, number: int) -> tuple[object, Fraction]:
        """Return S_n."""
        return number, Fraction(1)


@dataclass(frozen=True)
class SharePriority(_IoSets):
    """One set per application, of the priority that it has in Set-10."""

    def place(self, application: Active, number: int) -> tuple[object, Fraction]:
        """Return a set of its own."""
        return application.index, _ten_to(-number)

    def initial_key(self, application: Active) -> object:
        """Return a set of its own."""
        return application.index


@dataclass(frozen=True)
class ExclusiveFcfs:
    """One set for all, of any priority."""

    def decide(self, state: State) -> Decision:
        """Share by priority; there is one set only."""
        everyone = [(Fraction(1), list(state.active))]
        return share_among_sets(everyone, state.bandwidth), None


#: All strategies by name.
STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "fair-share": FairShare,
    "fcfs": Fcfs,
    "greedy-yield": GreedyYield,
    "greedy-com": GreedyCom,
    "look-ahead-greedy-yield": LookAheadGreedyYield,
    "periodic-greedy-yield": PeriodicGreedyYield,
    "set-10": Set10,
    "exclusive-fcfs": ExclusiveFcfs,
    "set-fair-share": SetFairShare,
    "share-priority": SharePriority,
    "best-next-event": BestNextEvent,
    "earliest-deadline": EarliestDeadline,
    "short-over-loss": ShortOverLoss,
    "soft-deadline": SoftDeadline,
}


def make_strategy(name: str, **parameters: Any) -> Strategy:
    """Return the strategy of that name."""
    return STRATEGIES[name](**parameters)
