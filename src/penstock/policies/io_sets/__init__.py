# SPDX-License-Identifier: MIT
"""The IO-SETS family: set-10 and its ablations; `sets` has what they share."""
