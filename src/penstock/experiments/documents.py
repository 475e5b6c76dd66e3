# SPDX-License-Identifier: MIT
"""A comparison as a JSON document; `docs/formats.md` describes every key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from penstock.analysis import Bound
from penstock.experiments.compare import Outcome, Report
from penstock.model import FORMAT

__all__ = ["bound_document", "comparison_document"]


def comparison_document(
    reports: Sequence[Report], provenance: dict[str, Any]
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


def _instance(report: Report) -> dict[str, Any]:
    return {
        "index": report.index,
        "digest": report.digest,
        "pressure": report.pressure,
        "window": list(report.window),
        "bound": bound_document(report.bound) if report.bound else None,
        "policies": {name: _outcome(o) for name, o in report.outcomes.items()},
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
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
