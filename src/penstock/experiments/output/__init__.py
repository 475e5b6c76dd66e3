# SPDX-License-Identifier: MIT
"""What a study leaves behind: tables, charts, pages, JSON, provenance."""
