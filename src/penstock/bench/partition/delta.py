# SPDX-License-Identifier: MIT
"""Delta-graphs of two equal applications on a MooseFS, live and simulated.

As `penstock.bench.accuracy.delta`, on a real parallel file system: an application
writes N requests of S bytes with a pause d between them, and the other one does the
same, D later. S is such that an application alone writes as long as it pauses for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from penstock.bench import BenchSettings, Measurement
from penstock.bench.accuracy.delta_report import Graph, as_ordered, save
from penstock.bench.partition.model import simulate_scene
from penstock.bench.partition.report import run_plan
from penstock.bench.partition.scenes import (
    STRATEGIES,
    PartitionApp,
    PartitionPlan,
    PhaseSpan,
    total_s,
)
from penstock.errors import UnknownNameError
from penstock.sim.buffers.delta import DeltaPoint

__all__ = ["measure"]

#: N, S (bytes) and d (s). Alone, an application writes for about 2 s and pauses for
#: 1.5 s.
_REQUESTS: Final = 4
_SIZE_BYTES: Final = 9_400_000
_DELAY_S: Final = 0.5
_OFFSETS_S: Final = (0.0, 0.75, 1.75, 4.0)
#: Largest accepted relative difference of a factor, live and simulated.
_ERROR: Final = 0.10
_FIRST, _SECOND = "A", "B"

_Pair = tuple[PartitionApp, ...]


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield the largest difference between live and simulated factors by strategy."""
    strategies = _chosen(settings.policies)
    pairs = {offset_s: _pair(offset_s) for offset_s in _OFFSETS_S}
    plan = PartitionPlan(
        {f"D={offset_s:g}s": pair for offset_s, pair in pairs.items()}, strategies
    )
    profile: list[float] = []
    alone_s = 0.0
    points: dict[str, list[tuple[DeltaPoint, DeltaPoint]]] = {n: [] for n in strategies}
    offsets_s = iter([offset_s for offset_s in _OFFSETS_S for _ in strategies])
    for line in run_plan(plan):
        if "profile" in line:
            profile = line["profile"]
        elif "alone" in line:
            alone_s = line["alone"][_FIRST]
        else:
            offset_s, strategy = next(offsets_s), line["setting"]
            live = _point(offset_s, line["phases_s"], alone_s)
            simulated = _simulated(pairs[offset_s], strategy, profile)
            points[strategy].append((live, simulated))
    graphs: dict[str, Graph] = {}
    for strategy, both in points.items():
        graphs[strategy] = [a for a, _ in both], [b for _, b in both]
        yield _difference(strategy, graphs[strategy])
    if settings.output:
        save(settings.output, graphs, _facts(profile, settings))


def _chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the strategies; "none" comes first."""
    for name in names:
        if name not in STRATEGIES:
            raise UnknownNameError("strategy to be measured", name, STRATEGIES)
    return tuple(dict.fromkeys(("none", *(names or STRATEGIES))))


def _pair(offset_s: float) -> _Pair:
    return tuple(
        PartitionApp(name, _REQUESTS, _SIZE_BYTES, _DELAY_S, start_s, 0.0, phases=1)
        for name, start_s in ((_FIRST, 0.0), (_SECOND, offset_s))
    )


def _point(
    offset_s: float, phases_s: Mapping[str, Sequence[PhaseSpan]], alone_s: float
) -> DeltaPoint:
    """Return a point of a graph, from the I/O phases of both applications."""
    first_s, second_s = total_s(phases_s[_FIRST]), total_s(phases_s[_SECOND])
    end_s = max(end for phases in phases_s.values() for _, end in phases)
    return DeltaPoint(
        offset_s,
        (first_s / alone_s, second_s / alone_s),
        (first_s, second_s),
        alone_s,
        end_s,
    )


def _simulated(pair: _Pair, strategy: str, profile: Sequence[float]) -> DeltaPoint:
    alone = simulate_scene(pair[:1], "none", profile)
    both = simulate_scene(pair, strategy, profile)
    return _point(pair[1].start_s, both.phases_s, total_s(alone.phases_s[_FIRST]))


def _difference(strategy: str, graph: Graph) -> Measurement:
    parts, errors = {}, []
    for live, simulated in zip(*graph, strict=True):
        pairs = zip(as_ordered(live, simulated), simulated.factors, strict=True)
        for name, (factor, ideal) in zip((_FIRST, _SECOND), pairs, strict=True):
            parts[f"D={live.offset_s:g}s:{name}"] = factor
            parts[f"D={live.offset_s:g}s:{name}:simulated"] = ideal
            errors.append(abs(factor / ideal - 1.0))
    name = f"{strategy}: largest difference, live and simulated factors"
    return Measurement(name, max(errors), "", most=_ERROR, parts=parts)


def _facts(profile: Sequence[float], settings: BenchSettings) -> dict[str, Any]:
    return {
        "storage": "MooseFS",
        "rate": profile[-1],
        "profile": list(profile),
        "size": _SIZE_BYTES,
        "requests": _REQUESTS,
        "delay_s": _DELAY_S,
        "provenance": settings.provenance,
    }
