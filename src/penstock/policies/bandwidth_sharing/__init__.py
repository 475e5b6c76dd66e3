# SPDX-License-Identifier: MIT
"""Policies of the paper on bandwidth sharing (sections 4.1 and 4.3)."""
