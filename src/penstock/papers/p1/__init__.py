# SPDX-License-Identifier: MIT
"""Bandwidth-sharing strategies: Figures 2 to 10 and Table 2, with their claims."""
