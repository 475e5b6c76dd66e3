# SPDX-License-Identifier: MIT
"""Running studies: the campaign that keeps pieces on disk, and its executors."""
