# SPDX-License-Identifier: MIT
"""Inputs and outputs of ``penstock compare``, of which other commands use parts."""
