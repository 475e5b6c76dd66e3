# SPDX-License-Identifier: MIT
"""Results as JSON documents; `docs/reference/formats.md` describes every key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Literal, TypedDict

from penstock.analysis import Bound
from penstock.analysis.placement import PlacementMetrics
from penstock.experiments.placing import PlacementPlan, PlanComparison, PlanResult
from penstock.experiments.study import Row
from penstock.model import FORMAT

__all__ = [
    "CombinationFormat",
    "PlanComparisonFormat",
    "PlanFormat",
    "PlanMetricsFormat",
    "RefusalFormat",
    "bound_document",
    "comparison_document",
    "plan_comparison_document",
    "plan_document",
]


class PlanMetricsFormat(TypedDict):
    """The metrics of target allocation."""

    mean_io_slowdown: float
    rho_io: float
    rho_con: float
    io_spread: float
    machine_idletime: float
    slowdowns: dict[str, float]


class PlanFormat(TypedDict):
    """The result that ``penstock place --json`` writes."""

    penstock: Literal[1]
    provenance: dict[str, Any]
    allocation: dict[str, int]
    placement: dict[str, list[int]]
    io_load: float | None
    metrics: PlanMetricsFormat | None


class CombinationFormat(TypedDict):
    """An allocation, a placement and a policy, with what they reach."""

    allocation: str
    placement: str
    policy: str
    window: float
    io_load: float | None
    metrics: PlanMetricsFormat


class RefusalFormat(TypedDict):
    """A combination that cannot be used, and why."""

    allocation: str
    placement: str
    policy: str
    reason: str


class PlanComparisonFormat(TypedDict):
    """The result that ``penstock compare --problem --json`` writes."""

    penstock: Literal[1]
    provenance: dict[str, Any]
    combinations: list[CombinationFormat]
    refusals: list[RefusalFormat]


#: Columns of a comparison that describe what one policy did, in their order here.
_OUTCOME: Final = (
    *("min_yield", "utilization", "efficiency", "set_utilization", "stretch"),
    *("io_slowdown", "yields", "events", "decisions", "seconds"),
)


def comparison_document(
    rows: Sequence[Row], provenance: dict[str, Any]
) -> dict[str, Any]:
    """Return the document that ``penstock compare --json`` writes."""
    instances = groupby(rows, key=itemgetter("instance"))
    return {
        "penstock": FORMAT,
        "provenance": provenance,
        "instances": [_instance(list(group)) for _, group in instances],
    }


def bound_document(bound: Bound) -> dict[str, Any]:
    """Return a bound as a part of a document."""
    return {"min_yield": bound.min_yield, "method": bound.method}


def plan_document(
    plan: PlacementPlan, result: PlanResult | None, provenance: dict[str, Any]
) -> PlanFormat:
    """Return the document that ``penstock place --json`` writes."""
    names = [application.name for application in plan.problem.applications]
    return {
        "penstock": FORMAT,
        "provenance": provenance,
        "allocation": dict(zip(names, plan.allocation, strict=True)),
        "placement": dict(zip(names, map(list, plan.placement), strict=True)),
        "io_load": plan.io_load,
        "metrics": _metrics(names, result.metrics) if result else None,
    }


def plan_comparison_document(
    comparison: PlanComparison, provenance: dict[str, Any]
) -> PlanComparisonFormat:
    """Return the document that ``penstock compare --problem --json`` writes."""
    return {
        "penstock": FORMAT,
        "provenance": provenance,
        "combinations": [_combination(*o) for o in comparison.outcomes],
        "refusals": [
            {
                "allocation": refusal.allocator,
                "placement": refusal.placer,
                "policy": refusal.policy,
                "reason": refusal.reason,
            }
            for refusal in comparison.refusals
        ],
    }


def _combination(plan: PlacementPlan, result: PlanResult) -> CombinationFormat:
    names = [application.name for application in plan.problem.applications]
    return {
        "allocation": plan.allocator,
        "placement": plan.placer,
        "policy": result.policy,
        "window": result.window_s,
        "io_load": plan.io_load,
        "metrics": _metrics(names, result.metrics),
    }


def _metrics(names: Sequence[str], metrics: PlacementMetrics) -> PlanMetricsFormat:
    return {
        "mean_io_slowdown": metrics.mean_io_slowdown,
        "rho_io": metrics.rho_io,
        "rho_con": metrics.rho_con,
        "io_spread": metrics.io_spread,
        "machine_idletime": metrics.machine_idletime,
        "slowdowns": dict(zip(names, metrics.slowdowns.tolist(), strict=True)),
    }


def _instance(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the document of one instance from its rows."""
    first = rows[0]
    file = {"file": first["file"]} if first["file"] else {}
    return {
        "index": first["instance"],
        **file,
        "digest": first["digest"],
        "pressure": first["pressure"],
        "window": list(first["window"]),
        "bound": bound_document(first["bound"]) if first["bound"] else None,
        "applications": list(first["applications"]),
        "policies": {row["policy"]: _outcome(row) for row in rows},
    }


def _outcome(row: Row) -> dict[str, Any]:
    """Return the document of one policy on one instance."""
    outcome = {key: row[key] for key in _OUTCOME}
    return outcome | {key: _finite(row[key]) for key in ("stretch", "io_slowdown")}


def _finite(value: float) -> float | None:
    """Return the value, or None if it is infinite: JSON has no infinity."""
    return value if math.isfinite(value) else None
