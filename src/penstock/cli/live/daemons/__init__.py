# SPDX-License-Identifier: MIT
"""Sub-commands that stay as daemons: serve and mount, their log, the dashboard."""
