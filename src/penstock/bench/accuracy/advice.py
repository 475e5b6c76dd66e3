# SPDX-License-Identifier: MIT
"""Is advice true? Real jobs under the present policy, then under the advised one.

Each scene is a set of real jobs on a ``penstock mount`` with a limit. Two runs:

1. The jobs run under the present policy, and the daemon archives what they do. The
   archive is imported as by ``penstock import --format history``, and the advice of
   ``penstock advise`` is taken: a verdict and the gain of the worst job.
2. The same jobs run under the policy that the advice ranks first. If that is the
   present one, they run under the recommended policy of the project.

The measured gain is the difference of the smallest live yields. Goals: the predicted
gain is at most `_POINTS` away, and the verdict is right. "Change" is right if the
measured gain is worthwhile, "keep" if it is below twice that; "the evidence is too
thin" is wrong, because the scenes have enough operations.

Every archive is also simulated under the policy of its run. The simulated yields are
compared with the live ones, of jobs that announce their volumes and of jobs that do
not. Live yields come from the time stamps of the jobs, not from the archive.

The scenes were chosen by simulation: the exact day gains about as much as the mean of
its scenarios, and phases that last 20 ms longer hardly change the gain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from penstock.advice.evidence import of_logs
from penstock.advice.importing.importer import Imported, ImportOptions, import_logs
from penstock.advice.recommendation import (
    WORTHWHILE,
    Answer,
    PolicyOutcome,
    Recommendation,
    recommend,
)
from penstock.advice.scenarios import draw_scenarios
from penstock.bench import BenchSettings, Measurement
from penstock.bench.applications import (
    RunPlace,
    WorkloadRow,
    instance_from_rows,
    live_yields,
)
from penstock.bench.testbed import LiveTestbed, open_testbed
from penstock.model import Column, Instance, Platform
from penstock.policies import RECOMMENDED
from penstock.sim import simulate

__all__ = ["AdviceRun", "AdviceScene", "alternative", "is_right", "measure"]

_PLATFORM: Final = Platform(20e6, 5e6)
#: Limit of the mount divided by the shared bandwidth.
_HEADROOM: Final = 1.1
#: Scenarios and seed of the advice: the defaults of ``penstock advise``.
_SCENARIOS: Final = 20
_SEED: Final = 1
#: Largest accepted difference of the predicted and the measured gain (points of yield).
_POINTS: Final = 5.0
#: Largest accepted difference of a yield simulated from the archive (%).
_WITH_HINTS: Final = 2.0
_WITHOUT_HINTS: Final = 5.0
_PERCENT: Final = 100.0


class AdviceScene(NamedTuple):
    """Real jobs, and the policy that the site has now."""

    name: str
    now: str
    rows: tuple[WorkloadRow, ...]
    runs_without_hints: bool = False
    """The jobs also run without hints, under the present policy."""

    @property
    def instance(self) -> Instance:
        """The jobs as applications of the model."""
        return instance_from_rows(_PLATFORM, self.rows)


_SCENES: Final = (
    AdviceScene(
        "one job alone",
        "fcfs",
        ((4, 0.0, (1.06, 8.1, 0.97, 7.8, 0.99, 8.2, 0.98, 8.2, 0.3)),),
    ),
    AdviceScene(
        "long beside short operations",
        "fcfs",
        (
            (4, 0.00, (2.14, 55.0, 2.02, 59.0, 0.3)),
            (4, 0.30, (0.96, 3.8, 0.93, 3.7, 0.92, 3.7, 0.93, 3.8, 0.92, 3.7, 0.3)),
            (4, 0.72, (0.87, 3.7, 0.88, 4.1, 0.98, 3.6, 0.96, 3.7, 0.82, 4.0, 0.3)),
            (4, 0.96, (0.90, 4.1, 0.86, 4.0, 0.95, 3.9, 0.84, 4.1, 0.90, 3.6, 0.3)),
        ),
        runs_without_hints=True,
    ),
    AdviceScene(
        "light load",
        "fair-share",
        (
            (2, 0.12, (2.82, 2.1, 2.54, 2.0, 2.37, 2.0, 0.3)),
            (2, 0.56, (2.82, 2.1, 2.65, 2.2, 2.51, 2.1, 0.3)),
            (2, 0.78, (2.57, 2.1, 2.52, 2.1, 2.83, 1.8, 0.3)),
        ),
    ),
    AdviceScene(
        "equal jobs",
        "fair-share",
        (
            (4, 0.11, (1.41, 8.9, 1.38, 8.7, 1.42, 8.6, 1.42, 8.6, 1.39, 8.9, 0.3)),
            (4, 0.42, (1.44, 8.9, 1.47, 9.2, 1.46, 9.4, 1.45, 8.6, 1.43, 9.3, 0.3)),
            (4, 0.74, (1.44, 8.6, 1.40, 8.9, 1.45, 9.2, 1.39, 9.1, 1.44, 8.9, 0.3)),
            (4, 1.23, (1.42, 8.6, 1.36, 9.1, 1.36, 9.1, 1.40, 9.3, 1.36, 9.2, 0.3)),
        ),
        runs_without_hints=True,
    ),
    AdviceScene(
        "heavy load",
        "fcfs",
        (
            (4, 0.14, (1.60, 14.5, 1.41, 14.1, 1.63, 13.6, 0.3)),
            (4, 0.37, (1.40, 12.1, 1.65, 13.0, 1.37, 13.4, 0.3)),
            (1, 0.64, (1.49, 10.2, 1.64, 11.5, 1.53, 10.4, 0.3)),
            (2, 0.91, (1.51, 15.7, 1.37, 16.4, 1.39, 13.8, 0.3)),
            (1, 1.13, (1.47, 16.3, 1.45, 16.6, 1.41, 16.3, 0.3)),
            (2, 1.43, (1.42, 10.5, 1.37, 12.1, 1.52, 11.9, 0.3)),
            (4, 1.64, (1.59, 19.4, 1.51, 18.3, 1.48, 17.0, 0.3)),
        ),
    ),
)
#: Number of scenes of a quick run.
_QUICK: Final = 2


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield predicted and measured gains, verdicts, and yields of archives."""
    scenes = _SCENES[:_QUICK] if settings.quick else _SCENES
    with open_testbed(settings.folder, _HEADROOM * _PLATFORM.bandwidth) as testbed:
        for scene in scenes:
            for measurement in _scene_measurements(testbed, scene):
                yield _without_goal(measurement) if settings.quick else measurement


