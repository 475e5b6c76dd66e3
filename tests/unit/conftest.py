# SPDX-License-Identifier: MIT
"""Settings of the unit tests: hypothesis draws the same examples every time."""

from hypothesis import settings

settings.register_profile("unit", deadline=None, derandomize=True, database=None)
settings.load_profile("unit")
