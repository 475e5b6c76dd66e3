# SPDX-License-Identifier: MIT
"""The APEX workload: job classes, phases, and the batch schedule."""
