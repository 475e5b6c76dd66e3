# SPDX-License-Identifier: MIT
"""What processes say to one another: messages, frames, the agent socket, ZeroMQ."""