def _without_goal(measurement: Measurement) -> Measurement:
    return Measurement(
        measurement.name, measurement.value, measurement.unit, parts=measurement.parts
    )


# --- Runs -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AdviceRun:
    """Real jobs under one policy, and the archive that they left."""

    policy: str
    yields: Column
    """Live yields, from the time stamps of the jobs."""
    imported: Imported

    @property
    def min_yield(self) -> float:
        """Live yield of the worst job."""
        return float(self.yields.min())

    @cached_property
    def simulated(self) -> Column:
        """Yields in a simulation of the archive, in the order of `yields`."""
        instance = self.imported.instance
        by_name = dict(
            zip(
                (app.name for app in instance.applications),
                simulate(instance, self.policy, steady=False).yields,
                strict=True,
            )
        )
        # The jobs of `instance_from_rows` are a1, a2 and so on.
        return np.array([by_name[f"a{i}"] for i in range(1, len(self.yields) + 1)])

    @property
    def difference(self) -> float:
        """Largest relative difference of a live and a simulated yield."""
        return float(np.max(np.abs(self.yields / self.simulated - 1.0)))


def _run(
    testbed: LiveTestbed, scene: AdviceScene, policy: str, *, has_hints: bool = True
) -> AdviceRun:
    """Run the jobs of a scene; import the archive of the daemon after its end."""
    archive = _new_folder(testbed.root)
    with testbed.daemon(policy, _PLATFORM, archive) as daemon:
        place = RunPlace(
            testbed.program, daemon, testbed.mount.point, has_hints=has_hints
        )
        yields = live_yields(place, scene.instance)
    imported = import_logs([str(archive)], ImportOptions(format="history"))
    return AdviceRun(policy, yields, imported)


def _new_folder(root: Path) -> Path:
    number = sum(1 for _ in root.glob("archive-*"))
    folder = root / f"archive-{number}"
    folder.mkdir()
    return folder


# --- Advice -----------------------------------------------------------------------


def _advice(run: AdviceRun) -> Recommendation:
    """Return what ``penstock advise`` answers to the archive of a run."""
    evidence = of_logs(run.imported, _SCENARIOS, _SEED)
    scenarios = draw_scenarios(
        evidence.instances, _SCENARIOS, evidence.uncertainty, _SEED
    )
    return recommend(scenarios, run.policy, operations=evidence.operations)


def alternative(advice: Recommendation) -> PolicyOutcome:
    """Return the best policy of the advice; the recommended one if nothing changes."""
    if advice.candidate.policy != advice.present.policy:
        return advice.candidate
    return next(outcome for outcome in advice.outcomes if outcome.policy == RECOMMENDED)


def is_right(verdict: Answer, gain: float) -> bool:
    """Return True if a verdict agrees with the measured gain of the alternative."""
    if verdict is Answer.CHANGE:
        return gain >= WORTHWHILE
    return verdict is Answer.KEEP and gain < 2 * WORTHWHILE


# --- Measurements -----------------------------------------------------------------


def _scene_measurements(
    testbed: LiveTestbed, scene: AdviceScene
) -> Iterator[Measurement]:
    before = _run(testbed, scene, scene.now)
    yield _yield_measurement(scene, before, "with hints", _WITH_HINTS)
    advice = _advice(before)
    other = alternative(advice)
    after = _run(testbed, scene, other.policy)
    yield _yield_measurement(scene, after, "with hints", _WITH_HINTS)
    yield from _gain_measurements(scene, advice, before, after)
    if scene.runs_without_hints:
        plain = _run(testbed, scene, scene.now, has_hints=False)
        yield _yield_measurement(scene, plain, "without hints", _WITHOUT_HINTS)


def _yield_measurement(
    scene: AdviceScene, run: AdviceRun, kind: str, most: float
) -> Measurement:
    worst = int(np.argmax(np.abs(run.yields / run.simulated - 1.0)))
    return Measurement(
        f"{scene.name}, {run.policy}, {kind}: largest difference of a yield that is "
        "simulated from the archive",
        _PERCENT * run.difference,
        "%",
        most=most,
        parts={
            "live": float(run.yields[worst]),
            "simulated": float(run.simulated[worst]),
        },
    )


def _gain_measurements(
    scene: AdviceScene, advice: Recommendation, before: AdviceRun, after: AdviceRun
) -> Iterator[Measurement]:
    gain = after.min_yield - before.min_yield
    predicted = alternative(advice).min_yield - advice.present.min_yield
    yield Measurement(
        f"{scene.name}: predicted gain minus measured gain, from {before.policy} to "
        f"{after.policy}",
        _PERCENT * (predicted - gain),
        "points",
        -_POINTS,
        _POINTS,
        {
            "predicted": _PERCENT * predicted,
            "measured": _PERCENT * gain,
            "MinYield before": before.min_yield,
            "after": after.min_yield,
        },
    )
    name = f'{scene.name}: the verdict "{advice.verdict}" is right'
    yield Measurement(name, float(is_right(advice.verdict, gain)), "", least=1.0)
