# SPDX-License-Identifier: MIT
"""Pictures of who had which share: now, in the past, and under other policies."""
