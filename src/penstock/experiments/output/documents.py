# SPDX-License-Identifier: MIT
"""Results as JSON documents; `docs/formats.md` describes every key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from penstock.analysis import Bound
from penstock.analysis.placement import PlacementMetrics
from penstock.experiments.compare import InstanceComparison, PolicyOutcome
from penstock.experiments.placing import Experience, PlacementPlan, PlanComparison
from penstock.model import FORMAT

__all__ = [
    "bound_document",
    "comparison_document",
    "plan_comparison_document",
    "plan_document",
]


def comparison_document(
    reports: Sequence[InstanceComparison], provenance: dict[str, Any]
) -> dict[str, Any]:
    """Return the document that ``penstock compare --json`` writes."""
    return {
        "penstock": FORMAT,
        "provenance": provenance,
        "instances": [_instance(report) for report in reports],
    }


def bound_document(bound: Bound) -> dict[str, Any]:
    """Return a bound as it stands in documents."""
    return {"min_yield": bound.min_yield, "method": bound.method}


def plan_document(
    plan: PlacementPlan, experience: Experience | None, provenance: dict[str, Any]
) -> dict[str, Any]:
    """Return the document that ``penstock place --json`` writes."""
    names = [application.name for application in plan.problem.applications]
    return {
        "penstock": FORMAT,
        "provenance": provenance,
        "allocation": dict(zip(names, plan.allocation, strict=True)),
        "placement": dict(zip(names, map(list, plan.placement), strict=True)),
        "io_load": plan.io_load,
        "metrics": _metrics(names, experience.metrics) if experience else None,
    }


def plan_comparison_document(
    comparison: PlanComparison, provenance: dict[str, Any]
) -> dict[str, Any]:
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


def _combination(plan: PlacementPlan, experience: Experience) -> dict[str, Any]:
    names = [application.name for application in plan.problem.applications]
    return {
        "allocation": plan.allocator,
        "placement": plan.placer,
        "policy": experience.policy,
        "window": experience.window_s,
        "io_load": plan.io_load,
        "metrics": _metrics(names, experience.metrics),
    }


def _metrics(names: Sequence[str], metrics: PlacementMetrics) -> dict[str, Any]:
    return {
        "mean_io_slowdown": metrics.mean_io_slowdown,
        "rho_io": metrics.rho_io,
        "rho_con": metrics.rho_con,
        "io_spread": metrics.io_spread,
        "machine_idletime": metrics.machine_idletime,
        "slowdowns": dict(zip(names, metrics.slowdowns.tolist(), strict=True)),
    }


def _instance(report: InstanceComparison) -> dict[str, Any]:
    return {
        "index": report.index,
        "digest": report.digest,
        "pressure": report.pressure,
        "window": list(report.window),
        "bound": bound_document(report.bound) if report.bound else None,
        "applications": list(report.applications),
        "policies": {name: _outcome(o) for name, o in report.outcomes.items()},
    }


def _outcome(outcome: PolicyOutcome) -> dict[str, Any]:
    metrics = outcome.metrics
    return {
        "min_yield": metrics.min_yield,
        "utilization": metrics.utilization,
        "efficiency": metrics.efficiency,
        "set_utilization": metrics.set_utilization,
        "stretch": _finite(metrics.stretch),
        "io_slowdown": _finite(metrics.io_slowdown),
        "yields": list(outcome.yields),
        "events": outcome.events,
        "decisions": outcome.decisions,
        "seconds": outcome.seconds,
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity: null stands for it."""
    return value if math.isfinite(value) else None
