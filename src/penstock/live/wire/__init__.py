# SPDX-License-Identifier: MIT
"""The protocol of live control: `messages`, and `frames` for the Unix socket."""
