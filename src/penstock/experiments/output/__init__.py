# SPDX-License-Identifier: MIT
"""The output of studies: tables, charts, pages, JSON documents, provenance."""
