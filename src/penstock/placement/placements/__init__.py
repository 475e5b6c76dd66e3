# SPDX-License-Identifier: MIT
"""Algorithms that decide which storage targets each application gets."""
