# SPDX-License-Identifier: MIT
"""Evaluation of runs: objectives, and bounds that no scheduler can exceed."""

from penstock.analysis.bound import Bound, min_yield_bound
from penstock.analysis.metrics import Metrics, measure

__all__ = ["Bound", "Metrics", "measure", "min_yield_bound"]
