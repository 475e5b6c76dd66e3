# SPDX-License-Identifier: MIT
"""IO-SETS: Figure 1 and an ablation, with their claims."""
