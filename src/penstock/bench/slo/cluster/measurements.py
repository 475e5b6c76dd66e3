# SPDX-License-Identifier: MIT
"""Measure the scenes on a real cluster, and compare them with promises and simulation.

Goals: an application that asks for it gets at least 97 % of its promise, and its share
is within 3 % of what was agreed; 95 % of the windows without overload keep the bound of
the 95th percentile. Live shares are within 3 % of the simulated ones, and 95th
percentiles within 15 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf, nan
from statistics import median
from typing import Final

import msgspec

from penstock.bench import BenchSettings, Measurement
from penstock.bench.moosefs import ClusterSpec, check_requirements, run_module
from penstock.bench.slo.cluster.model import delays_of
from penstock.bench.slo.cluster.nodes import SceneAnswers
from penstock.bench.slo.cluster.report import save
from penstock.bench.slo.cluster.results import SceneResult, result_of
from penstock.bench.slo.cluster.scenes import (
    CAPACITY_SCENE,
    FULL,
    LATENCY_SCENE,
    NODES,
    QUICK,
    SERVERS,
    scenes,
)
from penstock.bench.slo.windows import compliance

__all__ = ["measure_cluster", "measurements_of"]

#: A write is answered when a chunk server has it, and a read costs the servers what it
#: asks for: no write-back, a write cache of the least size (MiB), no reading ahead.
_MOUNT_OPTIONS: Final = (
    "sync,mfswritecachesize=16,mfsreadaheadleng=65536,mfsreadaheadtrigger=1073741824"
)
#: Rate of the link of every chunk server (bytes/s). A write takes 20 ms there, as one
#: of 1 MB does at the 50 MB/s of the paper, and two processors carry it.
_LINK: Final = 3.5e6
_KEPT: Final = 0.97
_KEPT_WINDOWS: Final = 95.0
_SHARE_ERROR: Final = 0.03
_P95_ERROR: Final = 0.15


def measure_cluster(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield measurements of the storage, then those of each scene."""
    scale = QUICK if settings.quick else FULL
    by_name = {scene.name: scene for scene in scenes(scale, settings.scenes)}
    check_requirements()
    spec = ClusterSpec(SERVERS, NODES, _LINK, mount_options=_MOUNT_OPTIONS)
    words = ["quick" if settings.quick else "full", *settings.scenes]
    results: list[SceneResult] = []
    taken: list[Measurement] = []
    for line in run_module(spec, "penstock.bench.slo.cluster.nodes", words):
        done = msgspec.convert(line, SceneAnswers)
        scene, capacity = by_name[done.scene], done.capacity_bytes_per_s
        if scene.name == CAPACITY_SCENE.name:
            yield Measurement("capacity of the cluster", capacity / 1e6, "MB/s")
            continue
        if scene.name == LATENCY_SCENE.name:
            delay_s = median(delays_of(scene, done.live, capacity))
            yield Measurement(
                "time of a request besides its service", 1e3 * delay_s, "ms"
            )
            continue
        result = result_of(scene, capacity, done.live, done.simulated)
        results.append(result)
        for measurement in measurements_of(result, has_goals=not settings.quick):
            taken.append(measurement)
            yield measurement
    if settings.output is not None:
        save(settings.output, results, taken, settings.provenance)


def measurements_of(
    result: SceneResult, *, has_goals: bool = True
) -> Iterator[Measurement]:
    """Yield the measurements of a scene; without goals if it is too short for them."""
    for measurement in _all_measurements(result):
        if has_goals and result.scene.has_goals:
            yield measurement
        else:
            yield replace(measurement, least=-inf, most=inf)


def _all_measurements(result: SceneResult) -> Iterator[Measurement]:
    """Yield what was promised, then live figures divided by simulated ones."""
    scene = result.scene
    if any(group.rates for group in scene.groups):
        yield _kept_windows(result)
    if scene.is_saturated:
        yield _share(result)
    if not scene.is_overloaded:
        yield _promises(result)
    for name in scene.promises:
        yield _compared(
            f"{scene.name}: share of {name}, live / simulated",
            result.live.share(name),
            result.simulated.share(name),
            _SHARE_ERROR,
        )
        yield _compared(
            f"{scene.name}: service of {name}, live / simulated",
            result.live.applications[name].bytes_per_s / 1e6,
            result.simulated.applications[name].bytes_per_s / 1e6,
            inf,
        )
    for name in scene.promises:
        yield _compared(
            f"{scene.name}: p95 of {name}, live / simulated",
            _milliseconds(result.live.applications[name].p95_s),
            _milliseconds(result.simulated.applications[name].p95_s),
            _P95_ERROR,
        )


def _kept_windows(result: SceneResult) -> Measurement:
    """Return how many windows keep the bound of an application with a rate."""
    scene = result.scene
    bounds = {
        group.application: scene.promises[group.application].latency_s
        for group in scene.groups
        if group.rates
    }
    # If the promises fit, a window is overloaded only by who takes what is left.
    kinds = (False,) if scene.is_overloaded else (False, True)
    counts = [
        numbers
        for overloaded in kinds
        for numbers in compliance(
            result.live.windows, bounds, overloaded=overloaded
        ).values()
    ]
    kept, count = (sum(numbers) for numbers in zip(*counts, strict=True))
    return Measurement(
        f"{scene.name}: windows with p95 in its bound ({', '.join(bounds)})",
        100.0 * kept / max(1, count),
        "%",
        least=_KEPT_WINDOWS,
        parts={"windows": float(count)},
    )


def _promises(result: SceneResult) -> Measurement:
    """Return the least service divided by its promise."""
    parts = {
        name: figures.bytes_per_s / result.promised(name)
        for name, figures in result.live.applications.items()
    }
    name = f"{result.scene.name}: served / promised, least"
    return Measurement(name, min(parts.values()), "", _KEPT, parts=parts)


def _share(result: SceneResult) -> Measurement:
    """Return the share of the first application divided by the agreed one."""
    first = next(iter(result.scene.promises))
    agreed = result.agreed_share(first)
    parts = {
        "agreed": agreed,
        "live": result.live.share(first),
        "simulated": result.simulated.share(first),
    }
    return Measurement(
        f"{result.scene.name}: share of {first}, live / agreed",
        parts["live"] / agreed,
        "",
        1.0 - _SHARE_ERROR,
        1.0 + _SHARE_ERROR,
        parts,
    )


def _milliseconds(time_s: float | None) -> float:
    return nan if time_s is None else 1e3 * time_s


def _compared(name: str, live: float, simulated: float, error: float) -> Measurement:
    """Return a live figure divided by the simulated one; `error` inf: no goal."""
    ratio = live / simulated if simulated else nan
    parts = {"live": live, "simulated": simulated}
    return Measurement(name, ratio, "", 1.0 - error, 1.0 + error, parts)
