# SPDX-License-Identifier: MIT
"""Burst-buffer coordination: Figures 4 to 16, with their claims."""
