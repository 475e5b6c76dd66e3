# SPDX-License-Identifier: MIT
"""What both sides of live control share.

`messages` and their `frames` on the Unix socket, `curve` for keys, and the `folder` of
a daemon with its lock.
"""
