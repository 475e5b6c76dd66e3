# SPDX-License-Identifier: MIT
"""The process behind ``penstock serve``: control loop, history, metrics."""
