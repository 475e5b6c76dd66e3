# SPDX-License-Identifier: MIT
"""Algorithms that decide how many storage targets each application gets."""
