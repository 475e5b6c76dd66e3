# SPDX-License-Identifier: MIT
"""Yields of real applications on a limited mount, beside those of a simulation.

Eight applications work and write in turn (`_WORKLOAD`), under one policy after the
other: in the simulator; and as processes under ``penstock serve`` on a ``penstock
mount`` of that bandwidth and a tenth more, whose work is sleep and whose I/O is real.
They announce their volumes, which the policies of the model know. A live yield is what
the application saw of itself: (work + volume / b_i) / (end - release).

The workload is such that its yields hardly change when its phases last 10 ms more or
less; `_sensitivity` simulates that. Most workloads are not: where two operations are
of equal rank, for a policy, whoever is ahead by a hair goes first, live and in the
simulator, and the yields that follow may differ by half. Round numbers make such ties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng

from penstock.bench import Figure, Setting
from penstock.bench.applications import Place, live_yields
from penstock.bench.shares import measure_shares
from penstock.bench.stage import BenchStage, staged
from penstock.errors import InputError
from penstock.model import Application, Column, Instance, Platform, Window
from penstock.policies import POLICIES, get_policy, installed_policies
from penstock.sim import simulate

__all__ = ["FidelityOutcome", "measure", "ranks"]

_BANDWIDTH: Final = 20e6
_NODE_BANDWIDTH: Final = 5e6
#: Limit of the mount over the bandwidth that is shared out: what is lost when the
#: machine stalls can be made up. Storage that is told to share all it has never can.
_HEADROOM: Final = 1.1
#: Nodes, release (s), then work (s) and volume (MB) in turn.
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
#: What a controller shows to policies that ask for the end of the window (s).
_FAR_S: Final = 3600.0
#: Parameters without which a policy is not the same in both worlds.
_PARAMETERS: Final = {"periodic-greedy-yield": "delta=1"}
#: Most that a yield may differ.
_ERROR: Final = 0.05
#: Policies whose simulated MinYields differ by no more tie.
_TIE: Final = 0.005
#: By how much phases differ in simulations of the sensitivity (s), and how many.
_JITTER_S: Final = 0.010
_JITTERED: Final = 20


@dataclass(frozen=True, eq=False)
class FidelityOutcome:
    """One policy in both worlds; columns by application."""

    policy: str
    live: Column
    simulated: Column
    passed: float
    """Bytes that went through the mount, over those of the workload."""

    @property
    def difference(self) -> float:
        """Largest relative difference of a yield."""
        return float(np.max(np.abs(self.live / self.simulated - 1.0)))


def measure(setting: Setting) -> Iterator[Figure]:
    """Yield shares of two jobs, then yields in both worlds for every policy."""
    instance = _instance()
    policies = _policies(setting.policies)
    with staged(setting.folder, _BANDWIDTH) as stage:
        yield from measure_shares(stage)
        stage.mount.set_limit(_HEADROOM * _BANDWIDTH)
        outcomes = []
        for policy in policies:
            runs = max(1, setting.rounds // 15)
            outcomes.append(_compared(stage, instance, policy, runs))
            yield from _figures(outcomes[-1], instance)
    yield from _summary(outcomes)
    yield from _sensitivity(instance, policies)


def _policies(named: Sequence[str]) -> list[str]:
    """Return the policies to compare, with the parameters that they need."""
    policies = [
        f"{name}:{_PARAMETERS[name]}" if name in _PARAMETERS else name
        for name in named or (*POLICIES, *installed_policies())
    ]
    for policy in policies:
        get_policy(policy)
    if len(set(policies)) < len(policies):
        raise InputError("a policy is named twice", remedy="name each one once")
    return policies


def _instance() -> Instance:
    applications = (
        Application.from_phases(
            f"a{number}",
            nodes,
            [
                ("io", amount * 1e6) if place % 2 else ("work", amount)
                for place, amount in enumerate(amounts)
            ],
            release=release,
        )
        for number, (nodes, release, amounts) in enumerate(_WORKLOAD, 1)
    )
    platform = Platform(_BANDWIDTH, _NODE_BANDWIDTH)
    return Instance(platform, Window(0.0, _FAR_S), tuple(applications))


def _simulated(instance: Instance, policy: str) -> Column:
    return simulate(instance, policy, steady=False).yields


# --- One policy -------------------------------------------------------------------


def _compared(
    stage: BenchStage, instance: Instance, policy: str, runs: int
) -> FidelityOutcome:
    before = stage.mount.written_bytes()
    found = [_live(stage, instance, policy) for _ in range(runs)]
    moved = stage.mount.written_bytes() - before
    volume = runs * sum(float(it.volume.sum()) for it in instance.applications)
    return FidelityOutcome(
        policy,
        live=np.median(found, axis=0),
        simulated=_simulated(instance, policy),
        passed=moved / volume,
    )


def _live(stage: BenchStage, instance: Instance, policy: str) -> Column:
    with stage.served(policy, instance.platform) as daemon:
        place = Place(stage.program, daemon, stage.mount.point)
        return live_yields(place, instance)


def _figures(outcome: FidelityOutcome, instance: Instance) -> Iterator[Figure]:
    for it, live, simulated in zip(
        instance.applications, outcome.live, outcome.simulated, strict=True
    ):
        yield Figure(
            f"{outcome.policy}, {it.name}: live yield / simulated",
            float(live / simulated),
            "",
            1.0 - _ERROR,
            1.0 + _ERROR,
            {"live": float(live), "simulated": float(simulated)},
        )
    name = f"{outcome.policy}: bytes through the mount / bytes of the workload"
    yield Figure(name, outcome.passed, "", 1.0, 1.0)


# --- All policies -----------------------------------------------------------------


def _summary(outcomes: Sequence[FidelityOutcome]) -> Iterator[Figure]:
    """Yield the largest difference, and the order by MinYield in both worlds."""
    worst = max(outcomes, key=lambda outcome: outcome.difference)
    name = f"largest difference of a yield (with {worst.policy})"
    yield Figure(name, 100.0 * worst.difference, "%", most=100.0 * _ERROR)
    simulated = [float(outcome.simulated.min()) for outcome in outcomes]
    live = [float(outcome.live.min()) for outcome in outcomes]
    allowed = ranks(simulated, _TIE)
    for place in sorted(range(len(outcomes)), key=lambda i: -simulated[i]):
        low, high = allowed[place]
        tie = "" if low == high else f", a tie of {high - low + 1}"
        rank = 1 + sum(other > live[place] for other in live)
        yield Figure(
            f"rank by MinYield of {outcomes[place].policy}{tie}",
            rank,
            "",
            low,
            high,
            {"live": live[place], "simulated": simulated[place]},
        )


def ranks(values: Sequence[float], tie: float) -> list[tuple[int, int]]:
    """Return the ranks, first and last, that each value may have; 1 is the largest.

    Values that follow one another at a relative distance of at most `tie` may have
    any rank of their group.
    """
    order = sorted(range(len(values)), key=lambda i: -values[i])
    groups: list[list[int]] = []
    for place in order:
        last = values[groups[-1][-1]] if groups else 0.0
        if groups and last - values[place] <= tie * last:
            groups[-1].append(place)
        else:
            groups.append([place])
    found = [(0, 0)] * len(values)
    first = 1
    for group in groups:
        for place in group:
            found[place] = (first, first + len(group) - 1)
        first += len(group)
    return found


# --- How much a little noise can do -----------------------------------------------


def _sensitivity(instance: Instance, policies: Sequence[str]) -> Iterator[Figure]:
    """Yield how far simulated yields move when phases last a little longer."""
    draw = default_rng(1)
    others = [_jittered(instance, draw) for _ in range(_JITTERED)]
    worst = 0.0
    for policy in policies:
        exact = _simulated(instance, policy)
        for other in others:
            change = np.abs(_simulated(other, policy) / exact - 1.0)
            worst = max(worst, float(change.max()))
    name = f"simulated, phases up to {_JITTER_S * 1e3:g} ms longer: largest difference"
    yield Figure(name, 100.0 * worst, "%", most=100.0 * _ERROR)


def _jittered(instance: Instance, draw: Generator) -> Instance:
    """Return the instance with every phase up to `_JITTER_S` longer."""
    applications = tuple(
        replace(
            it,
            work=it.work + draw.uniform(0.0, _JITTER_S, it.work.size),
            volume=it.volume + cap * draw.uniform(0.0, _JITTER_S, it.volume.size),
        )
        for it, cap in instance.with_caps()
    )
    return replace(instance, applications=applications)
