# SPDX-License-Identifier: MIT
"""Judging runs: objectives, and the bound that no scheduler can beat."""

from penstock.analysis.bound import Bound, min_yield_bound
from penstock.analysis.metrics import Metrics, measure

__all__ = ["Bound", "Metrics", "measure", "min_yield_bound"]
