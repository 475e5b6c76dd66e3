# SPDX-License-Identifier: MIT
"""What runs on a compute node: the agent, the pages of jobs, the program launcher.

`agent` serves the jobs on the node (`local_job`), which processes join through
`agent_socket`. `pages` is the memory that it shares with them. `launch` starts programs
under control.
"""
