# SPDX-License-Identifier: MIT
"""Sub-commands that simulate: compare, bound, place, reproduce and others."""
