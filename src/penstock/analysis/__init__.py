# SPDX-License-Identifier: MIT
"""Judging runs: objectives, and the bound that no scheduler can beat."""

from penstock.analysis.metrics import Metrics, measure

__all__ = ["Metrics", "measure"]
