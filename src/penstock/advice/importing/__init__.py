# SPDX-License-Identifier: MIT
"""From logs to an instance: find and read them, build the instance and its ensemble."""
