# SPDX-License-Identifier: MIT
"""A study: workloads and their parameters x instances x policies, declared.

A study is cut into *pieces*: some instances of one point, with all policies. A
piece is what a worker computes, what is kept on disk, and what a resumed run
skips. The rows of a piece depend on the study alone, not on who computes it.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from penstock.analysis import measure, min_yield_bound
from penstock.errors import InputError
from penstock.policies import get_policy
from penstock.sim import simulate
from penstock.workloads import Workload, get_workload

__all__ = ["METRICS", "Piece", "Point", "Study", "column_of", "sweep"]

#: Columns of a table that hold objectives, as in `penstock.analysis.Metrics`.
METRICS = (
    "min_yield",
    "efficiency",
    "utilization",
    "set_utilization",
    "stretch",
    "io_slowdown",
)


@dataclass(frozen=True, slots=True)
class Point:
    """A workload with some parameters set."""

    workload: str
    settings: tuple[tuple[str, float | str], ...] = ()

    def family(self) -> Workload:
        """Return the workload, ready to draw instances."""
        return get_workload(self.workload, [f"{k}={v}" for k, v in self.settings])


@dataclass(frozen=True, slots=True)
class Study:
    """What to compute; see this module's docstring."""

    name: str
    points: tuple[Point, ...]
    instances: int
    """Per point."""
    policies: tuple[str, ...]
    seed: int = 1
    bounded: bool = False
    """Whether to compute the bound on MinYield of every instance."""
    yields: bool = False
    """Whether to keep the yields of all applications."""

    def __post_init__(self) -> None:
        for point in self.points:
            point.family()
        labels = [get_policy(policy).label for policy in self.policies]
        if len(set(labels)) < len(labels):
            raise InputError("a policy is listed twice", where="policies")
        if not self.points or not self.policies or self.instances < 1:
            raise InputError("nothing to do: no workload, policy or instance")

    def digest(self) -> str:
        """Return a SHA-256 of the declaration."""
        return hashlib.sha256(msgspec.json.encode(asdict(self))).hexdigest()

    def pieces(self) -> Iterator[Piece]:
        """Cut the study into pieces."""
        for number, point in enumerate(self.points):
            batch = getattr(point.family(), "batch", 1)
            for first in range(0, self.instances, batch):
                count = min(batch, self.instances - first)
                yield Piece(self, number, first, count)


@dataclass(frozen=True, slots=True)
class Piece:
    """Instances `first` to `first + count - 1` of one point of a study."""

    study: Study
    point: int
    first: int
    count: int

    @property
    def name(self) -> str:
        """A name for files and messages."""
        return f"{self.point:04d}-{self.first:06d}"

    def cost(self) -> float:
        """Return about how many operations there are to simulate."""
        family = self.study.points[self.point].family()
        estimate = getattr(family, "operations", None)
        if estimate is None:
            return float(self.count)
        numbers = range(self.first, self.first + self.count)
        return float(sum(estimate(self.study.seed, index) for index in numbers))

    def rows(self) -> list[dict[str, Any]]:
        """Simulate; return one row per instance and policy."""
        family = self.study.points[self.point].family()
        return [
            row
            for index in range(self.first, self.first + self.count)
            for row in self._instance_rows(family, index)
        ]

    def _instance_rows(self, family: Workload, index: int) -> Iterator[dict[str, Any]]:
        study = self.study
        point = study.points[self.point]
        instance = family.instance(study.seed, index)
        facts = {
            "point": self.point,
            "workload": point.workload,
            "instance": index,
            "pressure": instance.pressure(),
            "window": instance.window.length,
            "nodes": sum(a.nodes for a in instance.applications),
            "bound": min_yield_bound(instance).min_yield if study.bounded else None,
        }
        for key, value in point.settings:
            facts[column_of(key)] = value
        facts.setdefault("applications", len(instance.applications))
        for policy in study.policies:
            run = simulate(instance, policy)
            row = {
                **facts,
                "policy": run.policy,
                **asdict(measure(run)),
                "events": run.events,
                "decisions": run.decisions,
                "seconds": run.seconds,
            }
            if study.yields:
                row["yields"] = run.yields.tolist()
            yield row


def column_of(setting: str) -> str:
    """Return the column that holds a parameter of the workload.

    The pressure that came out has the column "pressure", the one that was aimed at
    "aimed_pressure".
    """
    return "aimed_pressure" if setting == "pressure" else setting


def sweep(
    workload: str,
    fixed: Mapping[str, float | str],
    swept: Mapping[str, Sequence[float | str]],
) -> tuple[Point, ...]:
    """Return the points of all combinations of the `swept` values."""
    return tuple(
        Point(workload, (*fixed.items(), *zip(swept, values, strict=True)))
        for values in itertools.product(*swept.values())
    )
