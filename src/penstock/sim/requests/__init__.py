# SPDX-License-Identifier: MIT
"""Simulation of single requests: clients, schedulers, servers, credit of mounts."""
