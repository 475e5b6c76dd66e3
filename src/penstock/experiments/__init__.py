# SPDX-License-Identifier: MIT
"""Studies: many runs, their tables and figures."""
