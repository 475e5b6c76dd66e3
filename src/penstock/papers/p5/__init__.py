# SPDX-License-Identifier: MIT
"""Two-level scheduling of throughput and latency: the figures, with their claims."""
