# SPDX-License-Identifier: MIT
"""A study: points (workloads with parameters) x instances x contenders.

Contenders are compared on every instance. The contenders of a `Study` are policies;
other studies, which have the base class `Declaration`, compare other things.

A study is cut into *pieces*: some instances of one point, with all contenders. A piece
is computed by one worker, kept in one file, and skipped by a resumed run. The rows of a
piece depend on the study alone, not on the worker.
"""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import msgspec

from penstock.analysis import measure, min_yield_bound
from penstock.errors import InputError
from penstock.experiments.periods import check_periods
from penstock.model import Instance
from penstock.model.documents import inside
from penstock.policies import POLICIES, get_policy
from penstock.policies.policy import Policy
from penstock.sim import Run, simulate
from penstock.workloads import Workload, get_workload

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "METRICS",
    "MOST_INSTANCES",
    "Declaration",
    "Piece",
    "Point",
    "Row",
    "Study",
    "column_of",
    "foreign_policies",
    "sweep",
]

#: Limit on the instances of a study or comparison: each one has its own rows.
MOST_INSTANCES: Final = 100_000

#: One line of a table: column -> value.
Row: TypeAlias = dict[str, Any]

#: Columns of a table that hold objectives, as in `penstock.analysis.Metrics`.
METRICS = (
    "min_yield",
    "efficiency",
    "utilization",
    "cap_efficiency",
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

    def message_prefix(self, index: int) -> str:
        """Return the words that begin a message about instance `index`."""
        return f"instance {index}: "


@dataclass(frozen=True, slots=True)
class Declaration(ABC):
    """The declaration of a study: what to compute for every instance of every point."""

    name: str
    points: tuple[Point, ...]
    instances: int
    """Per point."""
    seed: int = field(default=1, kw_only=True)

    #: The columns that differ between the rows of one instance.
    CONTENDER: ClassVar[tuple[str, ...]]

    @abstractmethod
    def rows(self, point: int, index: int) -> Iterator[Row]:
        """Simulate instance `index` of a point; yield one row per contender."""

    @abstractmethod
    def foreign_code(self) -> Iterator[Callable[..., Any]]:
        """Yield the functions of plug-ins that are not part of penstock."""

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

    def name_of(self, piece: Piece) -> str:
        """Return the name of a piece in messages."""
        return f"piece {piece.key} of {self.name}"

    def cost_of(self, piece: Piece) -> float:
        """Return an estimate of the number of operations to simulate."""
        estimate = getattr(self.points[piece.point].family(), "operations", None)
        if estimate is None:
            return float(piece.count)
        return float(sum(estimate(self.seed, index) for index in piece.indices))

    def arranged(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the table of the study and its times, from the rows of all pieces.

        Times are apart, because they differ from run to run.
        """
        key = ("point", "instance", *self.CONTENDER)
        rows = rows.sort(key, maintain_order=True)
        return rows.drop("seconds"), rows.select(*key, "seconds")

    def message_prefix(self, point: int, index: int) -> str:
        """Return the words that begin a message about an instance of a point."""
        prefix = self.points[point].message_prefix(index)
        return prefix if len(self.points) == 1 else f"point {point}, {prefix}"

    def identity_columns(self, point: int, index: int) -> Row:
        """Return the columns that name the point, its settings and the instance."""
        declared = self.points[point]
        settings = {column_of(key): value for key, value in declared.settings}
        return {
            "point": point,
            "workload": declared.workload,
            "instance": index,
            **settings,
        }


@dataclass(frozen=True, slots=True)
class Study(Declaration):
    """A study that compares policies."""

    policies: tuple[str, ...]
    """Texts, as for `penstock.policies.get_policy`."""
    bounded: bool = False
    """True to compute the bound on MinYield of every instance."""
    yields: bool = False
    """True to keep the yields of all applications."""

    CONTENDER = ("policy",)

    def __post_init__(self) -> None:
        for point in self.points:
            point.family()
        labels = [policy.label for policy in self.bound_policies()]
        if len(set(labels)) < len(labels):
            raise InputError(
                "a policy is listed twice", where="policies", remedy="leave one out"
            )
        if not self.points or not self.policies:
            raise InputError(
                "the study has no workload or no policy", remedy="add one of each"
            )
        if not 1 <= self.instances <= MOST_INSTANCES // len(self.points):
            raise InputError(
                f"{self.instances} is out of range",
                where="instances",
                remedy=f"per point: at least 1, in all at most {MOST_INSTANCES}",
            )

    def rows(self, point: int, index: int) -> Iterator[Row]:
        """Simulate all policies on one instance."""
        instance = self.points[point].family().instance(self.seed, index)
        columns = {
            **self.identity_columns(point, index),
            **self.instance_columns(instance),
        }
        columns.setdefault("applications", len(instance.applications))
        for policy in self.bound_policies():
            with inside(self.message_prefix(point, index)):
                check_periods(instance, policy)
                run = self.simulate(instance, policy)
            row = {
                **columns,
                "policy": run.policy,
                **asdict(measure(run)),
                "events": run.events,
                "decisions": run.decisions,
                "seconds": run.seconds,
            }
            if self.yields:
                row["yields"] = run.yields.tolist()
            yield row

    def instance_columns(self, instance: Instance) -> Row:
        """Return the columns that describe an instance."""
        return {
            "pressure": instance.pressure(),
            "window": instance.window.length,
            "nodes": sum(a.nodes for a in instance.applications),
            "demand": float(instance.caps.sum()) / instance.platform.bandwidth,
            "operations": instance.dedicated_events() // 2,
            "bound": min_yield_bound(instance).min_yield if self.bounded else None,
        }

    def simulate(self, instance: Instance, policy: Policy) -> Run:
        """Run one policy on one instance."""
        return simulate(instance, policy)

    def foreign_code(self) -> Iterator[Callable[..., Any]]:
        """Yield the functions of policies that are not part of penstock."""
        return foreign_policies(self.bound_policies())

    def bound_policies(self) -> list[Policy]:
        """Return the policies, ready to run.

        RATIONALE: a study keeps the texts, which are hashed, written to files and
        sent to workers. A worker binds them as part of its task, so that a policy
        that it cannot import is reported like any other failure of the task.
        """
        return [get_policy(text) for text in self.policies]


@dataclass(frozen=True, slots=True)
class Piece:
    """Instances `first` to `first + count - 1` of one point of a study."""

    study: Declaration
    point: int
    first: int
    count: int

    @property
    def key(self) -> str:
        """Point and first instance, as in the names of files."""
        return f"{self.point:04d}-{self.first:06d}"

    @property
    def name(self) -> str:
        """A name for messages."""
        return self.study.name_of(self)

    @property
    def indices(self) -> range:
        """The numbers of the instances."""
        return range(self.first, self.first + self.count)

    def cost(self) -> float:
        """Return an estimate of the work, in a unit of the study."""
        return self.study.cost_of(self)

    def run(self) -> list[Row]:
        """Simulate; return one row per instance and contender."""
        return [
            row for index in self.indices for row in self.study.rows(self.point, index)
        ]


def foreign_policies(policies: Iterable[Policy]) -> Iterator[Callable[..., Any]]:
    """Yield the functions of those policies that are not part of penstock."""
    for policy in policies:
        if policy.name not in POLICIES:
            yield policy.allocate


def column_of(setting: str) -> str:
    """Return the name of the column that holds a parameter of the workload.

    The column "pressure" holds the measured pressure, "aimed_pressure" the parameter.
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
