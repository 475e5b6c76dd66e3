# SPDX-License-Identifier: MIT
"""Policies that no paper describes: docs/background/beyond.md."""
