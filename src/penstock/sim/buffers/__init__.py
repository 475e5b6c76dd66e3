# SPDX-License-Identifier: MIT
"""Simulation of burst buffers: applications stage, drain and share storage targets.

`simulation` is the event loop; `model` describes platform and writers; `delta` compares
two writers that start at different times.
"""
