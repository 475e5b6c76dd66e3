# SPDX-License-Identifier: MIT
"""Bandwidth profiles: what one application gets from n storage targets."""
