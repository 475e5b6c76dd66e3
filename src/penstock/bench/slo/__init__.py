# SPDX-License-Identifier: MIT
"""Throughput and latency of applications at a mount, measured for each scheduler."""
