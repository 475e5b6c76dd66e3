# SPDX-License-Identifier: MIT
"""What live control costs: time of calls, of programs, of decisions."""
