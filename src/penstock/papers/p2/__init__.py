# SPDX-License-Identifier: MIT
"""Allocation and placement of storage targets: the figures, with their claims."""
