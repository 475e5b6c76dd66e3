# SPDX-License-Identifier: MIT
"""Who sends a request, and what this reader may see."""
