# SPDX-License-Identifier: MIT
"""Figures 5 to 10 of bandwidth sharing: the APEX workloads, with their claims."""
