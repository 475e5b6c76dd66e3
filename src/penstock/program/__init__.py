# SPDX-License-Identifier: MIT
"""For use in programs: announcements of I/O phases, and the staging calls BBIO."""
