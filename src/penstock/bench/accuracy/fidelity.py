# SPDX-License-Identifier: MIT
"""Yields of real applications on a limited mount, compared with simulated yields.

Eight applications (`_WORKLOAD`) alternate work and writing under each policy: in the
simulator, and as real processes under ``penstock serve`` on a ``penstock mount`` with a
tenth more bandwidth. Work is sleep, I/O is real. The processes announce their volumes,
because the policies of the model know them. The live yield of an application comes from
its own time stamps: (work + volume / b_i) / (end - release).

The yields of this workload hardly change when phases last 10 ms longer; `_sensitivity`
simulates that. Most workloads are not so robust: if a policy ranks two operations
equally, a tiny difference decides which goes first, and later yields may differ by
half. Round numbers lead to such ties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng

from penstock.bench import BenchSettings, Measurement
from penstock.bench.accuracy.shares import measure_shares
from penstock.bench.applications import RunPlace, instance_from_rows, live_yields
from penstock.bench.testbed import LiveTestbed, open_testbed
from penstock.errors import InputError
from penstock.model import Column, Instance, Platform
from penstock.policies import POLICIES, get_policy, installed_policies
from penstock.sim import simulate

__all__ = ["FidelityOutcome", "measure", "ranks"]

_BANDWIDTH: Final = 20e6
_NODE_BANDWIDTH: Final = 5e6
#: Limit of the mount divided by the shared bandwidth: with the headroom, the time lost
#: when the machine stalls can be made up.
_HEADROOM: Final = 1.1
#: Nodes, release (s), then alternately work (s) and volume (MB).
_WORKLOAD: Final = (
    (4, 0.00, (1.79, 9.5, 0.56)),
    (4, 0.19, (2.02, 19.6, 0.70)),
    (1, 0.29, (0.68, 11.0, 0.47)),
    (2, 0.88, (3.42, 12.6, 0.31)),
    (1, 1.01, (3.82, 21.0, 3.42, 9.6, 0.79)),
    (2, 1.32, (3.57, 18.4, 2.70, 18.5, 2.41, 12.7, 0.38)),
    (4, 1.89, (3.67, 12.6, 2.67, 15.3, 3.20, 21.7, 0.33)),
    (2, 2.34, (2.06, 8.6, 1.23, 20.0, 0.62)),
)
#: Parameters with which a policy is the same live and simulated.
_PARAMETERS: Final = {"periodic-greedy-yield": "delta=1"}
#: Largest accepted relative difference of a yield.
_ERROR: Final = 0.05
#: Relative difference of simulated MinYields up to which policies tie.
_TIE: Final = 0.005
#: Longest extension of a phase in the sensitivity analysis, and number of draws.
_JITTER_S: Final = 0.010
_JITTERED: Final = 20


@dataclass(frozen=True, eq=False)
class FidelityOutcome:
    """Live and simulated yields under one policy, by application."""

    policy: str
    live: Column
    simulated: Column
    moved_share: float
    """Bytes written through the mount divided by the bytes of the workload."""

    @property
    def difference(self) -> float:
        """Largest relative difference of a yield."""
        return float(np.max(np.abs(self.live / self.simulated - 1.0)))


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield shares of two jobs, then live and simulated yields for every policy."""
    instance = _instance()
    policies = _policies(settings.policies)
    with open_testbed(settings.folder, _BANDWIDTH) as testbed:
        yield from measure_shares(testbed)
        testbed.mount.set_limit(_HEADROOM * _BANDWIDTH)
        outcomes = []
        for policy in policies:
            runs = max(1, settings.rounds // 15)
            outcomes.append(_compare(testbed, instance, policy, runs))
            yield from _measurements(outcomes[-1], instance)
    yield from _summary(outcomes)
    yield from _sensitivity(instance, policies)


def _policies(named: Sequence[str]) -> list[str]:
    """Return the policies to compare, with the parameters in `_PARAMETERS`."""
    policies = [
        f"{name}:{_PARAMETERS[name]}" if name in _PARAMETERS else name
        for name in named or (*POLICIES, *installed_policies())
    ]
    for policy in policies:
        get_policy(policy)
    if len(set(policies)) < len(policies):
        raise InputError("a policy is named twice", remedy="name each policy once")
    return policies


def _instance() -> Instance:
    return instance_from_rows(Platform(_BANDWIDTH, _NODE_BANDWIDTH), _WORKLOAD)


def _simulated(instance: Instance, policy: str) -> Column:
    return simulate(instance, policy, steady=False).yields


# --- One policy -------------------------------------------------------------------


def _compare(
    testbed: LiveTestbed, instance: Instance, policy: str, runs: int
) -> FidelityOutcome:
    before = testbed.mount.written_bytes()
    yields = [_live(testbed, instance, policy) for _ in range(runs)]
    moved_bytes = testbed.mount.written_bytes() - before
    volume = runs * sum(float(app.volume.sum()) for app in instance.applications)
    return FidelityOutcome(
        policy,
        live=np.median(yields, axis=0),
        simulated=_simulated(instance, policy),
        moved_share=moved_bytes / volume,
    )


def _live(testbed: LiveTestbed, instance: Instance, policy: str) -> Column:
    with testbed.daemon(policy, instance.platform) as daemon:
        place = RunPlace(testbed.program, daemon, testbed.mount.point)
        return live_yields(place, instance)


def _measurements(
    outcome: FidelityOutcome, instance: Instance
) -> Iterator[Measurement]:
    for app, live, simulated in zip(
        instance.applications, outcome.live, outcome.simulated, strict=True
    ):
        yield Measurement(
            f"{outcome.policy}, {app.name}: live yield / simulated",
            float(live / simulated),
            "",
            1.0 - _ERROR,
            1.0 + _ERROR,
            {"live": float(live), "simulated": float(simulated)},
        )
    name = f"{outcome.policy}: bytes through the mount / bytes of the workload"
    yield Measurement(name, outcome.moved_share, "", 1.0, 1.0)


# --- All policies -----------------------------------------------------------------


def _summary(outcomes: Sequence[FidelityOutcome]) -> Iterator[Measurement]:
    """Yield the largest difference, and the live rank of every policy by MinYield."""
    worst = max(outcomes, key=lambda outcome: outcome.difference)
    name = f"largest difference of a yield (with {worst.policy})"
    yield Measurement(name, 100.0 * worst.difference, "%", most=100.0 * _ERROR)
    simulated = [float(outcome.simulated.min()) for outcome in outcomes]
    live = [float(outcome.live.min()) for outcome in outcomes]
    allowed = ranks(simulated, _TIE)
    for index in sorted(range(len(outcomes)), key=lambda i: -simulated[i]):
        low, high = allowed[index]
        tie = "" if low == high else f", a tie of {high - low + 1}"
        rank = 1 + sum(other > live[index] for other in live)
        yield Measurement(
            f"rank by MinYield of {outcomes[index].policy}{tie}",
            rank,
            "",
            low,
            high,
            {"live": live[index], "simulated": simulated[index]},
        )


def ranks(values: Sequence[float], tie: float) -> list[tuple[int, int]]:
    """Return the first and last rank that each value may have; 1 is the largest value.

    Sorted neighbours whose relative distance is at most `tie` form a group, and each
    value of a group may have any rank of the group.
    """
    order = sorted(range(len(values)), key=lambda i: -values[i])
    groups: list[list[int]] = []
    for index in order:
        last = values[groups[-1][-1]] if groups else 0.0
        if groups and last - values[index] <= tie * last:
            groups[-1].append(index)
        else:
            groups.append([index])
    allowed = [(0, 0)] * len(values)
    first = 1
    for group in groups:
        for index in group:
            allowed[index] = (first, first + len(group) - 1)
        first += len(group)
    return allowed


# --- Sensitivity ------------------------------------------------------------------


def _sensitivity(instance: Instance, policies: Sequence[str]) -> Iterator[Measurement]:
    """Yield the largest change of a simulated yield when phases last a bit longer."""
    draw = default_rng(1)
    variants = [_jittered(instance, draw) for _ in range(_JITTERED)]
    worst = 0.0
    for policy in policies:
        exact = _simulated(instance, policy)
        for variant in variants:
            change = np.abs(_simulated(variant, policy) / exact - 1.0)
            worst = max(worst, float(change.max()))
    name = f"simulated, phases up to {_JITTER_S * 1e3:g} ms longer: largest difference"
    yield Measurement(name, 100.0 * worst, "%", most=100.0 * _ERROR)


def _jittered(instance: Instance, draw: Generator) -> Instance:
    """Return the instance with every phase up to `_JITTER_S` longer."""
    applications = tuple(
        replace(
            app,
            work=app.work + draw.uniform(0.0, _JITTER_S, app.work.size),
            volume=app.volume + cap * draw.uniform(0.0, _JITTER_S, app.volume.size),
        )
        for app, cap in instance.with_caps()
    )
    return replace(instance, applications=applications)
