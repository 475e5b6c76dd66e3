# SPDX-License-Identifier: MIT
"""What runs on a compute node: the agent, the pages of jobs, the program launcher."""
