# SPDX-License-Identifier: MIT
"""What a job does, from its growing counters: phases, volumes, requests, lost time."""
