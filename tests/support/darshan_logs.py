# SPDX-License-Identifier: MIT
"""Whether Darshan logs can be read here."""

from __future__ import annotations

import pytest

__all__ = ["need_darshan"]


def need_darshan() -> None:
    """Skip the test if the package darshan is missing, or its C library is."""
    try:
        pytest.importorskip("darshan", reason="the extra `darshan` is not installed")
    except RuntimeError:
        pytest.skip("the package darshan has no C library for this Python")
