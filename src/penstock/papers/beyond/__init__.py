# SPDX-License-Identifier: MIT
"""Beyond the papers: every policy against the bound, and combinations of the papers."""
