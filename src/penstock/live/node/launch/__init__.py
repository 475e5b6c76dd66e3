# SPDX-License-Identifier: MIT
"""Start a program under control, or examine whether it can be controlled."""
