# SPDX-License-Identifier: MIT
"""Baseline: bandwidth sharing written with SimPy in the usual way.

There is one process per application and one shared storage. The storage keeps the rates
of the operations under way and one timer for the next completion. Every post and every
completion schedules a decision, an event of the lowest priority, so that everything
that happens at one instant is applied before the rates are set.

The rules are those of bandwidth sharing, section 4.1, with penstock's conventions: ties
go to the lowest index, and yields are compared through the lost time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import inf
from typing import Any, Final, TypeAlias

import simpy

from penstock.model import Application, Instance

__all__ = ["POLICIES", "simulate"]

#: Priority of a decision: after all other events of its instant (SimPy: 0 and 1).
_LAST: Final[Any] = 2


class Client:
    """An application at the storage; `remaining` and `lost` hold as of `since`."""

    __slots__ = (
        "cap",
        "completion",
        "done",
        "index",
        "lost",
        "posted",
        "rate",
        "release",
        "remaining",
        "since",
    )
    done: simpy.Event

    def __init__(self, index: int, cap: float, application: Application) -> None:
        self.index = index
        self.cap = cap
        self.release = application.release
        self.lost = application.lost_at_start(cap)
        self.remaining = self.rate = 0.0
        self.posted = self.since = application.start
        self.completion = inf

    def remaining_at(self, now: float) -> float:
        """Return the volume still to transfer (bytes)."""
        return max(self.remaining - self.rate * (now - self.since), 0.0)

    def lost_at(self, now: float) -> float:
        """Return the time lost so far (s)."""
        return self.lost + (now - self.since) * (1.0 - self.rate / self.cap)

    def hold(self, rate: float, now: float) -> None:
        """Transfer at `rate` from now on."""
        self.remaining = self.remaining_at(now)
        self.lost = self.lost_at(now)
        self.since = now
        self.rate = rate
        self.completion = now + self.remaining / rate if rate > 0.0 else inf


#: ``allocate(active, bandwidth, now)``: the rate of each client (bytes/s).
Allocate: TypeAlias = Callable[[list[Client], float, float], list[float]]


def _fair_share(active: list[Client], bandwidth: float, _: float) -> list[float]:
    """Give every client the same fraction of its cap."""
    fraction = min(1.0, bandwidth / sum([client.cap for client in active]))
    return [fraction * client.cap for client in active]


def _serving(key: Callable[[Client, float], float]) -> Allocate:
    """Return the policy that fills greedily by increasing `key`, ties by index."""

    def allocate(active: list[Client], bandwidth: float, now: float) -> list[float]:
        if len(active) == 1:
            return [active[0].cap]
        rates = [0.0] * len(active)
        order = [(key(c, now), c.index, place) for place, c in enumerate(active)]
        order.sort()
        for _, _, place in order:
            rates[place] = min(active[place].cap, bandwidth)
            bandwidth -= rates[place]
            if bandwidth <= 0.0:
                break
        return rates

    return allocate


def _post_time(client: Client, _: float) -> float:
    return client.posted


def _yield(client: Client, now: float) -> float:
    # NOTE: yield - 1, so that applications never delayed tie exactly, at 0.
    age = now - client.release
    return -client.lost_at(now) / age if age > 0.0 else -1.0


def _time_to_complete(client: Client, now: float) -> float:
    return client.remaining_at(now) / client.cap


#: name -> policy
POLICIES: Final[dict[str, Allocate]] = {
    "fair-share": _fair_share,
    "fcfs": _serving(_post_time),
    "greedy-yield": _serving(_yield),
    "greedy-com": _serving(_time_to_complete),
}


class Decision(simpy.Event):
    """An event at the end of the current instant."""

    def __init__(
        self, env: simpy.Environment, callback: Callable[[simpy.Event], None]
    ) -> None:
        self.env = env
        self.callbacks = [callback]
        self._ok = True
        self._value = None
        env.schedule(self, _LAST)


class Storage:
    """The shared storage: active clients, their rates, and the next completion."""

    def __init__(
        self, env: simpy.Environment, instance: Instance, allocate: Allocate
    ) -> None:
        self.env = env
        self.bandwidth = instance.platform.bandwidth
        self.allocate = allocate
        self.clients = [
            Client(index, cap, application)
            for index, (application, cap) in enumerate(instance.with_caps())
        ]
        self.active: list[Client] = []
        self.events = 0
        self._next_completion = inf
        self._timer: simpy.Event | None = None
        self._decision_due = False

    def transfer(self, index: int, volume: float) -> simpy.Event:
        """Post an operation of application `index`; return its completion."""
        done = simpy.Event(self.env)
        self.events += 1
        if volume > 0.0:
            client = self.clients[index]
            client.remaining = volume
            client.posted = client.since = self.env.now
            client.done = done
            self.active.append(client)
        else:
            self.events += 1
            done.succeed()
        self._ask_for_decision()
        return done

    def _ask_for_decision(self) -> None:
        if not self._decision_due:
            self._decision_due = True
            Decision(self.env, self._decide)

    def _decide(self, _: simpy.Event) -> None:
        """Set the rates and the timer for the next completion."""
        self._decision_due = False
        active = self.active
        if not active:
            return
        now = self.env.now
        rates = self.allocate(active, self.bandwidth, now)
        earliest = inf
        for client, rate in zip(active, rates, strict=True):
            if rate != client.rate:
                client.hold(rate, now)
            earliest = min(earliest, client.completion)
        if earliest != self._next_completion:
            # SimPy cannot cancel an event, so the old timer loses its callback.
            if self._timer is not None and self._timer.callbacks:
                self._timer.callbacks.clear()
            self._next_completion = earliest
            self._timer = self.env.timeout(earliest - now)
            self._timer.callbacks.append(self._complete)

    def _complete(self, _: simpy.Event) -> None:
        """Complete the operations that are due."""
        now = self.env.now
        going_on = []
        for client in self.active:
            # NOTE: not `now`: now + (completion - now) may differ in the last bit.
            if client.completion <= self._next_completion:
                self.events += 1
                client.hold(0.0, now)
                client.done.succeed()
            else:
                going_on.append(client)
        self.active = going_on
        self._next_completion = inf
        self._ask_for_decision()

    def yields(self) -> list[float]:
        """Return the yield of every application now."""
        now = self.env.now
        for client in self.active:
            client.hold(client.rate, now)
        return [1.0 - c.lost / (now - c.release) for c in self.clients]


def _run(
    env: simpy.Environment,
    storage: Storage,
    index: int,
    application: Application,
    ends_before: float,
) -> Generator[simpy.Event, None, None]:
    """Alternate work and I/O: the process of one application."""
    if application.start > env.now:
        yield env.timeout(application.start - env.now)
    work = application.work.tolist()
    for seconds, volume in zip(work, application.volume.tolist(), strict=False):
        if seconds > 0.0:
            yield env.timeout(seconds)
        yield storage.transfer(index, volume)
    yield env.timeout(work[-1])
    if env.now < ends_before:
        raise ValueError(f"{application.name!r} ends inside the window")


def simulate(instance: Instance, policy: str) -> tuple[list[float], int]:
    """Return the yields at the end of the window, and the number of events.

    Events are the posts and the completions before the end of the window.
    """
    end = instance.window.end
    begin = min(a.start for a in instance.applications)
    env = simpy.Environment(begin)
    storage = Storage(env, instance, POLICIES[policy])
    ends_before = end - 1e-9 * (end - begin)
    for index, application in enumerate(instance.applications):
        env.process(_run(env, storage, index, application, ends_before))
    env.run(until=end)
    return storage.yields(), storage.events
