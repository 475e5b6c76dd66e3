# SPDX-License-Identifier: MIT
"""From logs to advice: which policy helps, by how much, and how sure that is."""
