# SPDX-License-Identifier: MIT
"""Sub-commands that touch running programs: serve, run, ctl, mount and others."""
