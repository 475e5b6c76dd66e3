# SPDX-License-Identifier: MIT
"""Storages that jobs share: which jobs use one, and the bandwidth that it can give."""
