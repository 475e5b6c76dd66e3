# SPDX-License-Identifier: MIT
"""Studies: many simulations, the tables and figures of their results."""
