# SPDX-License-Identifier: MIT
"""Live control: the decisions of the simulator, applied to running programs."""
