# SPDX-License-Identifier: MIT
"""Memory that the agent shares with programs: a page per job, a bell per user."""
