# SPDX-License-Identifier: MIT
"""Readers of logs: one file per format, each returns job records."""
