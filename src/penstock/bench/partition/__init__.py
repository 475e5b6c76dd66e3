# SPDX-License-Identifier: MIT
"""Slowdowns of real applications on a MooseFS, under strategies and placements.

`scenes` has the applications, `nodes` runs them beside a cluster, `model` simulates
them, `report` compares both and draws a figure.
"""

from __future__ import annotations

from penstock.bench.partition.report import measure

__all__ = ["measure"]
