# SPDX-License-Identifier: MIT
"""The report of a past job: numbers and words, a drawing, a page."""
