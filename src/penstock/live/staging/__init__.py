# SPDX-License-Identifier: MIT
"""Staged writes: journals, drains, rules, and partitions of the storage targets."""
