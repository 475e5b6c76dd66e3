# SPDX-License-Identifier: MIT
"""Compile the C parts of this checkout before the first test."""

from __future__ import annotations

import warnings

import pytest

from support.native_build import build_checkout


def pytest_configure(config: pytest.Config) -> None:
    """Compile once for all workers; without a compiler, say so and go on."""
    if hasattr(config, "workerinput"):
        return
    if reason := build_checkout():
        warnings.warn(
            pytest.PytestConfigWarning(f"without the C parts: {reason}"), stacklevel=1
        )
