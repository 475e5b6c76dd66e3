# SPDX-License-Identifier: MIT
"""The figures of a scene, live and simulated, from the times of its requests.

A scene is simulated several times, and the median of each figure counts: the search for
the depth of a scheduler makes small differences large. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from penstock.bench.slo.cluster.scenes import WINDOW_S, ClusterScene
from penstock.bench.slo.windows import AnsweredRequest, ClientWindow, windows
from penstock.qos import percentile

__all__ = ["AppFigures", "SceneResult", "SceneRun", "figures_of", "result_of"]


@dataclass(frozen=True)
class AppFigures:
    """What an application got in the measured time of a scene."""

    bytes_per_s: float
    p95_s: float | None
    """95th percentile of the response times; None: no answers."""


@dataclass(frozen=True)
class SceneRun:
    """One run of a scene, live or simulated."""

    applications: Mapping[str, AppFigures]
    windows: Sequence[ClientWindow]

    def share(self, application: str) -> float:
        """Return the part of the service that an application got."""
        total = sum(figures.bytes_per_s for figures in self.applications.values())
        return self.applications[application].bytes_per_s / total if total else 0.0


@dataclass(frozen=True)
class SceneResult:
    """A scene, live and simulated."""

    scene: ClusterScene
    capacity_bytes_per_s: float
    live: SceneRun
    simulated: SceneRun

    def promised(self, application: str) -> float:
        """Return what an application is promised (bytes/s)."""
        return self.scene.promises[application].share * self.capacity_bytes_per_s

    def agreed_share(self, application: str) -> float:
        """Return the promise of an application divided by the sum of all promises."""
        promises = self.scene.promises
        return promises[application].share / sum(p.share for p in promises.values())


def result_of(
    scene: ClusterScene,
    capacity_bytes_per_s: float,
    live: Mapping[str, Sequence[AnsweredRequest]],
    simulated: Sequence[Mapping[str, Sequence[AnsweredRequest]]],
) -> SceneResult:
    """Return the figures of a scene from the answers by application.

    There is one live run, and there are one or more simulated ones.
    """
    runs = [figures_of(scene, capacity_bytes_per_s, answers) for answers in simulated]
    return SceneResult(
        scene,
        capacity_bytes_per_s,
        figures_of(scene, capacity_bytes_per_s, live),
        _median_of(runs),
    )


def _median_of(runs: Sequence[SceneRun]) -> SceneRun:
    """Return the medians of the figures, and the windows of the first run."""
    applications = {}
    for name in runs[0].applications:
        figures = [run.applications[name] for run in runs]
        p95s = [f.p95_s for f in figures if f.p95_s is not None]
        applications[name] = AppFigures(
            median(f.bytes_per_s for f in figures), median(p95s) if p95s else None
        )
    return SceneRun(applications, runs[0].windows)


def figures_of(
    scene: ClusterScene,
    capacity_bytes_per_s: float,
    answers: Mapping[str, Sequence[AnsweredRequest]],
) -> SceneRun:
    """Return the figures of one run; its times begin with the scene (s)."""
    sizes = {group.application: group.size_bytes for group in scene.groups}
    length_s = scene.end_s - scene.warm_s
    measured = {
        name: [
            AnsweredRequest(a.issued - scene.warm_s, a.answered - scene.warm_s)
            for a in times
        ]
        for name, times in answers.items()
    }
    applications = {}
    for name, times in measured.items():
        responses = [
            a.answered - a.issued for a in times if 0.0 <= a.answered < length_s
        ]
        applications[name] = AppFigures(
            len(responses) * sizes[name] / length_s,
            percentile(responses) if responses else None,
        )
    most = capacity_bytes_per_s * WINDOW_S / max(sizes.values())
    count = round(length_s / WINDOW_S)
    return SceneRun(applications, windows(measured, WINDOW_S, count, most))
