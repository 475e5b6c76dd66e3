# SPDX-License-Identifier: MIT
"""Throughput and latency of applications at a mount, measured for each scheduler."""

from penstock.bench.slo.schedulers import measure

__all__ = ["measure"]
